package publish

import (
	"context"
	"errors"
	"fmt"

	"github.com/alecthomas/kong"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/cmd/internal/generate"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/storage"
)

// source are the flags that say what to publish: a site, or the site of a snapshot.
type source struct {
	Site      string `placeholder:"SITE" help:"The site: a folder or .tar file that generate wrote."`
	Snapshot  string `placeholder:"DIR" help:"Instead of a site: the folder of a snapshot, in any of the formats that generate takes. Its site is rendered in memory."`
	rendering `group:"How a snapshot is rendered:"`
}

// rendering are the flags of a snapshot. The server of --refreshed=s3://… is that of the destination.
type rendering struct {
	Workers int `default:"0" placeholder:"N" help:"Goroutines that parse and render; 0 means one per core."`
	generate.Content
}

// choose decides between the site and the snapshot. If both are set by variables, the site wins: a job
// that generates first has both.
func (s *source) choose(parsed *kong.Context) error {
	if given := generate.Given(parsed); s.Site != "" && !given["snapshot"] {
		s.Snapshot = ""
	}
	return generate.ChooseSource(parsed, &s.Snapshot, &s.Site)
}

// check checks the flags of a snapshot.
func (s *source) check(report string) error {
	switch {
	case s.Snapshot == "":
		return nil
	case s.Workers < 0:
		return fmt.Errorf("--workers=%d: use 1 or more, or 0 for one per core", s.Workers)
	case command.ReportInside(report, s.Snapshot):
		return fmt.Errorf("--report=%s is in the snapshot", report)
	case s.Refreshed != nil && command.ReportInside(report, *s.Refreshed):
		return fmt.Errorf("--report=%s is in --refreshed: the next run would take it for an object", report)
	}
	return s.Validate()
}

// openSite opens the site, or renders that of the snapshot, which has a report.
func (s *source) openSite(ctx context.Context, run session, server storage.S3Options) (_ storage.Site, _ *generator.Report, err error) {
	if s.Snapshot == "" {
		opened, err := storage.OpenSite(s.Site)
		return opened, nil, err
	}
	o, err := s.OptionsAt(ctx, server)
	if err != nil {
		return nil, nil, err
	}
	folder, err := snapshot.Open(s.Snapshot)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	o.Workers, o.Progress = s.Workers, run.progress
	opened, report, err := generator.Open(ctx, folder, o)
	run.progress.End()
	if err != nil {
		return nil, nil, err
	}
	report.Snapshot = s.Snapshot
	return &renderedSite{opened}, report, nil
}

// A renderedSite is a site of the generator with the errors of a storage.Site.
type renderedSite struct{ *generator.Site }

func (s *renderedSite) Get(ctx context.Context, key site.Key) ([]byte, error) {
	body, err := s.Site.Get(ctx, key)
	if errors.Is(err, generator.ErrNoObject) {
		return nil, storage.ErrNotFound
	}
	return body, err
}

// published is the report of a publish, and of what was rendered for it.
type published struct {
	*publisher.Report
	Rendered *generator.Report `json:"rendered,omitempty"` // nil for a site
	Stages   []command.Stage   `json:"stages"`
}

func (p *published) setStages(stages []command.Stage) { p.Stages = stages }

// String formats both for a person.
func (p *published) String() string {
	if p.Rendered == nil {
		return p.Report.String()
	}
	return p.Rendered.String() + p.Report.String()
}
