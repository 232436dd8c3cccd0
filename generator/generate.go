package generator

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/site"
)

// Options say how to make a site. The zero value of a field means its default.
type Options struct {
	Config      site.Config
	Workers     int      // goroutines that parse and render; 0 means one a core. The site does not depend on it
	SkipInvalid bool     // count and report rows that cannot be read; else the first one stops the run
	Rebuild     bool     // write every object again, whatever the manifest says about the site that is there
	Progress    Progress // hears how far the run is; may be nil
	Files       afero.Fs // where the output is written; nil means the machine's file system
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
	dest := destination(&folderDestination{files: o.Files, path: target})
	if strings.HasSuffix(target, ".tar") {
		dest = &tarDestination{files: o.Files, path: target}
	}
	if err := dest.check(); err != nil {
		return nil, err
	}
	s, err := openStaging(target)
	if err != nil {
		return nil, err
	}
	report, err := generate(ctx, snapshot, out, dest, s, o)
	return report, errors.Join(err, s.close())
}

// ToMemory makes the site of a snapshot in memory.
func ToMemory(ctx context.Context, snapshot afero.Fs, o Options) (afero.Fs, *Report, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, nil, err
	}
	report := newReport("memory")
	renderer, err := prepare(ctx, snapshot, report, o)
	if err != nil {
		return nil, nil, err
	}
	// The base makes names with and without a leading slash the same file.
	files := afero.NewBasePathFs(afero.NewMemMapFs(), "/")
	if _, err := write(ctx, renderer, &folder{files: files, path: "/"}, report, o); err != nil {
		return nil, nil, err
	}
	return files, report, nil
}

// A destination is a place for a site that ToPath can write to.
type destination interface {
	check() error                                                           // refuses what must not be replaced
	live() *liveSite                                                        // the site that is there; nil if none
	create(next string, p *plan, asOf string) (output, func() error, error) // an output at next, and what ends it
}

// generate reads, compares and writes.
func generate(ctx context.Context, snapshot afero.Fs, out string, dest destination, s *staging, o Options) (*Report, error) {
	report := newReport(out)
	renderer, err := prepare(ctx, snapshot, report, o)
	if err != nil {
		return nil, err
	}
	var p *plan
	if live := dest.live(); live != nil && !o.Rebuild {
		p, err = compare(ctx, renderer, live, report, o)
		switch {
		case errors.Is(err, errManifest):
			p = nil // the site that is there cannot tell what it holds: nothing of it is kept
		case err != nil:
			return nil, err
		case p.same:
			return report, nil
		}
	}
	next, end, err := dest.create(s.next(), p, report.AsOf)
	if err != nil {
		return nil, err
	}
	x, err := write(ctx, renderer, next, report, o)
	if err := errors.Join(err, end()); err != nil {
		return nil, err
	}
	if p != nil {
		report.Written = p.count(x.objects())
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	o.Progress.Stage("switch", 0)
	return report, s.commit()
}

// prepare reads the snapshot and ranks its accounts.
func prepare(ctx context.Context, snapshot afero.Fs, report *Report, o Options) (*renderer, error) {
	start := time.Now()
	g, err := load(ctx, &reader{
		snapshot: snapshot, workers: o.Workers, skipInvalid: o.SkipInvalid, report: report, progress: o.Progress,
	})
	if err != nil {
		return nil, err
	}
	o.Progress.Stage("rank", 0)
	ranks, err := rank(ctx, g, o.Workers, o.Config.LeaderboardMax)
	if err != nil {
		return nil, err
	}
	report.Duration.Read = time.Since(start).Seconds()
	return newRenderer(g, ranks, o.Config), nil
}

// compare renders without writing, to find what differs from the site that is there.
func compare(ctx context.Context, r *renderer, live *liveSite, report *Report, o Options) (*plan, error) {
	start := time.Now()
	o.Progress.Stage("compare", r.objects())
	entries, err := r.render(ctx, o.Workers, nowhere{}, o.Progress)
	if err != nil {
		return nil, err
	}
	x := newIndex(r, entries)
	p, err := x.diff(live)
	if err != nil {
		return nil, err
	}
	report.Counts, report.Written = x.root.Counts, p.count(x.objects())
	report.Duration.Render += time.Since(start).Seconds()
	return p, nil
}

// write renders every object into out, then the manifest and the root.
func write(ctx context.Context, r *renderer, out output, report *Report, o Options) (index, error) {
	start := time.Now()
	o.Progress.Stage("write", r.objects())
	entries, err := r.render(ctx, o.Workers, out, o.Progress)
	if err != nil {
		return index{}, err
	}
	x := newIndex(r, entries)
	report.Counts = x.root.Counts
	report.Written = WriteReport{Added: x.objects()}
	if err := x.write(out); err != nil {
		return index{}, err
	}
	report.Duration.Render += time.Since(start).Seconds()
	return x, nil
}

// objects is the number of objects, manifest and root included.
func (x index) objects() int { return x.root.Counts.Objects + len(x.shards) + 1 }

// nowhere is an output that keeps nothing.
type nowhere struct{}

func (nowhere) begin() batch                 { return nowhere{} }
func (nowhere) finish(batch) error           { return nil }
func (nowhere) put(site.Entry, []byte) error { return nil }

type folderDestination struct {
	files afero.Fs
	path  string
}

func (d *folderDestination) check() error    { return checkFolder(d.files, d.path) }
func (d *folderDestination) live() *liveSite { return openLiveFolder(d.files, d.path) }

func (d *folderDestination) create(next string, p *plan, _ string) (output, func() error, error) {
	return &folder{files: d.files, path: next, live: d.path, plan: p}, func() error { return nil }, nil
}

type tarDestination struct {
	files afero.Fs
	path  string
}

func (d *tarDestination) check() error    { return checkTar(d.files, d.path) }
func (d *tarDestination) live() *liveSite { return openLiveTar(d.files, d.path) }

func (d *tarDestination) create(next string, _ *plan, asOf string) (output, func() error, error) {
	modTime, err := time.Parse(time.RFC3339, asOf)
	if err != nil {
		return nil, nil, fmt.Errorf("as_of: %w", err)
	}
	file, err := d.files.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, nil, fmt.Errorf("make the tar file: %w", err)
	}
	buffered := bufio.NewWriterSize(file, 1<<20)
	out := &tarOutput{file: buffered, modTime: modTime.UTC().Truncate(time.Second)}
	return out, func() error { return errors.Join(out.close(), buffered.Flush(), file.Close()) }, nil
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
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return "", fmt.Errorf("%s is a link to nowhere: make the folder that it points to, or remove it", path)
		}
		return path, nil
	} else if err != nil {
		return "", fmt.Errorf("output path: %w", err)
	}
	if real == filepath.Dir(real) {
		return "", fmt.Errorf("the output cannot be %s: name a folder in it", real)
	}
	return real, nil
}
