package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/cmd/internal/generate"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/parts"
)

// source are the flags that name the site or snapshot to publish.
type source struct {
	Site             string                                `placeholder:"SITE" help:"The site: folder, .tar file or parts ('FOLDER/part-*' or 's3://BUCKET/PREFIX/part-*', quoted)."`
	Snapshot         string                                `placeholder:"DIR" help:"Instead of a site: the folder of a snapshot, or s3://BUCKET/PREFIX, in any format that generate reads. The site is rendered in memory."`
	generate.Content `group:"How a snapshot is rendered:"` // --refreshed=s3://… uses the destination's server

	keep bool // keep the site's inputs, to put them into the bucket
}

// openAt opens a site on the destination's server.
func openAt(ctx context.Context, at string, run session, destination storage.S3Options) (storage.Site, error) {
	return storage.OpenSite(ctx, at, readBy(run, destination))
}

// readBy returns the options for reading a site or snapshot: those of the destination, with separate connections.
func readBy(run session, destination storage.S3Options) storage.S3Options {
	return storage.S3Options{Endpoint: destination.Endpoint, Region: destination.Region, Log: run.log}
}

// checkSite rejects parts inside the destination.
func checkSite(at, dest string) error {
	place, ok := parts.At(at)
	if !ok {
		return nil
	}
	from, err := storage.ParsePlace(place)
	if err != nil {
		return fmt.Errorf("--site: %w", err)
	}
	to, invalid := storage.ParseLocation(dest) // an invalid --dest is reported elsewhere
	inside := invalid == nil && (from.Folder != "" && to.Folder != "" && command.Inside(from.Folder, to.Folder) ||
		from.Bucket != "" && from.Bucket == to.Bucket && strings.HasPrefix(from.Prefix, to.Prefix))
	if inside {
		return fmt.Errorf("--site=%s is in --dest=%s: verify would count the parts as unknown objects", at, dest)
	}
	return nil
}

// choose resolves --site and --snapshot. If variables set both, the site wins: a job that generates first
// sets both.
func (s *source) choose(parsed *kong.Context) error {
	if given := command.Given(parsed); s.Site != "" && !given["snapshot"] {
		s.Snapshot = ""
	}
	return generate.ChooseSource(parsed, &s.Snapshot, &s.Site)
}

func (s *source) check(report string) error {
	switch {
	case s.Snapshot == "":
		return nil
	case command.Inside(report, s.Snapshot):
		return fmt.Errorf("--report=%s is in the snapshot", report)
	case s.Refreshed != nil && command.Inside(report, *s.Refreshed):
		return fmt.Errorf("--report=%s is in --refreshed, where the next run would read it as an object; name a file elsewhere", report)
	}
	return s.Validate()
}

// An openSite is a site to publish, from any source.
type openSite interface {
	publisher.Site
	io.Closer
}

// opener returns a function that opens the site for a destination, signed by the given flags.
func (s *source) opener(dest string, signs *signing) opener {
	return func(ctx context.Context, run session, server storage.S3Options) (openSite, *summary.Report, error) {
		keys, err := signs.keys(ctx)
		if err != nil {
			return nil, nil, err
		}
		return s.openFor(ctx, dest, keys, run, server)
	}
}

// openFor opens the site, or renders the snapshot and returns a report. It may keep the ranks of the
// destination; with keys, only ranks they signed.
func (s *source) openFor(ctx context.Context, dest string, keys note.Keys, run session, server storage.S3Options) (_ openSite, _ *summary.Report, err error) {
	if s.Snapshot == "" {
		opened, err := openAt(ctx, s.Site, run, server)
		return opened, nil, err
	}
	o, err := s.Options(ctx, dest, server, keys)
	if err != nil {
		return nil, nil, err
	}
	folder, closeFolder, err := generate.OpenSnapshot(ctx, s.Snapshot, readBy(run, server))
	if err != nil {
		return nil, nil, fmt.Errorf("--snapshot: %w", err)
	}
	if s.keep {
		return s.openKept(ctx, run, folder, closeFolder, o)
	}
	defer func() { err = errors.Join(err, closeFolder()) }()
	opened, report, err := render(ctx, run, folder, o)
	if err != nil {
		return nil, nil, err
	}
	report.Snapshot = s.Snapshot
	return opened, report, nil
}

// render renders the site of a snapshot; afterwards the snapshot may be closed.
func render(ctx context.Context, run session, snapshot afero.Fs, o generator.Options) (*renderedSite, *summary.Report, error) {
	o.Progress = run.progress
	opened, report, err := generator.Open(ctx, snapshot, o)
	run.progress.End()
	if err != nil {
		return nil, nil, err
	}
	return &renderedSite{Site: opened}, report, nil
}

// A renderedSite is a rendered site and its inputs.
type renderedSite struct {
	*generator.Site
	inputs *keptInputs // nil if not wanted
}

// published is the report of a publish, including rendering and purges.
type published struct {
	*publisher.Report
	Rendered *summary.Report `json:"rendered,omitempty"` // nil if the site was not rendered
	Stages   []command.Stage `json:"stages"`
	Purged   purges          `json:"purged,omitempty"`
}

func (p *published) setStages(stages []command.Stage) { p.Stages = stages }

// String formats everything for people.
func (p *published) String() string {
	rendered := ""
	if p.Rendered != nil {
		rendered = p.Rendered.String()
	}
	return rendered + p.Report.String() + p.Purged.String()
}
