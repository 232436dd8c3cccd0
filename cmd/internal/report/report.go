// Package report implements the command report, which shows what changed between two sites.
package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/report"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/parts"
)

// Command is report with its flags.
type Command struct {
	From    string   `placeholder:"SITE" help:"The old site: folder, .tar file, bucket (s3://BUCKET, s3://BUCKET/PREFIX, file:///FOLDER) or parts ('FOLDER/part-*' or 's3://BUCKET/PREFIX/part-*', quoted). Or the folder of a snapshot, rendered in memory."`
	To      string   `placeholder:"SITE" help:"The new site, in the same forms."`
	Saved   string   `placeholder:"FILE" help:"Instead of two sites: an earlier --out=FILE.json, for example to publish it after the new site replaced the old one."`
	Out     []string `placeholder:"FILE" help:"Write the report to a file: a page (.html), JSON (.json), or a short form in Markdown (.md; also - for standard output, and the job summary of GitHub Actions). Repeatable."`
	Publish string   `placeholder:"URL" help:"Put the page and the JSON into this bucket as _reports/{date}.html and .json, and list them in _reports/index: s3://BUCKET, s3://BUCKET/PREFIX or file:///FOLDER."`
	Date    string   `placeholder:"DATE" help:"Date of the report, such as 2026-11-22; by default today (UTC). A second report of a date replaces the first."`
	command.S3
	command.Messages
	Patience time.Duration `default:"2m" placeholder:"DURATION" help:"How long to retry temporary failures of a request (default ${default})."`
}

// Help returns the text below the first line of --help.
func (*Command) Help() string {
	return `It compares two manifests, reads differing objects about follows, and reports new and deleted lists, follows and unfollows, rises and falls on leaderboards, tags, profiles, and objects by kind. Generate both sites with the same flags. Two snapshots can be compared, too. The page loads nothing.

	followpress report --from s3://BUCKET --to site.tar --out report.html`
}

// Validate checks the flags before the run; kong calls it.
func (c *Command) Validate() error {
	switch {
	case c.Saved == "" && (c.From == "" || c.To == ""):
		return errors.New("missing flags: --from=SITE and --to=SITE, or --saved=FILE")
	case c.Saved != "" && (c.From != "" || c.To != "" || c.Date != ""):
		return errors.New("--saved excludes --from, --to and --date: the saved report has them")
	case len(c.Out) == 0 && c.Publish == "":
		return errors.New("missing flags: --out=FILE or --publish=URL")
	case c.Patience < 0:
		return fmt.Errorf("--patience=%v: must not be negative", c.Patience)
	}
	if _, err := c.date(); err != nil {
		return err
	}
	return c.checkLocations()
}

// checkLocations rejects invalid locations, unknown kinds of files, and files inside a site.
func (c *Command) checkLocations() error {
	for _, at := range []struct{ flag, text string }{{"from", c.From}, {"to", c.To}, {"publish", c.Publish}} {
		if at.text == "" || at.flag != "publish" && !strings.Contains(at.text, "://") {
			continue
		}
		if _, err := storage.ParseLocation(at.text); err != nil {
			return fmt.Errorf("--%s: %w", at.flag, err)
		}
	}
	for _, file := range c.Out {
		if !slices.Contains([]string{".html", ".json", ".md"}, filepath.Ext(file)) && file != command.StandardOutput {
			return fmt.Errorf("--out=%s: want FILE.html, FILE.json, FILE.md, or - for Markdown on standard output", file)
		}
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
	for _, file := range c.Out {
		if err := command.CheckFile("out", file, ""); err != nil {
			return err
		}
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
	for _, file := range c.Out {
		body := []byte(markdown)
		switch filepath.Ext(file) {
		case ".html":
			body = page
		case ".json":
			body = figures
		}
		if err := command.WriteFile(file, body, stdout); err != nil {
			return err
		}
	}
	if c.Saved != "" { // the job summary got it when the report was made
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
	// A missing or unreadable site is not an error: the report is published.
	if body, err := to.Get(ctx, site.RootKey); err == nil {
		if root, err := site.ParseRoot(body); err == nil && root.Config.Explorer && !root.Config.Reports {
			command.Warn(stderr, c.Publish+": the site's explorer does not link to reports; generate it with --reports")
		}
	}
	return nil
}
