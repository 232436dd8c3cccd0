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

// source are the flags that say what to publish: a site, or the site of a snapshot.
type source struct {
	Site             string                                `placeholder:"SITE" help:"The site: a folder or .tar file that generate wrote, or parts: 'FOLDER/part-*' or 's3://BUCKET/PREFIX/part-*', in quotes."`
	Snapshot         string                                `placeholder:"DIR" help:"Instead of a site: the folder of a snapshot, or s3://BUCKET/PREFIX, in any of the formats that generate takes. Its site is rendered in memory."`
	generate.Content `group:"How a snapshot is rendered:"` // the server of --refreshed=s3://… is that of the destination

	keep bool // what the site was made of, to put it into the bucket
}

// openAt opens a site, on the server of the destination.
func openAt(ctx context.Context, at string, run session, destination storage.S3Options) (storage.Site, error) {
	return storage.OpenSite(ctx, at, readBy(run, destination))
}

// readBy says how to reach a site or a snapshot that is read: as the destination, with other connections.
func readBy(run session, destination storage.S3Options) storage.S3Options {
	return storage.S3Options{Endpoint: destination.Endpoint, Region: destination.Region, Log: run.log}
}

// checkSite refuses parts in the destination.
func checkSite(at, dest string) error {
	place, ok := parts.At(at)
	if !ok {
		return nil
	}
	from, err := storage.ParsePlace(place)
	if err != nil {
		return fmt.Errorf("--site: %w", err)
	}
	to, invalid := storage.ParseLocation(dest) // that it is invalid is said of --dest
	inside := invalid == nil && (from.Folder != "" && to.Folder != "" && command.Inside(from.Folder, to.Folder) ||
		from.Bucket != "" && from.Bucket == to.Bucket && strings.HasPrefix(from.Prefix, to.Prefix))
	if inside {
		return fmt.Errorf("--site=%s is in --dest=%s: verify would take the parts for unknown objects", at, dest)
	}
	return nil
}

// choose decides between the site and the snapshot. If both are set by variables, the site wins: a job
// that generates first has both.
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
		return fmt.Errorf("--report=%s is in --refreshed: the next run would take it for an object", report)
	}
	return s.Validate()
}

// An openSite is a site to publish, whatever it is made from.
type openSite interface {
	publisher.Site
	io.Closer
}

// opener returns what opens the site for a destination, which is signed as the flags say.
func (s *source) opener(dest string, signs *signing) opener {
	return func(ctx context.Context, run session, server storage.S3Options) (openSite, *summary.Report, error) {
		keys, err := signs.keys(ctx)
		if err != nil {
			return nil, nil, err
		}
		return s.openFor(ctx, dest, keys, run, server)
	}
}

// openFor opens the site, or renders that of the snapshot, which has a report. The ranks that it may hold are those of
// the destination; with keys, as those have signed them.
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

// render renders the site of a snapshot, which is not needed any more then.
func render(ctx context.Context, run session, snapshot afero.Fs, o generator.Options) (*renderedSite, *summary.Report, error) {
	o.Progress = run.progress
	opened, report, err := generator.Open(ctx, snapshot, o)
	run.progress.End()
	if err != nil {
		return nil, nil, err
	}
	return &renderedSite{Site: opened}, report, nil
}

// A renderedSite is a site of the generator, and what it was made of.
type renderedSite struct {
	*generator.Site
	inputs *keptInputs // nil if they are not wanted
}

// published is the report of a publish, and of what was rendered for it and purged after it.
type published struct {
	*publisher.Report
	Rendered *summary.Report `json:"rendered,omitempty"` // nil for a site
	Stages   []command.Stage `json:"stages"`
	Purged   purges          `json:"purged,omitempty"`
}

func (p *published) setStages(stages []command.Stage) { p.Stages = stages }

// String formats all for a person.
func (p *published) String() string {
	rendered := ""
	if p.Rendered != nil {
		rendered = p.Rendered.String()
	}
	return rendered + p.Report.String() + p.Purged.String()
}

// Markdown formats what was published and purged, for the summary of a job.
func (p *published) Markdown() string { return p.Report.Markdown() + p.Purged.Markdown() }
