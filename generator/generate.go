package generator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/explorer"
	"github.com/followpress/followpress/generator/internal/graph"
	"github.com/followpress/followpress/generator/internal/load"
	"github.com/followpress/followpress/generator/internal/output"
	"github.com/followpress/followpress/generator/internal/rank"
	"github.com/followpress/followpress/generator/internal/whole"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/internal/staging"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/ranks"
)

// Options configures a run. The zero value is valid.
type Options struct {
	Config      site.Config
	Workers     int       // goroutines that parse and render; 0 means one per core; the site does not depend on it
	SkipInvalid bool      // report invalid rows and continue; otherwise the first one stops the run
	Refreshed   Refreshed // refreshed data to merge where it is newer than the snapshot; nil means none
	BadgesAsOf  time.Time // time of the snapshot's badges; only newer refreshed badges replace them; zero means as_of
	// Ranks are the ranks that details show until they are due again, if the configuration has
	// RanksEvery. nil means the ranks of the snapshot.
	Ranks *ranks.Held
	// Generator is the version of the program, stored in the root for reproducing the site.
	Generator string

	Rebuild  bool     // write every object, even if the live site's manifest lists it unchanged
	Progress Progress // nil means none
	DryRun   bool     // render and compare everything, but write nothing
	NoSync   bool     // do not sync the new site to disk before it goes live: faster, but a power failure may damage it
	Files    afero.Fs // file system of the output; nil means the machine's
}

// Refreshed reads the data that refreshes have fetched from upstreams and stored.
type Refreshed = load.Refreshed

// Progress reports how far a run has come.
type Progress = load.Progress

type noProgress struct{}

func (noProgress) Stage(string, int64)   {}
func (noProgress) AddBytes(int64, int64) {}

// ErrBusy means that another run writes to the same output.
var ErrBusy = staging.ErrBusy

// ErrLeftBehind means that a canceled run had no time to clean up. The next run does.
var ErrLeftBehind = staging.ErrLeftBehind

// cleanUpTime is how long a canceled run may clean up.
var cleanUpTime = 5 * time.Second

func (o Options) withDefaults() (Options, error) {
	if o.Workers < 0 {
		return o, fmt.Errorf("%d workers: use 1 or more, or 0 for one per core", o.Workers)
	}
	o.Workers = cmp.Or(o.Workers, runtime.GOMAXPROCS(0))
	if o.Progress == nil {
		o.Progress = noProgress{}
	}
	if o.Files == nil {
		o.Files = afero.NewOsFs()
	}
	var err error
	o.Config, err = o.Config.WithDefaults()
	return o, err
}

// ToPath generates the site of a snapshot at out: a tar file if its name ends in ".tar", otherwise
// a folder. The complete new site replaces the live one in one step; until then, and after any
// error, the live one stays. ToPath returns a *snapshot.RowError for an invalid row, and ErrBusy if
// another run writes to the same output. If ctx ends, ToPath cleans up for a few seconds at most;
// if this is not enough, the error wraps ErrLeftBehind. With Options.DryRun it writes nothing, and
// the report tells what a run would write.
func ToPath(ctx context.Context, snapshot afero.Fs, out string, o Options) (*summary.Report, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if out == "" {
		return nil, errors.New("the output has no name; name a folder, or a file that ends in .tar")
	}
	target, err := staging.Resolve(out)
	if err != nil {
		return nil, err
	}
	isFolder := !strings.HasSuffix(target, ".tar")
	dest := output.TarAt(o.Files, target)
	if isFolder {
		dest = output.FolderAt(o.Files, target, o.Config)
	}
	r := newRun(snapshot, o, out)
	if o.DryRun {
		if err := r.dryRun(ctx, dest); err != nil {
			return nil, err
		}
		return r.report, nil
	}
	s, err := staging.Open(ctx, staging.Options{
		Target: target, Folder: isFolder, What: "site", Suffix: ".followpress", NoSync: o.NoSync, CleanUpTime: cleanUpTime,
		IfNotMovable: "name a .tar file, or a folder on another file system",
		IfNotReplaceable: "name a folder that did not, such as one on a volume, or a .tar file; or update this one object by object " +
			"with followpress publish --dest " + output.FileURL(target),
	})
	if err != nil {
		return nil, err
	}
	err = r.toStaging(ctx, dest, s)
	// Either the new site is live now or the old one still is. Removing the other one can take
	// longer than everything before.
	r.Progress.Stage("clean up", 0)
	start := time.Now()
	if err := errors.Join(err, s.Close(ctx)); err != nil {
		return nil, err
	}
	r.report.Duration.CleanUp = time.Since(start).Seconds()
	return r.report, nil
}

// ToMemory generates the site of a snapshot in memory. Paths of the file system are keys of
// objects. ToMemory returns a *snapshot.RowError for an invalid row.
func ToMemory(ctx context.Context, snapshot afero.Fs, o Options) (afero.Fs, *summary.Report, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, nil, err
	}
	r := newRun(snapshot, o, "memory")
	if err := r.prepare(ctx); err != nil {
		return nil, nil, err
	}
	// The base path makes names with and without a leading slash equal.
	files := afero.NewBasePathFs(afero.NewMemMapFs(), "/")
	if err := errors.Join(r.write(ctx, output.To(files)), r.close()); err != nil {
		return nil, nil, err
	}
	return files, r.report, nil
}

// A run generates one site. Its fields are set one after the other.
type run struct {
	Options
	snapshot afero.Fs
	report   *summary.Report
	temp     func() (*os.File, error) // creates the file for entries of the index; nil means memory

	site   *whole.Site
	inputs *site.Inputs  // nil if not wanted
	index  *output.Index // index of the rendered site
	plan   *output.Plan  // differences from the live site; nil if its content is unknown
}

func newRun(snapshot afero.Fs, o Options, out string) *run {
	inputs := &site.Inputs{Generator: o.Generator, Tables: map[string]site.SHA256{}}
	return &run{Options: o, snapshot: snapshot, report: summary.New(out), inputs: inputs}
}

func (r *run) close() error {
	if r.index == nil {
		return nil
	}
	return r.index.Close()
}

// toStaging reads the snapshot, compares its site with the live one, and writes and installs it if
// it differs.
func (r *run) toStaging(ctx context.Context, dest output.Destination, s *staging.Staging) (err error) {
	live, err := r.live(ctx, dest)
	if err != nil {
		return err
	}
	// This may be no error: an unchanged site is not replaced.
	notReplaceable := s.CheckReplaceable()
	if notReplaceable != nil && live == nil {
		return notReplaceable
	}
	r.temp = s.TempFile
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.survey(ctx, live, dest); err != nil || r.plan != nil && r.plan.Same {
		return err
	}
	if notReplaceable != nil {
		return notReplaceable
	}
	return r.replace(ctx, dest, s)
}

// dryRun renders the whole site and compares it with the live one, but writes nothing.
func (r *run) dryRun(ctx context.Context, dest output.Destination) (err error) {
	live, err := r.live(ctx, dest)
	if err != nil {
		return err
	}
	r.temp, r.report.DryRun = output.InTempFolder, true
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.survey(ctx, live, dest); err != nil || r.plan != nil {
		return err
	}
	if r.index == nil {
		r.Progress.Stage("compare", r.site.Objects())
		if err := r.render(ctx, output.Discard{}); err != nil {
			return err
		}
	}
	r.report.Written = summary.WriteReport{Added: r.index.Objects()} // a run would write everything
	return nil
}

// live returns the live site; nil if there is none, or nothing of it is kept.
func (r *run) live(ctx context.Context, dest output.Destination) (*output.Live, error) {
	live, err := dest.Check(ctx)
	if r.Rebuild {
		live = nil
	}
	return live, err
}

// survey reads the snapshot, and makes the plan unless the live site is nil or its manifest
// unreadable.
func (r *run) survey(ctx context.Context, live *output.Live, dest output.Destination) error {
	if err := r.prepare(ctx); err != nil || live == nil {
		return err
	}
	if err := r.compare(ctx, live, dest.Look()); !errors.Is(err, output.ErrManifest) {
		return err
	}
	return nil
}

func (r *run) replace(ctx context.Context, dest output.Destination, s *staging.Staging) error {
	out, end, err := dest.Create(s.Next(), r.plan, r.report.AsOf)
	if err != nil {
		return err
	}
	if err := errors.Join(r.write(ctx, out), end()); err != nil {
		return err
	}
	if r.plan != nil {
		r.report.Written = r.plan.Report(r.index.Objects())
	}
	return r.install(ctx, s)
}

func (r *run) install(ctx context.Context, s *staging.Staging) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !r.NoSync {
		r.Progress.Stage("sync", 0)
	}
	start := time.Now()
	if err := s.SyncNext(); err != nil {
		return err
	}
	r.report.Duration.Render += time.Since(start).Seconds()
	r.Progress.Stage("switch", 0)
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.Commit()
}

func (r *run) prepare(ctx context.Context) error {
	start := time.Now()
	if r.Config.Explorer {
		// Bundling takes part of a second, once. The reader leaves some core time for it, and its
		// memory is free again before the graph is large.
		var bundling sync.WaitGroup
		bundling.Go(explorer.Bundle)
		defer bundling.Wait()
	}
	g, err := load.Graph(ctx, load.Options{
		Snapshot: r.snapshot, Config: r.Config, Workers: r.Workers, SkipInvalid: r.SkipInvalid, Inputs: r.inputs,
		Refreshed: r.Refreshed, BadgesAsOf: r.BadgesAsOf, Report: r.report, Progress: r.Progress,
	})
	if err != nil {
		return err
	}
	if g.History == nil { // the snapshot has no table of operations
		r.Config.HistoryWindow = 0
	}
	r.Progress.Stage("rank", 0)
	ranks, err := rank.All(ctx, g, r.Workers, r.Config)
	if err != nil {
		return err
	}
	if err := r.hold(g, ranks); err != nil {
		return err
	}
	r.site, err = whole.NewSite(ctx, g, ranks, r.Config, r.Workers)
	if err != nil {
		return err
	}
	r.report.Duration.Read = time.Since(start).Seconds()
	return nil
}

// hold makes details show the ranks of Options.Ranks until they are due.
func (r *run) hold(g *graph.Graph, ranks *graph.Ranks) error {
	if r.Config.RanksEvery == 0 {
		return nil
	}
	r.report.Ranks = &summary.RanksReport{AsOf: g.AsOf}
	if r.Ranks == nil {
		return nil
	}
	due, err := r.Ranks.AreDue(r.Config, g.AsOf)
	if err == nil && !due {
		rank.Hold(g, ranks, r.Ranks)
		if r.inputs != nil {
			digest := site.Sum256(r.Ranks.Body)
			r.inputs.Ranks = &digest
		}
		r.report.Ranks.AsOf, r.report.Ranks.Held = r.Ranks.AsOf, true
	}
	return err
}

// compare renders without writing, to find the differences from the live site's manifest and files.
// It builds the index even if the live site's manifest cannot be read (output.ErrManifest).
func (r *run) compare(ctx context.Context, live *output.Live, files *output.Look) error {
	r.Progress.Stage("compare", r.site.Objects())
	if err := r.render(ctx, files); err != nil {
		return err
	}
	p, err := r.index.Diff(ctx, live, files)
	if err != nil {
		return err
	}
	r.plan = p
	r.report.Written = p.Report(r.index.Objects())
	return nil
}

// write writes every object into out, then the manifest and the root.
func (r *run) write(ctx context.Context, out output.Output) error {
	r.Progress.Stage("write", r.site.Objects())
	render := r.render
	if r.index != nil {
		render = r.renderAgain
	}
	if err := render(ctx, out); err != nil {
		return err
	}
	r.report.Written = summary.WriteReport{Added: r.index.Objects()}
	return r.index.WriteRoot(out)
}

// render renders every object and the manifest into out, and makes the index of the site.
func (r *run) render(ctx context.Context, out output.Output) (err error) {
	start := time.Now()
	if r.index, err = r.rendering().Render(ctx, out); err != nil {
		return err
	}
	r.report.Counts, r.report.Kinds = r.index.Root.Counts, r.index.Kinds()
	r.report.Duration.Render += time.Since(start).Seconds()
	return nil
}

// renderAgain is render for a site with an index.
func (r *run) renderAgain(ctx context.Context, out output.Output) error {
	start := time.Now()
	defer func() { r.report.Duration.Render += time.Since(start).Seconds() }()
	return r.rendering().Again(ctx, r.index, out)
}

func (r *run) rendering() *output.Rendering {
	return &output.Rendering{Of: r.site, Inputs: r.inputs, Workers: r.Workers, Temp: r.temp, Progress: r.Progress}
}
