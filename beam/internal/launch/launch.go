// Package launch implements the command: its flags, and a run.
package launch

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	beamlog "github.com/apache/beam/sdks/v2/go/pkg/beam/log"
	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/beam/internal/input"
	"github.com/followpress/followpress/beam/internal/pipeline"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/internal/release"
	"github.com/followpress/followpress/internal/siteflags"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage/parts"
)

const about = `Make the site of a snapshot on Apache Beam, for snapshots that are too large for one machine or that live in a cluster. On one machine, followpress generate is faster.

The site is written in parts, which followpress publish reads: publish --site 's3://BUCKET/PREFIX/part-*'. Flags of Beam follow after --, such as those of Dataflow: -- --project=NAME --region=NAME.

Settings of the site, such as its title, are members of the file of --config, variables or flags. followpress generate --help-all lists them.

Each flag is also a variable: --snapshot is FOLLOWPRESS_SNAPSHOT. The exit status is 0 for done, 1 for failed, 2 for wrong usage, 130 or 143 after SIGINT or SIGTERM.`

// Command is the command with its flags.
type Command struct {
	Snapshot string `required:"" placeholder:"LOCATION" help:"The snapshot: s3://BUCKET/PREFIX, or a folder that all workers have. A table in several files is read by several workers."`
	Out      string `required:"" placeholder:"LOCATION" help:"Where the parts of the site go: s3://BUCKET/PREFIX, or a folder that all workers have. The last one is part-root."`
	Report   string `placeholder:"FILE" help:"Write the report of the run as JSON too, as that of generate; - is standard output."`

	Runner            string `enum:"prism,universal,dataflow" default:"prism" placeholder:"prism|universal|dataflow" help:"Engine: prism runs here, in memory, for trying it out; universal is any engine with a job server, such as Flink (default ${default})."`
	Endpoint          string `placeholder:"HOST:PORT" help:"Job server of --runner=universal."`
	Environment       string `name:"environment" enum:"loopback,external,process,docker," default:"" placeholder:"loopback|external|process|docker" help:"Where workers run: in this process, in a worker pool, as processes or containers that the engine starts. By default in this process with prism, else in containers."`
	EnvironmentConfig string `placeholder:"TEXT" help:"What --environment needs: HOST:PORT of the pool, JSON with the command of the process, or the image."`
	Parallelism       int    `default:"0" placeholder:"N" help:"Parts into which each stage is cut; 0 means as many as the size of the snapshot needs (universal), or leaves it to the engine."`
	HotAfter          int    `default:"50000" placeholder:"N" help:"Records about an account that come under one key; those about more popular accounts are spread over several (default ${default})."`

	S3Endpoint string `name:"s3-endpoint" placeholder:"URL" env:"FOLLOWPRESS_S3_ENDPOINT,AWS_ENDPOINT_URL_S3,AWS_ENDPOINT_URL" help:"S3-compatible server of all s3://…; without one Amazon S3. Workers have credentials of their own, in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or from their machine."`
	S3Region   string `name:"s3-region" placeholder:"NAME" help:"Region of the buckets; by default AWS_REGION, or us-east-1."`

	OnInvalid       string `enum:"stop,skip" default:"stop" placeholder:"stop|skip" group:"As with generate:" help:"Whether to stop at an invalid row or refreshed object, or to skip and report it (default ${default})."`
	Refreshed       string `placeholder:"LOCATION" group:"As with generate:" help:"Where the fallback keeps the data it fetched for cache=fresh: s3://BUCKET/_refresh, s3://BUCKET/PREFIX/_refresh, or a folder."`
	siteflags.Flags `group:"As with generate:"`

	Beam []string `arg:"" optional:"" passthrough:"" hidden:"" help:"Flags of Beam."`
}

// IsWorker reports whether the arguments are those of a worker.
func IsWorker(args []string) bool {
	for _, arg := range args {
		if arg == "--worker=true" || arg == "--worker" || arg == "-worker=true" {
			return true
		}
	}
	return false
}

// Main runs the command and returns its exit status.
func Main(args []string, stdout, stderr io.Writer) int {
	var c Command
	exit := -1
	parser, err := kong.New(&c, kong.Name("followpress-beam"), kong.Description(about), kong.DefaultEnvars("FOLLOWPRESS"), kong.PostBuild(hideRefused),
		kong.Writers(stdout, stderr), kong.Exit(func(status int) { exit = status }))
	if err != nil {
		panic(err) // wrong flag definitions
	}
	_, err = parser.Parse(args)
	if exit >= 0 { // --help
		return exit
	}
	if err == nil {
		err = c.check()
	}
	if err != nil {
		fmt.Fprintf(stderr, "followpress-beam: %s\nTry followpress-beam --help.\n", oneLine(err))
		return 2
	}
	ctx, end := untilSignal()
	defer end()
	report, err := c.Run(ctx, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "followpress-beam: %s\n", oneLine(err))
		var caught caughtSignal
		if errors.As(context.Cause(ctx), &caught) {
			return 128 + int(caught)
		}
		return 1
	}
	if err := c.print(report, stdout); err != nil {
		fmt.Fprintf(stderr, "followpress-beam: %s\n", oneLine(err))
		return 1
	}
	return 0
}

// A caughtSignal is the cause of an interrupted run.
type caughtSignal syscall.Signal

func (s caughtSignal) Error() string { return "caught " + syscall.Signal(s).String() }

// untilSignal returns a context that ends with SIGINT or SIGTERM. A second signal ends the process.
func untilSignal() (ctx context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case caught := <-signals:
			signal.Stop(signals)
			cancel(caughtSignal(caught.(syscall.Signal)))
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

func (c *Command) check() error {
	switch {
	case c.Runner == "universal" && c.Endpoint == "":
		return errors.New("--runner=universal needs --endpoint=HOST:PORT, a job server")
	case c.HotAfter < 1:
		return fmt.Errorf("--hot-after=%d: use 1 or more", c.HotAfter)
	case c.Parallelism < 0:
		return fmt.Errorf("--parallelism=%d: use 1 or more, or 0", c.Parallelism)
	}
	if c.RanksEvery != 0 || c.RanksFrom != nil {
		return errors.New("--ranks-every and --ranks-from: only generate and publish --snapshot hold ranks; here, details show the ranks of the snapshot")
	}
	if c.Pages {
		return errors.New("--pages: only generate, publish --snapshot, preview and live make pages and badges; publish --snapshot makes those of a large site too")
	}
	if c.Data || c.DataLicence != "" {
		return errors.New("--data: only generate, publish --snapshot, preview and live add the graph as files; publish --snapshot does so for a large site too")
	}
	return c.Check()
}

// hideRefused hides the flags that check refuses.
func hideRefused(k *kong.Kong) error {
	for _, flag := range k.Model.Flags {
		flag.Hidden = flag.Hidden || flag.Name == "data" || flag.Name == "ranks-every"
	}
	return nil
}

// Run makes the site.
func (c *Command) Run(ctx context.Context, stderr io.Writer) (*summary.Report, error) {
	config, err := c.Site().WithDefaults()
	if err != nil {
		return nil, err
	}
	skip := c.OnInvalid == "skip"
	tables, err := input.Open(ctx, c.at(c.Snapshot), input.Options{
		EFP: config.EFP(), SkipInvalid: skip, Limits: config.ProfileLimits(), History: config.HistoryWindow,
	})
	if err != nil {
		return nil, err
	}
	if !tables.HasOps {
		config.HistoryWindow = 0
	}
	events, eventsRead, err := tables.Events(ctx)
	if err != nil {
		return nil, err
	}
	recommended, recommendedRead, err := tables.Recommended(ctx)
	if err != nil {
		return nil, err
	}
	o := pipeline.Options{
		Config: config, AsOf: tables.AsOf, ListOps: tables.ListOps, Events: events, Recommended: recommended, Tables: tables,
		SkipInvalid: skip, HotAfter: c.HotAfter, Out: pipeline.Place{Location: c.Out, Endpoint: c.S3Endpoint, Region: c.S3Region},
	}
	if !strings.Contains(c.Out, "://") { // workers may have another working directory
		if o.Out.Location, err = filepath.Abs(c.Out); err != nil {
			return nil, err
		}
	}
	o.Inputs = tables.Inputs
	o.Inputs.Generator = release.Version()
	report := &summary.Report{Snapshot: c.Snapshot, Out: c.Out}
	if c.Refreshed != "" {
		at := c.at(c.Refreshed)
		if !strings.Contains(c.Refreshed, "://") {
			if at.Location, err = filepath.Abs(c.Refreshed); err != nil {
				return nil, err
			}
		}
		if err := input.CheckRefreshed(ctx, at); err != nil {
			return nil, fmt.Errorf("--refreshed: %w", err)
		}
		o.Refreshed, report.Refreshed = &at, &summary.RefreshedReport{}
	}
	server := &engine{endpoint: c.Endpoint}
	if err := c.prepare(ctx, o.Tables, server, stderr); err != nil {
		return nil, err
	}
	parts, err := o.Out.Open(ctx)
	if err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	if o.Out.Run, err = parts.Begin(ctx); err != nil { // from here on an earlier site is gone
		return nil, fmt.Errorf("--out: %w", err)
	}
	if err := c.execute(ctx, o, server); err != nil {
		return nil, err
	}
	return c.report(ctx, report, parts, tables, eventsRead, recommendedRead)
}

func (c *Command) at(location string) input.Source {
	return input.Source{Location: location, Endpoint: c.S3Endpoint, Region: c.S3Region}
}

// prepare sets up Beam, and checks that the job server answers.
func (c *Command) prepare(ctx context.Context, tables *input.Tables, server *engine, stderr io.Writer) error {
	parallelism := c.Parallelism
	if parallelism == 0 && c.Runner == "universal" {
		parallelism = pipeline.Parallelism(tables.Bytes, c.API == site.APIEFP)
	}
	flag.CommandLine.Init("", flag.ContinueOnError)
	flag.CommandLine.SetOutput(io.Discard)
	if err := flag.CommandLine.Parse(c.beamFlags(parallelism)); err != nil {
		return fmt.Errorf("flags of Beam: %w", err)
	}
	beam.Init()
	slog.SetDefault(slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	beamlog.SetLogger(quiet{&beamlog.Standard{}})
	if c.Runner != "universal" {
		return nil
	}
	dialAs(server)
	return server.answers(ctx)
}

// execute runs the pipeline on the engine.
func (c *Command) execute(ctx context.Context, o pipeline.Options, server *engine) error {
	p, s := beam.NewPipelineWithRoot()
	if err := pipeline.Build(s, o); err != nil {
		return err
	}
	if _, err := beam.Run(ctx, c.Runner, p); err != nil {
		if ctx.Err() != nil {
			if err := server.cancel(context.WithoutCancel(ctx)); err != nil {
				return fmt.Errorf("interrupted; the job server did not cancel the job, so cancel it on the engine: %w", err)
			}
			return errors.New("interrupted")
		}
		if text, ok := input.FindError(err); ok {
			return errors.New(text)
		}
		return fmt.Errorf("the pipeline failed on %s: %w", c.Runner, err)
	}
	return nil
}

// beamFlags returns the flags of Beam. Beam keeps flags for the life of the process, so flags that
// a run does not set get their defaults again.
func (c *Command) beamFlags(parallelism int) []string {
	flags := []string{"--job_name=followpress"}
	add := func(name, value string, given bool) {
		if !given {
			value = flag.Lookup(name).DefValue
		}
		flags = append(flags, "--"+name+"="+value)
	}
	add("endpoint", c.Endpoint, c.Endpoint != "")
	add("environment_type", c.Environment, c.Environment != "")
	add("environment_config", c.EnvironmentConfig, c.EnvironmentConfig != "")
	add("parallelism", strconv.Itoa(parallelism), parallelism > 0)
	if program, err := os.Executable(); err == nil && !strings.EqualFold(c.Environment, "loopback") {
		flags = append(flags, "--worker_binary="+program) // otherwise Beam would try to build it from source
	}
	return append(flags, slices.DeleteFunc(c.Beam, func(arg string) bool { return arg == "--" })...)
}

// quiet is a log of warnings and errors.
type quiet struct{ beamlog.Logger }

// Log logs a message of sufficient severity.
func (q quiet) Log(ctx context.Context, severity beamlog.Severity, depth int, message string) {
	if severity >= beamlog.SevWarn {
		q.Logger.Log(ctx, severity, depth+1, message)
	}
}

// report completes the report with the pipeline's report, which is stored with the parts.
func (c *Command) report(
	ctx context.Context, r *summary.Report, place *parts.Place, tables *input.Tables, events input.Result, recommended *input.Result,
) (*summary.Report, error) {
	body, err := place.Get(ctx, parts.Report)
	if err != nil {
		return nil, fmt.Errorf("read the report of the pipeline: %w", err)
	}
	var left pipeline.Report
	if err := json.Unmarshal(body, &left); err != nil {
		return nil, fmt.Errorf("read the report of the pipeline: %w", err)
	}
	tables.Fill(r, events, recommended, left.Statistics, left.Notes)
	r.Counts = left.Counts
	r.Written.Added = left.Counts.Objects + left.Shards + 1
	return r, nil
}

// print prints the report for people, and writes it as JSON.
func (c *Command) print(r *summary.Report, stdout io.Writer) error {
	if c.Report != "" {
		body, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return err
		}
		if c.Report == "-" {
			_, err := stdout.Write(append(body, '\n'))
			return err
		}
		if err := os.WriteFile(c.Report, append(body, '\n'), 0o666); err != nil {
			return err
		}
	}
	_, err := io.WriteString(stdout, r.String())
	return err
}
