// Package generate implements the command generate, which renders a snapshot into a folder or a tar
// file. Other commands share its flags for rendering.
package generate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/internal/release"
	"github.com/followpress/followpress/internal/siteflags"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/site/ranks"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/checked"
	"github.com/followpress/followpress/storage/refreshed"
)

// Command is generate with its flags.
type Command struct {
	Snapshot string `required:"" placeholder:"DIR" help:"Folder of the snapshot, or s3://BUCKET/PREFIX: meta.json and tables as .ndjson, .ndjson.gz, .ndjson.zst or .parquet, optionally in parts (accounts-00001.ndjson.zst)."`
	Out      string `default:"out" placeholder:"OUT" help:"Output folder, or a file that ends in .tar (default ${default})."`
	Report   string `placeholder:"FILE" help:"Write a report as JSON, with time and bytes by stage; - is standard output. Must be outside the output folder."`
	DryRun   bool   `help:"Render everything, compare it with the old site, and write nothing. The report shows what a run would write."`
	NoSync   bool   `help:"Do not sync the new site to disk before it replaces the old one: faster, but a power failure soon after may destroy both."`
	Rebuild  bool   `help:"Rewrite every object, even unchanged ones."`
	command.Messages
	command.S3
	Content `group:"How a snapshot is rendered:"`
}

// Help returns the text below the first line of --help.
func (*Command) Help() string {
	return `Every answer of the API becomes a file. The complete new site replaces the old one atomically; a failed run, even by power failure, leaves the old one intact. Only objects whose bytes changed are written.

	followpress generate --snapshot graph-snapshot --out site.tar`
}

// Content are the flags for the content of a site.
type Content struct {
	OnInvalid    string   `enum:"stop,skip" default:"stop" placeholder:"stop|skip" help:"Stop at an invalid row, or skip and report it (default ${default})."`
	Refreshed    *string  `placeholder:"LOCATION" help:"Data that the fallback fetched for cache=fresh, to merge if newer: s3://BUCKET/_refresh, s3://BUCKET/PREFIX/_refresh, or a folder. A signed site accepts signed data only."`
	RefreshedKey []string `sep:"none" placeholder:"PUBLIC" help:"Accept only refreshed data signed by this key; repeatable."`
	siteflags.Flags
}

// noRanks is the value of --ranks-from that recomputes all ranks.
const noRanks = "none"

func (r *Content) validateRanks() error {
	switch {
	case r.RanksEvery < 0 || r.RanksEvery%time.Second != 0:
		return fmt.Errorf("--ranks-every=%s: use whole seconds, such as 24h", r.RanksEvery)
	case r.RanksFrom == nil:
		return nil
	case r.RanksEvery == 0:
		return errors.New("--ranks-from: only with --ranks-every, such as 24h")
	}
	if *r.RanksFrom == noRanks {
		return nil
	}
	if _, err := storage.ParsePlace(*r.RanksFrom); err != nil {
		return fmt.Errorf("--ranks-from: %w", err)
	}
	return nil
}

// Held reads the ranks that details keep until they are due, from --ranks-from, else from the site at
// usual unless it is "". The result is nil without --ranks-every, with --ranks-from=none, and if no ranks
// exist yet. With keys, one of them must have signed the site: its ranks go into a signed site.
func (r *Content) Held(ctx context.Context, usual string, server storage.S3Options, keys note.Keys) (*ranks.Held, error) {
	from, flag := usual, "the destination"
	if r.RanksFrom != nil {
		from, flag = *r.RanksFrom, "--ranks-from"
	}
	if r.RanksEvery == 0 || from == "" || from == noRanks {
		return nil, nil
	}
	check := func(ctx context.Context, s storage.Site) (storage.Site, error) {
		if keys.None() {
			return s, nil
		}
		return checked.Open(ctx, s, keys, checked.Options{})
	}
	body, err := readRanks(ctx, from, server, check)
	if r.RanksFrom == nil && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, storage.ErrNoBucket)) {
		return nil, nil // the run creates it, or reports the error
	}
	if err != nil && !keys.None() && !storage.Temporary(err) {
		return nil, fmt.Errorf("%s: no key of this run signed the site with these ranks: %w; recompute ranks with --ranks-from=none", flag, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	if body == nil {
		return nil, nil
	}
	held, err := ranks.Parse(body)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w; repair it, or delete it there to recompute all ranks", flag, from, err)
	}
	return held, nil
}

// Validate checks the flags before the run; kong calls it.
func (r *Content) Validate() error {
	if _, err := r.location(); err != nil {
		return err
	}
	if _, err := r.Refreshers(); err != nil {
		return err
	}
	if err := r.validateRanks(); err != nil {
		return err
	}
	if _, err := command.PublicKeys("explorer-key", r.ExplorerKey); err != nil {
		return err
	}
	return r.Check()
}

// location parses --refreshed; empty without the flag. An empty flag is an error: usually an unset variable.
func (r *Content) location() (at storage.Location, err error) {
	if r.Refreshed == nil {
		return at, nil
	}
	if at, err = refreshed.Parse(*r.Refreshed); err != nil {
		return at, fmt.Errorf("--refreshed: %w", err)
	}
	return at, nil
}

// Options returns the options for the generator. ranksFrom is the default of --ranks-from, "" for none;
// server is for s3://… locations. keys sign the site: with any, ranks must be signed by them, and
// refreshed data by --refreshed-key.
func (r *Content) Options(ctx context.Context, ranksFrom string, server storage.S3Options, keys note.Keys) (o generator.Options, err error) {
	o = generator.Options{Config: r.Site(), SkipInvalid: r.OnInvalid == "skip", Generator: release.Version()}
	if o.Ranks, err = r.Held(ctx, ranksFrom, server, keys); err != nil {
		return o, err
	}
	at, err := r.location()
	if err != nil || r.Refreshed == nil {
		return o, err
	}
	refreshed, err := refreshed.Open(ctx, at, server)
	if err != nil {
		return o, fmt.Errorf("--refreshed: %w", err)
	}
	refreshers, err := r.Refreshers()
	if err != nil {
		return o, err
	}
	o.Refreshed = refreshed
	if !keys.None() || !refreshers.None() {
		o.Refreshed = signedRefreshes{refreshed, refreshers}
	}
	return o, nil
}

// Refreshers returns the keys of --refreshed-key.
func (r *Content) Refreshers() (note.Keys, error) {
	return command.PublicKeys("refreshed-key", r.RefreshedKey)
}

// signedRefreshes yields refreshes signed by one of the keys, and others without a body.
type signedRefreshes struct {
	from generator.Refreshed
	keys note.Keys
}

// Each implements generator.Refreshed.
func (s signedRefreshes) Each(ctx context.Context, found func(key site.Key, body []byte) error) error {
	return s.from.Each(ctx, func(key site.Key, body []byte) error {
		entry, err := s.keys.OpenEntry(site.RefreshPrefix+key, body, time.Now())
		if err != nil {
			entry = nil // others may write there, and must not be able to stop every run
		}
		return found(key, entry)
	})
}

// Validate checks the flags before the run; kong calls it.
func (c *Command) Validate() error {
	if err := checkOut(c.Out); err != nil {
		return err
	}
	if command.Inside(c.Report, c.Out) {
		return fmt.Errorf("--report=%s is in the output, where the next run would have to remove it; name a file elsewhere", c.Report)
	}
	at, err := c.location()
	if err == nil && at.Folder != "" && command.Inside(c.Report, at.Folder) {
		return fmt.Errorf("--report=%s is in --refreshed, where the next run would read it as an object; name a file elsewhere", c.Report)
	}
	return err
}

// location matches URLs, even with merged slashes.
var location = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*):/+(.*)`)

// packed matches names of archives and compressed files. generate writes only .tar.
var packed = regexp.MustCompile(`(?i)\.(tar(\..*)?|tgz|tzst|txz|tbz2?|zip)$`)

// checkOut rejects a bucket, a URL or an archive name, which would silently become a folder.
func checkOut(out string) error {
	if url := location.FindStringSubmatch(out); url != nil {
		scheme, rest := url[1], url[2]
		switch strings.ToLower(scheme) {
		case "s3":
			return fmt.Errorf("--out=%s is a bucket; generate --out site.tar, then publish --site site.tar --dest %s://%s", out, scheme, rest)
		case "file":
			return fmt.Errorf("--out=%s is a URL; name the path, --out /%s, or use publish --site SITE --dest file:///%[2]s for a bucket in a folder", out, rest)
		}
		return fmt.Errorf("--out=%s is a URL; name a folder, or a file that ends in .tar", out)
	}
	out = filepath.Clean(out)
	if end := packed.FindStringIndex(out); end != nil && !strings.HasSuffix(out, ".tar") {
		return fmt.Errorf("--out=%s: name a file that ends in .tar, such as %s.tar, and compress it afterwards, or another folder", out, out[:end[0]])
	}
	return nil
}

// Run renders the site.
func (c *Command) Run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	if err := command.CheckFile("report", c.Report, c.Out); err != nil {
		return err
	}
	o, err := c.Options(ctx, "", c.Server(), note.Keys{})
	if err != nil {
		return err
	}
	folder, closeFolder, err := OpenSnapshot(ctx, c.Snapshot, c.Server())
	if err != nil {
		return fmt.Errorf("--snapshot: %w", err)
	}
	defer func() { err = errors.Join(err, closeFolder()) }()
	progress := command.NewProgress(stderr)
	o.Rebuild, o.DryRun, o.NoSync, o.Progress = c.Rebuild, c.DryRun, c.NoSync, progress
	report, err := generator.ToPath(ctx, folder, c.Out, o)
	progress.End()
	if errors.Is(err, generator.ErrLeftBehind) {
		command.Warn(stderr, strings.ReplaceAll(err.Error(), "\n", "; ")) // after a signal, the caller prints only the signal's name
	}
	told := &staged{Report: report, Stages: progress.Stages()}
	if err != nil {
		told.Report, told.Error = &summary.Report{Out: c.Out, Tables: map[string]*summary.TableReport{}, Invalid: []*snapshot.RowError{}}, err.Error()
		told.LongTexts.Examples = []summary.LongTextExample{}
	} else {
		fmt.Fprint(stderr, report)
	}
	told.Snapshot = c.Snapshot
	return errors.Join(err, command.WriteReport(c.Report, told, stdout))
}

type staged struct {
	*summary.Report
	Error  string          `json:"error,omitempty"` // then the report has only the stages before the error
	Stages []command.Stage `json:"stages"`
}
