// Package report is the command that says what changed between two sites.
package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/report"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/parts"
)

// Command is the command with its flags.
type Command struct {
	From     string `placeholder:"SITE" help:"The old site: a folder or .tar file that generate wrote, a bucket: s3://BUCKET, s3://BUCKET/PREFIX or file:///FOLDER, or parts: 'FOLDER/part-*' or 's3://BUCKET/PREFIX/part-*', in quotes. Or the folder of a snapshot, whose site is rendered in memory."`
	To       string `placeholder:"SITE" help:"The new site, named in the same ways."`
	Saved    string `placeholder:"FILE" help:"Instead of two sites: a report that --json has written before. It can so be published after the new site has replaced the old one."`
	Out      string `placeholder:"FILE" help:"Write the report as one page of HTML, with plots; - is standard output."`
	JSON     string `name:"json" placeholder:"FILE" help:"Write the report as JSON; - is standard output."`
	Markdown string `placeholder:"FILE" help:"Write the report in short, as Markdown; - is standard output. In a job of GitHub Actions it is also added to the job's summary."`
	Publish  string `placeholder:"URL" help:"Put the page and the JSON into this bucket as _reports/{date}.html and .json, and add them to _reports/index: s3://BUCKET, s3://BUCKET/PREFIX or file:///FOLDER."`
	Date     string `placeholder:"DATE" help:"Date of the report, such as 2026-11-22; by default today (UTC). Publishing a second report of a date replaces the first."`
	command.S3
	command.Messages
	Patience time.Duration `default:"2m" placeholder:"DURATION" help:"How long to retry a request that fails temporarily (default ${default})."`
}

// Help is what --help shows below the first line.
func (*Command) Help() string {
	return `It compares the manifests of two sites, reads the objects that differ where they say who follows whom, and reports new and gone lists, follows and unfollows, who rose and fell on the leaderboards, tags, profiles, and objects by kind. The sites must have been generated with the same flags. Two snapshots can be compared, too. The page loads nothing.

	followpress report --from s3://BUCKET --to site.tar --out report.html`
}

// Validate checks the flags before the run; kong calls it.
func (c *Command) Validate() error {
	switch {
	case c.Saved == "" && (c.From == "" || c.To == ""):
		return errors.New("missing flags: --from=SITE and --to=SITE, or --saved=FILE")
	case c.Saved != "" && (c.From != "" || c.To != "" || c.Date != ""):
		return errors.New("--saved excludes --from, --to and --date: the report has them")
	case c.Out == "" && c.JSON == "" && c.Markdown == "" && c.Publish == "":
		return errors.New("missing flags: --out=FILE, --json=FILE, --markdown=FILE or --publish=URL")
	case isSame(c.Out, c.JSON), isSame(c.Out, c.Markdown), isSame(c.JSON, c.Markdown):
		return errors.New("only one of --out, --json and --markdown can be written to one file or to standard output")
	case c.Patience < 0:
		return fmt.Errorf("--patience=%v: a time cannot be negative", c.Patience)
	}
	if _, err := c.date(); err != nil {
		return err
	}
	return c.checkLocations()
}

// isSame reports whether two flags name the same file, or both standard output.
func isSame(a, b string) bool { return a != "" && b != "" && filepath.Clean(a) == filepath.Clean(b) }

// checkLocations refuses locations that are none, and files that would be in a site.
func (c *Command) checkLocations() error {
	for _, at := range []struct{ flag, text string }{{"from", c.From}, {"to", c.To}, {"publish", c.Publish}} {
		if at.text == "" || at.flag != "publish" && !strings.Contains(at.text, "://") {
			continue
		}
		if _, err := storage.ParseLocation(at.text); err != nil {
			return fmt.Errorf("--%s: %w", at.flag, err)
		}
	}
	for _, file := range []string{c.Out, c.JSON, c.Markdown} {
		for _, folder := range []string{c.From, c.To, c.Publish} {
			if place, ok := parts.At(folder); ok {
				folder = place
			}
			if at, err := storage.ParseLocation(folder); err == nil {
				folder = at.Folder
			}
			if folder != "" && command.Inside(file, folder) {
				return fmt.Errorf("%s is in a site: name another file", file)
			}
		}
	}
	return nil
}

func (c *Command) date() (time.Time, error) {
	if c.Date == "" {
		return time.Now(), nil
	}
	date, err := time.Parse(time.DateOnly, c.Date)
	if err != nil {
		return time.Time{}, fmt.Errorf("--date=%s is not a date such as 2026-11-22", c.Date)
	}
	return date, nil
}

// Run makes or reads the report, and writes it.
func (c *Command) Run(ctx context.Context, stdout, stderr io.Writer) error {
	if err := errors.Join(command.CheckFile("out", c.Out, ""), command.CheckFile("json", c.JSON, ""), command.CheckFile("markdown", c.Markdown, "")); err != nil {
		return err
	}
	get := c.compare
	if c.Saved != "" {
		get = c.read
	}
	r, err := get(ctx, stderr)
	if err != nil {
		return err
	}
	fmt.Fprint(stderr, r)
	if err := c.write(r, stdout); err != nil {
		return err
	}
	return c.publish(ctx, r, stderr)
}

func (c *Command) read(context.Context, io.Writer) (*report.Report, error) {
	body, err := os.ReadFile(c.Saved)
	if err != nil {
		return nil, fmt.Errorf("--saved: %w", err)
	}
	r, err := report.Parse(body)
	if err != nil {
		return nil, fmt.Errorf("--saved=%s: %w", c.Saved, err)
	}
	return r, nil
}

func (c *Command) compare(ctx context.Context, stderr io.Writer) (_ *report.Report, err error) {
	if err := c.checkKinds(); err != nil {
		return nil, err
	}
	progress := command.NewProgress(stderr)
	defer progress.End()
	from, err := c.open(ctx, c.From, progress)
	if err != nil {
		return nil, fmt.Errorf("--from: %w", err)
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := c.open(ctx, c.To, progress)
	if err != nil {
		return nil, fmt.Errorf("--to: %w", err)
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	date, err := c.date()
	if err != nil {
		return nil, err
	}
	r, err := report.Compare(ctx, report.Side{Site: from, Name: c.From}, report.Side{Site: to, Name: c.To},
		report.Options{Date: date, Patience: c.Patience, Progress: progress})
	return r, err
}

func (c *Command) write(r *report.Report, stdout io.Writer) error {
	page, err := r.HTML()
	if err != nil {
		return err
	}
	figures, err := r.JSON()
	if err != nil {
		return err
	}
	markdown := r.Markdown()
	for _, file := range []struct {
		name string
		body []byte
	}{{c.Out, page}, {c.JSON, figures}, {c.Markdown, []byte(markdown)}} {
		if file.name == "" {
			continue
		}
		if err := command.WriteFile(file.name, file.body, stdout); err != nil {
			return err
		}
	}
	if c.Saved != "" { // the summary has it since it was made
		return nil
	}
	return command.WriteSummary(markdown)
}

func (c *Command) publish(ctx context.Context, r *report.Report, stderr io.Writer) error {
	if c.Publish == "" {
		return nil
	}
	at, err := storage.ParseLocation(c.Publish)
	if err != nil {
		return fmt.Errorf("--publish: %w", err)
	}
	to, err := storage.OpenBucket(ctx, at, c.Server())
	if err != nil {
		return fmt.Errorf("--publish: %w", err)
	}
	if err = report.Publish(ctx, to, r, c.Patience); errors.Is(err, report.ErrUnsafe) {
		command.Warn(stderr, fmt.Sprintf("%s: %v", c.Publish, err))
		err = nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "%s: the report of %s is published\n", c.Publish, r.Date)
	// A bucket without a site, or one that cannot be read, is no reason to fail: the report is there.
	if body, err := to.Get(ctx, site.RootKey); err == nil {
		if root, err := site.ParseRoot(body); err == nil && root.Config.Explorer && !root.Config.Reports {
			command.Warn(stderr, c.Publish+": the explorer of the site does not lead to reports: generate it with --reports")
		}
	}
	return nil
}
