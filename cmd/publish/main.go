// Command publish puts a site into S3-compatible storage.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/storage"
)

const about = `Publish a site: put what changed into a bucket, and delete what is gone.

It compares the manifests of the site and of the bucket, needs no state on this
machine, and takes up where a run was cut off. Readers never find a reference to
something that is not there. Credentials come from AWS_ACCESS_KEY_ID and
AWS_SECRET_ACCESS_KEY, the shared credentials file, or the machine's role.`

type flags struct {
	Site     string `placeholder:"SITE" help:"Folder or .tar file that generate wrote. Only --verify and --init do without."`
	Dest     string `required:"" placeholder:"URL" help:"Where to: s3://BUCKET, s3://BUCKET/PREFIX or file:///FOLDER."`
	Endpoint string `placeholder:"URL" env:"FOLLOWPRESS_ENDPOINT,AWS_ENDPOINT_URL_S3,AWS_ENDPOINT_URL" help:"Server of s3://; without one Amazon S3."`
	Region   string `placeholder:"NAME" help:"Region of the bucket; by default AWS_REGION, or us-east-1."`

	Init   bool `help:"Create the bucket if there is none, let everybody read the site's objects, allow all origins (CORS); then publish if there is a --site."`
	DryRun bool `help:"Show what would be done and what it would cost, and write nothing."`
	Verify bool `help:"Compare the bucket with its manifest by listing it; write nothing. Exit status 1 if anything is missing, altered or unknown."`
	Repair bool `help:"Put back what --verify finds missing or altered, from --site, and delete unknown objects that look like a site's."`

	Concurrency int           `default:"0" placeholder:"N" help:"Requests in flight; 0 means 64."`
	Bulk        string        `enum:"auto,on,off" default:"auto" help:"Send many objects with one request where the server unpacks them (MinIO): auto asks the server once, if there is much to send; on stops where it does not."`
	NoLock      bool          `help:"Do not ask for the lock: nobody else publishes."`
	BreakLock   bool          `help:"Take the lock from a run that cannot be alive any more."`
	LockLease   time.Duration `default:"1m" help:"A lock without a heartbeat for so long is free."`
	Owner       string        `placeholder:"NAME" help:"Who publishes, for those who find the lock; by default user@host."`
	Patience    time.Duration `default:"2m" help:"How long to try a request again that fails for a reason that may go away."`

	Report   string `placeholder:"FILE" help:"Write a report as JSON; - is standard output. Not into the site."`
	LogLevel string `enum:"debug,info,warn,error" default:"warn" help:"What to log on standard error; debug logs every request."`

	// List prices of Amazon S3 Standard in us-east-1 (https://aws.amazon.com/s3/pricing/).
	PricePut     float64 `default:"0.005" placeholder:"DOLLARS" help:"Price of 1,000 requests that put or list (default ${default})."`
	PriceGet     float64 `default:"0.0004" placeholder:"DOLLARS" help:"Price of 1,000 requests that get (default ${default})."`
	PriceStorage float64 `default:"0.023" placeholder:"DOLLARS" help:"Price of 1 GB for a month (default ${default})."`
}

func main() {
	command.SaveMemory()
	command.Main("publish", about, &flags{})
}

// Validate refuses what no run could do; kong calls it.
func (f *flags) Validate() error {
	if _, err := storage.ParseLocation(f.Dest); err != nil {
		return fmt.Errorf("--dest: %w", err)
	}
	modes := 0
	for _, chosen := range []bool{f.DryRun, f.Verify && !f.Repair, f.Repair, f.Init} {
		if chosen {
			modes++
		}
	}
	switch {
	case modes > 1:
		return errors.New("--dry-run, --verify, --repair and --init exclude each other")
	case f.Site == "" && !f.Init && (!f.Verify || f.Repair):
		return errors.New("missing flags: --site=SITE")
	case f.PricePut < 0 || f.PriceGet < 0 || f.PriceStorage < 0:
		return errors.New("a price cannot be negative")
	case f.Site != "" && command.ReportInside(f.Report, f.Site):
		return fmt.Errorf("--report=%s is in the site: the next generate would have to remove it", f.Report)
	}
	_, err := f.options(nil, nil).WithDefaults()
	return err
}

func (f *flags) options(progress publisher.Progress, log *slog.Logger) publisher.Options {
	return publisher.Options{
		Concurrency: f.Concurrency, Bulk: publisher.Bulk(f.Bulk), DryRun: f.DryRun, NoLock: f.NoLock, BreakLock: f.BreakLock,
		Lease: f.LockLease, Owner: f.Owner, Patience: f.Patience, Progress: progress, Log: log,
	}
}

// A bucket is a destination, of either kind.
type bucket interface {
	publisher.Bucket
	publisher.SetUpper
	Requests() map[storage.Request]int
}

// Run publishes, verifies or repairs.
func (f *flags) Run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: f.level()}))
	to, err := f.open(ctx, log)
	if err != nil {
		return err
	}
	var from storage.Site
	if f.Site != "" {
		if from, err = storage.OpenSite(f.Site); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, from.Close()) }()
	}
	progress := command.NewProgress(stderr)
	options := f.options(progress, log)
	switch {
	case f.Repair, f.Verify:
		return f.verify(ctx, from, to, options, stdout, stderr)
	case f.Init:
		if err := f.setUp(ctx, from, to, stderr); err != nil || from == nil {
			return err
		}
	}
	return f.publish(ctx, from, to, options, stdout, stderr)
}

func (f *flags) level() slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.LogLevel)); err != nil {
		panic("publish: " + err.Error()) // the flag's enum and slog disagree
	}
	return level
}

func (f *flags) open(ctx context.Context, log *slog.Logger) (bucket, error) {
	at, err := storage.ParseLocation(f.Dest)
	if err != nil {
		return nil, fmt.Errorf("--dest: %w", err)
	}
	if at.Folder != "" {
		local := storage.OpenLocal(at.Folder)
		return local, local.CleanUp()
	}
	return storage.OpenS3(ctx, at, storage.S3Options{Endpoint: f.Endpoint, Region: f.Region, Connections: f.Concurrency, Log: log})
}

func (f *flags) setUp(ctx context.Context, from storage.Site, to bucket, stderr io.Writer) error {
	config, err := publisher.ConfigOf(ctx, from)
	if err != nil {
		return err
	}
	done, err := publisher.SetUp(ctx, to, config)
	for _, step := range done {
		fmt.Fprintf(stderr, "%s: %s\n", f.Dest, step)
	}
	return err
}

func (f *flags) publish(ctx context.Context, from storage.Site, to bucket, o publisher.Options, stdout, stderr io.Writer) error {
	report, err := publisher.Publish(ctx, from, to, o)
	o.Progress.(*command.Progress).End()
	report.Dest, report.Requests = f.Dest, to.Requests()
	costs := report.Requests
	if f.DryRun {
		costs = report.ExpectedRequests()
		report.Requests = costs
	}
	report.Cost = publisher.Prices{Put: f.PricePut, Get: f.PriceGet, Storage: f.PriceStorage}.Of(costs, report.Site.Bytes)
	if err != nil {
		report.Error = err.Error()
	}
	fmt.Fprint(stderr, report)
	return errors.Join(err, command.WriteReport(f.Report, report, stdout), writeSummary(report.Markdown()))
}

func (f *flags) verify(ctx context.Context, from storage.Site, to bucket, o publisher.Options, stdout, stderr io.Writer) error {
	var v *publisher.Verification
	var err error
	if f.Repair {
		v, err = publisher.Repair(ctx, from, to, o)
	} else {
		v, err = publisher.Verify(ctx, to, o)
	}
	o.Progress.(*command.Progress).End()
	if err != nil {
		return err
	}
	v.Dest = f.Dest
	fmt.Fprint(stderr, v)
	if err := errors.Join(command.WriteReport(f.Report, v, stdout), writeSummary(v.Markdown())); err != nil {
		return err
	}
	switch {
	case f.Repair && v.Left() > 0:
		return fmt.Errorf("%d unknown objects are none of a site's and were left alone: remove them, or keep the site below a prefix of its own", v.Left())
	case !f.Repair && !v.Good():
		return fmt.Errorf("%s is not what its manifest says: %d missing, %d altered, %d unknown (--repair puts it right)",
			f.Dest, v.Missing.Count, v.Altered.Count, v.Unknown.Count)
	}
	return nil
}

// writeSummary adds to the summary of a job of GitHub Actions.
func writeSummary(markdown string) (err error) {
	name := os.Getenv("GITHUB_STEP_SUMMARY")
	if name == "" {
		return nil
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("write the summary of the job: %w", err)
	}
	_, err = file.WriteString(markdown)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write the summary of the job: %w", err)
	}
	return nil
}
