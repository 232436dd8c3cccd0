package generator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/site"
)

// Options say how to make a site. The zero value of a field means its default.
type Options struct {
	Config      site.Config
	Workers     int       // goroutines that parse and render; 0 means one a core. The site does not depend on it
	SkipInvalid bool      // count and report rows that cannot be read; else the first one stops the run
	Refreshed   Refreshed // merged into the snapshot where it is newer; nil for none
	Rebuild     bool      // write every object again, whatever the manifest says about the site that is there
	Progress    Progress  // hears how far the run is; may be nil
	NoSync      bool      // do not force a site to the disk before it takes the old one's place: faster, and not safe from power failures
	Files       afero.Fs  // where the output is written; nil means the machine's file system
}

func (o Options) withDefaults() (Options, error) {
	if o.Workers < 0 {
		return o, fmt.Errorf("%d workers: use 1 or more, or 0 for one a core", o.Workers)
	}
	if o.Workers == 0 {
		o.Workers = defaultWorkers()
	}
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

// ToPath makes the site of a snapshot at out: a tar file if its name ends in
// ".tar", else a folder. What is there is replaced in one step when the new site
// is complete; until then, and after any failure, it stays as it is.
func ToPath(ctx context.Context, snapshot afero.Fs, out string, o Options) (*Report, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	target, err := resolvePath(out)
	if err != nil {
		return nil, err
	}
	s := &staging{target: target, folder: !strings.HasSuffix(target, ".tar"), noSync: o.NoSync}
	dest := destination(&tarDestination{files: o.Files, path: target})
	if s.folder {
		dest = &folderDestination{files: o.Files, path: target, basePath: o.Config.BasePath}
	}
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	r := &run{Options: o, snapshot: snapshot, report: newReport(out)}
	err = r.toStaging(ctx, dest, s)
	// The new site is in place by now, or the old one still is; what remains of
	// the other goes, which can take longer than all before.
	r.Progress.Stage("clean up", 0)
	start := time.Now()
	if err := errors.Join(err, s.close(ctx)); err != nil {
		return nil, err
	}
	r.report.Duration.CleanUp = time.Since(start).Seconds()
	return r.report, nil
}

// ToMemory makes the site of a snapshot in memory.
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
	// The base makes names with and without a leading slash the same file.
	files := afero.NewBasePathFs(afero.NewMemMapFs(), "/")
	if _, err := r.write(ctx, renderer, &folder{files: files, path: "/"}); err != nil {
		return nil, nil, err
	}
	return files, r.report, nil
}

// A destination is a place for a site that ToPath can write to.
type destination interface {
	// check looks at what is there and refuses what must not be replaced. live is the
	// site that is there; nil if there is none.
	check(ctx context.Context) (live *liveSite, err error)
	// checkNames refuses names that would be one where the next site grows.
	checkNames(ctx context.Context, next string, names []lookupName) error
	// create makes an output at the path next. end completes it, after a failure too.
	create(next string, p *plan, asOf string) (out output, end func() error, err error)
}

// A run makes one site.
type run struct {
	Options
	snapshot afero.Fs
	report   *Report
}

// toStaging reads, compares with the site that is there, writes what the next one
// needs and puts it in place.
func (r *run) toStaging(ctx context.Context, dest destination, s *staging) error {
	live, err := dest.check(ctx)
	if err != nil {
		return err
	}
	if r.Rebuild {
		live = nil
	}
	// A site that does not change need not be replaced: then that it cannot be is no
	// reason to fail.
	stuck := s.replaceable()
	if stuck != nil && live == nil {
		return stuck
	}
	renderer, err := r.prepare(ctx)
	if err != nil {
		return err
	}
	var p *plan
	if live != nil {
		p, err = r.compare(ctx, renderer, live)
		switch {
		case errors.Is(err, errManifest):
			p = nil // the site that is there cannot tell what it holds: nothing of it is kept
		case err != nil:
			return err
		case p.same:
			return nil
		}
	}
	if stuck != nil {
		return stuck
	}
	if err := dest.checkNames(ctx, s.next(), renderer.graph.names); err != nil {
		return err
	}
	out, end, err := dest.create(s.next(), p, r.report.AsOf)
	if err != nil {
		return err
	}
	x, err := r.write(ctx, renderer, out)
	if err := errors.Join(err, end()); err != nil {
		return err
	}
	if p != nil {
		r.report.Written = p.count(x.objects())
	}
	return r.install(ctx, s)
}

// install puts the new site, which is complete, in place.
func (r *run) install(ctx context.Context, s *staging) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !r.NoSync {
		r.Progress.Stage("sync", 0)
	}
	start := time.Now()
	if err := s.settle(); err != nil {
		return err
	}
	r.report.Duration.Render += time.Since(start).Seconds()
	r.Progress.Stage("switch", 0)
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.commit()
}

// prepare reads the snapshot and ranks its accounts.
func (r *run) prepare(ctx context.Context) (*renderer, error) {
	start := time.Now()
	g, err := load(ctx, &reader{
		snapshot: r.snapshot, workers: r.Workers, skipInvalid: r.SkipInvalid, maxText: r.Config.MaxProfileText,
		refreshed: r.Refreshed, report: r.report, progress: r.Progress,
	})
	if err != nil {
		return nil, err
	}
	r.Progress.Stage("rank", 0)
	ranks, err := rank(ctx, g, r.Workers, r.Config.LeaderboardMax)
	if err != nil {
		return nil, err
	}
	r.report.Duration.Read = time.Since(start).Seconds()
	return newRenderer(g, ranks, r.Config), nil
}

// compare renders without writing, to find what differs from the site that is there.
func (r *run) compare(ctx context.Context, renderer *renderer, live *liveSite) (*plan, error) {
	r.Progress.Stage("compare", renderer.objects())
	x, err := r.render(ctx, renderer, nowhere{})
	if err != nil {
		return nil, err
	}
	p, err := x.diff(ctx, live)
	if err != nil {
		return nil, err
	}
	r.report.Written = p.count(x.objects())
	return p, nil
}

// write renders every object into out, then the manifest and the root.
func (r *run) write(ctx context.Context, renderer *renderer, out output) (index, error) {
	r.Progress.Stage("write", renderer.objects())
	x, err := r.render(ctx, renderer, out)
	if err != nil {
		return index{}, err
	}
	r.report.Written = WriteReport{Added: x.objects()}
	return x, x.write(ctx, out)
}

// render renders every object into out and gives the index of the site.
func (r *run) render(ctx context.Context, renderer *renderer, out output) (index, error) {
	start := time.Now()
	entries, err := renderer.render(ctx, r.Workers, out, r.Progress)
	if err != nil {
		return index{}, err
	}
	x := newIndex(renderer, entries)
	r.report.Counts = x.root.Counts
	r.report.Duration.Render += time.Since(start).Seconds()
	return x, nil
}

// resolvePath makes an output path absolute and follows a link, so that what a
// link points to is replaced and not the link.
func resolvePath(out string) (string, error) {
	if out == "" {
		return "", errors.New("the output has no name: name a folder, or a file that ends in .tar")
	}
	path, err := filepath.Abs(out)
	if err != nil {
		return "", fmt.Errorf("output path: %w", err)
	}
	// The part that is there is made free of links; the run makes the rest.
	there := path
	for !isThere(there) && there != filepath.Dir(there) {
		there = filepath.Dir(there)
	}
	real, err := filepath.EvalSymlinks(there)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("output path: %s is a link to nowhere: mount or make what it points to, or remove it", there)
	} else if err != nil {
		return "", fmt.Errorf("output path: %w", err)
	}
	real = filepath.Join(real, strings.TrimPrefix(path, there))
	if real == filepath.Dir(real) {
		return "", fmt.Errorf("the output cannot be %s: name a folder in it", real)
	}
	return real, nil
}
