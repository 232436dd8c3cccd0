package generator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/explorer"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/internal/staging"
	"github.com/followpress/followpress/site"
)

// Options of a run. The zero value is valid.
type Options struct {
	Config      site.Config
	Workers     int       // goroutines that parse and render; 0 means one per core; the site does not depend on it
	SkipInvalid bool      // report invalid rows and continue; otherwise the first one stops the run
	Refreshed   Refreshed // refreshed data to merge where it is newer than the snapshot; nil means none
	Rebuild     bool      // write every object, even if the manifest of the live site says that it has not changed
	Progress    Progress  // nil means none
	DryRun      bool      // render and compare everything, but write nothing
	NoSync      bool      // do not sync the new site to disk before it goes live: faster, but a power failure may damage it
	KeepSpare   bool      // keep the old folder beside the new one, for the next run to change into the newest; needs no Files
	Files       afero.Fs  // file system of the output; nil means that of the machine
}

// ErrBusy says that another run writes to the same output.
var ErrBusy = staging.ErrBusy

// ErrLeftBehind says that a cancelled run had no time to clean up. The next run does.
var ErrLeftBehind = staging.ErrLeftBehind

// cleanUpTime is how long a cancelled run may clean up.
var cleanUpTime = 5 * time.Second

func (o Options) withDefaults() (Options, error) {
	if o.Workers < 0 {
		return o, fmt.Errorf("%d workers: use 1 or more, or 0 for one per core", o.Workers)
	}
	o.Workers = cmp.Or(o.Workers, defaultWorkers())
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

// ToPath generates the site of a snapshot at out: a tar file if its name ends in ".tar", otherwise a
// folder. The complete new site replaces the live one in one step; until then, and after any
// error, the live one stays as it is. An invalid row is a *RowError. ErrBusy means that another
// run writes to the same output. If ctx ends, ToPath cleans up for a few seconds at most; if that
// is not enough, the error wraps ErrLeftBehind. With Options.DryRun it writes nothing; the report says
// what another run would write.
func ToPath(ctx context.Context, snapshot afero.Fs, out string, o Options) (*Report, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if out == "" {
		return nil, errors.New("the output has no name: name a folder, or a file that ends in .tar")
	}
	target, err := staging.Resolve(out)
	if err != nil {
		return nil, err
	}
	isFolder := !strings.HasSuffix(target, ".tar")
	dest := destination(&tarDestination{files: o.Files, path: target})
	if isFolder {
		dest = &folderDestination{files: o.Files, path: target, config: o.Config}
	}
	r := &run{Options: o, snapshot: snapshot, report: newReport(out)}
	if o.DryRun {
		if err := r.dryRun(ctx, dest); err != nil {
			return nil, err
		}
		return r.report, nil
	}
	_, onMachine := o.Files.(*afero.OsFs)
	s, err := staging.Open(ctx, staging.Options{
		Target: target, Folder: isFolder, What: "site", Suffix: ".followpress", NoSync: o.NoSync, CleanUpTime: cleanUpTime,
		KeepSpare:    o.KeepSpare && isFolder && onMachine,
		IfNotMovable: "name a .tar file, or a folder on another file system",
		IfNotReplaceable: "name a folder that did not, such as one on a volume, or a .tar file; or update this one object by object " +
			"with followpress publish --dest " + fileURL(target),
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

// ToMemory generates the site of a snapshot in memory. The keys of objects are the paths of the
// file system. An invalid row is a *RowError.
func ToMemory(ctx context.Context, snapshot afero.Fs, o Options) (afero.Fs, *Report, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, nil, err
	}
	r := &run{Options: o, snapshot: snapshot, report: newReport("memory")}
	renderer, err := r.prepare(ctx)
	if err != nil {
		return nil, nil, err
	}
	// The base path makes names with and without a leading slash equal.
	files := afero.NewBasePathFs(afero.NewMemMapFs(), "/")
	if err := r.write(ctx, renderer, nil, &folder{files: files, path: "/"}, nil); err != nil {
		return nil, nil, err
	}
	return files, r.report, nil
}

// A destination is a folder or tar file that ToPath writes to.
type destination interface {
	// check returns the live site, or nil if there is none. It is an error if the output must not
	// be replaced.
	check(ctx context.Context) (live *liveSite, err error)
	// checkNames returns an error if two names are equal on the file system of next.
	checkNames(ctx context.Context, next string, names []render.LookupName) error
	// create returns an output at the path next. end must be called, even after a failure.
	create(next string, p *plan, asOf string) (out output, end func() error, err error)
}

// A run generates one site.
type run struct {
	Options
	snapshot afero.Fs
	report   *Report
}

// toStaging reads the snapshot, compares its site with the live one, and writes and installs it if
// it differs.
func (r *run) toStaging(ctx context.Context, dest destination, s *staging.Staging) (err error) {
	live, err := dest.check(ctx)
	if err != nil {
		return err
	}
	if r.Rebuild {
		live = nil
	}
	// An unchanged site need not be replaced, so this may be no error.
	notReplaceable := s.CheckReplaceable()
	if notReplaceable != nil && live == nil {
		return notReplaceable
	}
	renderer, err := r.prepare(ctx)
	if err != nil {
		return err
	}
	var x *index
	var p *plan
	if live != nil {
		x, p, err = r.compare(ctx, renderer, live, s.TempFile)
		if x != nil {
			defer func() { err = errors.Join(err, x.entries.close()) }()
		}
		switch {
		case errors.Is(err, errManifest):
			p = nil // the content of the live site is not known, so nothing of it is kept
		case err != nil:
			return err
		case p.same:
			return nil
		}
	}
	if notReplaceable != nil {
		return notReplaceable
	}
	return r.replace(ctx, dest, s, renderer, x, p)
}

// replace writes the new site and installs it. p says how it differs from the live one, and x is its
// index; both are nil if the content of the live one is not known.
func (r *run) replace(ctx context.Context, dest destination, s *staging.Staging, renderer *render.Site, x *index, p *plan) error {
	if err := dest.checkNames(ctx, s.Next(), renderer.NameCopies()); err != nil {
		return err
	}
	patched, err := r.patchSpare(ctx, s, renderer, x, p)
	if err != nil {
		return err
	}
	if !patched {
		if err := r.writeNext(ctx, dest, s, renderer, x, p); err != nil {
			return err
		}
	}
	if p != nil {
		r.report.Written = p.report(x.objects())
	}
	if err := r.install(ctx, s); err != nil || p == nil || !s.KeepSpare {
		return err
	}
	return s.KeepOld()
}

// writeNext writes the new site at the place of the next one.
func (r *run) writeNext(ctx context.Context, dest destination, s *staging.Staging, renderer *render.Site, x *index, p *plan) error {
	out, end, err := dest.create(s.Next(), p, r.report.AsOf)
	if err != nil {
		return err
	}
	return errors.Join(r.write(ctx, renderer, x, out, s.TempFile), end())
}

// patchSpare turns the spare into the new site, if there is one that can be used. It removes any other.
func (r *run) patchSpare(ctx context.Context, s *staging.Staging, renderer *render.Site, x *index, p *plan) (bool, error) {
	if !staging.Exists(s.Spare()) {
		return false, nil
	}
	if p == nil { // what is there is not to be trusted
		return false, s.RemoveSpare(ctx)
	}
	start := time.Now()
	defer func() { r.report.Duration.Render += time.Since(start).Seconds() }()
	r.Progress.Stage("spare", 0)
	old, err := openSpare(ctx, s.Spare(), s.Target, p, x, renderer)
	if err == nil {
		if err := s.TakeSpare(); err != nil {
			return false, errors.Join(fmt.Errorf("take the spare: %w", err), old.close())
		}
		r.Progress.Stage("write", old.lacks)
		if err = errors.Join(old.patch(ctx, s.Next(), x, renderer, r.Progress), old.close()); err == nil {
			r.report.Spare = sparePatched
			return true, nil
		}
		if ctx.Err() == nil {
			err = unusable(err)
		}
	}
	if !errors.Is(err, errSpare) {
		return false, err
	}
	r.report.Spare = err.Error()
	return false, errors.Join(s.RemoveSpare(ctx), s.RemoveNext(ctx))
}

// install makes the complete new site live.
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

// prepare reads the snapshot and ranks its accounts.
func (r *run) prepare(ctx context.Context) (*render.Site, error) {
	start := time.Now()
	if r.Config.Explorer {
		// Bundling takes a part of a second, once. The reader leaves some time of the cores for it, and
		// what it takes of memory is free again before the graph is large.
		var bundling sync.WaitGroup
		bundling.Go(explorer.Bundle)
		defer bundling.Wait()
	}
	g, err := load(ctx, &reader{
		snapshot: r.snapshot, workers: r.Workers, skipInvalid: r.SkipInvalid, limits: r.Config.ProfileLimits(),
		refreshed: r.Refreshed, efp: r.Config.EFP(), report: r.report, progress: r.Progress,
	})
	if err != nil {
		return nil, err
	}
	r.Progress.Stage("rank", 0)
	ranks, err := rank(ctx, g, r.Workers, r.Config)
	if err != nil {
		return nil, err
	}
	renderer, err := render.NewSite(ctx, g, ranks, r.Config, r.Workers)
	if err != nil {
		return nil, err
	}
	r.report.Duration.Read = time.Since(start).Seconds()
	return renderer, nil
}

// compare renders without writing, to find the differences from the live site. It returns the index
// of the site even if that of the live site cannot be read; its entries must be closed.
func (r *run) compare(ctx context.Context, renderer *render.Site, live *liveSite, temp func() (*os.File, error)) (*index, *plan, error) {
	r.Progress.Stage("compare", renderer.Objects())
	x, err := r.render(ctx, renderer, discard{}, temp)
	if err != nil {
		return nil, nil, err
	}
	p, err := x.diff(ctx, live, nil)
	if err != nil {
		return x, nil, err
	}
	r.report.Written = p.report(x.objects())
	return x, p, nil
}

// write renders every object into out, then the manifest and the root. x is
// the index, if the site was rendered before.
func (r *run) write(ctx context.Context, renderer *render.Site, x *index, out output, temp func() (*os.File, error)) (err error) {
	r.Progress.Stage("write", renderer.Objects())
	if x == nil {
		if x, err = r.render(ctx, renderer, out, temp); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, x.entries.close()) }()
	} else if err := r.renderAgain(ctx, renderer, x, out); err != nil {
		return err
	}
	r.report.Written = WriteReport{Added: x.objects()}
	return x.write(out)
}

// render renders every object and the manifest into out and returns the index of the site, whose
// entries must be closed. They wait in a file that temp creates, or in memory.
func (r *run) render(ctx context.Context, renderer *render.Site, out output, temp func() (*os.File, error)) (*index, error) {
	start := time.Now()
	entries := newEntryStore(renderer.Objects(), temp)
	err := renderAll(ctx, renderer, r.Workers, out, entries, r.Progress)
	var x *index
	if err == nil {
		x, err = newIndex(ctx, renderer, entries, r.Workers, out)
	}
	if err != nil {
		return nil, errors.Join(err, entries.close())
	}
	r.report.Counts = x.root.Counts
	r.report.Duration.Render += time.Since(start).Seconds()
	return x, nil
}

// renderAgain is render for a site whose index is known.
func (r *run) renderAgain(ctx context.Context, renderer *render.Site, x *index, out output) error {
	start := time.Now()
	defer func() { r.report.Duration.Render += time.Since(start).Seconds() }()
	if err := renderAll(ctx, renderer, r.Workers, out, nil, r.Progress); err != nil {
		return err
	}
	return x.render(ctx, out, func(site.Entry) {})
}
