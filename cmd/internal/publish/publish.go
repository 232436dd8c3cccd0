// Package publish implements the commands for a bucket: publish, init, verify, repair and purge.
package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/internal/plain"
	"github.com/followpress/followpress/internal/secret"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/site/tags"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/parts"
)

// Publish is the command publish, which uploads changes to a bucket.
type Publish struct {
	source
	command.MaxAge
	DryRun bool `help:"Show the plan, and write nothing."`
	inputs
	publishing
}

// Help returns the text below the first line of --help.
func (*Publish) Help() string {
	return `It uploads only changes, writes objects before references to them, allows one publisher at a time, and resumes a killed run from any machine. --snapshot renders objects during the upload, without files in between. Credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the shared credentials file, or the machine's role.

	followpress publish --site site.tar --dest s3://BUCKET`
}

// AfterApply resolves --snapshot and --site.
func (p *Publish) AfterApply(parsed *kong.Context) error { return p.choose(parsed) }

// Validate checks the flags before the run; kong calls it.
func (p *Publish) Validate() error {
	if p.Site == "" && p.Snapshot == "" {
		return errors.New("missing flags: --site=SITE or --snapshot=DIR")
	}
	return errors.Join(p.check(p.Report), checkSite(p.Site, p.Dest), p.checkInputs(p.Snapshot, p.OnInvalid), p.CheckMaxAge(), p.checkPublishing(p.Site))
}

// Run publishes.
func (p *Publish) Run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	return p.run(ctx, stdout, stderr, p.DryRun, func(s session) (result, error) {
		if p.refreshers, err = p.Refreshers(); err != nil {
			return nil, err
		}
		p.keep = p.Inputs
		told, err := p.publish(ctx, s, p.opener(p.Dest, &p.signing), p.DryRun)
		if err == nil {
			err = p.CheckAge(told.AsOf)
		}
		return told, err
	})
}

// Init is the command init, which prepares a bucket.
type Init struct {
	Site string `placeholder:"SITE" help:"Then publish this site: folder, .tar file or parts."`
	publishing
}

// Help returns the text below the first line of --help.
func (*Init) Help() string {
	return `It creates the bucket if it does not exist, makes a site's objects, and no others, publicly readable, and allows browsers of all origins (CORS). Features the server lacks are reported and skipped. With --site, it publishes that site; without, the flags for reports and purges have no effect.

	followpress init --dest s3://BUCKET --site site.tar`
}

// Validate checks the flags before the run; kong calls it.
func (i *Init) Validate() error {
	return errors.Join(checkSite(i.Site, i.Dest), i.checkPublishing(i.Site))
}

// Run prepares the bucket, and publishes the site if there is one.
func (i *Init) Run(ctx context.Context, stdout, stderr io.Writer) error {
	return i.run(ctx, stdout, stderr, false, func(s session) (result, error) {
		if i.Site != "" {
			from := source{Site: i.Site}
			return i.publish(ctx, s, from.opener(i.Dest, &i.signing), false, i.setUp)
		}
		to, err := i.openToWrite(ctx, s, true)
		if err != nil {
			return nil, err
		}
		return nil, i.setUp(ctx, s, nil, to)
	})
}

// Repair is the command repair, which fixes what verify reports.
type Repair struct {
	Site   string `required:"" placeholder:"SITE" help:"The site that the bucket holds: folder, .tar file or parts."`
	DryRun bool   `help:"Show what would be put and deleted, and write nothing."`
	writing
	excluding
	refreshed
}

// Help returns the text below the first line of --help.
func (*Repair) Help() string {
	return `It puts missing and altered objects back, and deletes unknown ones, which are named like a site's objects. Foreign objects stay; the exit status is 1 if any is not covered by --exclude.

	followpress repair --site site.tar --dest s3://BUCKET`
}

// Validate checks the flags before the run; kong calls it.
func (r *Repair) Validate() error {
	return errors.Join(checkSite(r.Site, r.Dest), r.checkWriting(r.Site), r.checkPatterns())
}

// Run repairs.
func (r *Repair) Run(ctx context.Context, stdout, stderr io.Writer) error {
	return r.run(ctx, stdout, stderr, r.DryRun, func(s session) (told result, err error) {
		told = &publisher.Verification{}
		to, err := r.openToWrite(ctx, s, !r.DryRun)
		if err != nil {
			return told, err
		}
		from, err := openAt(ctx, r.Site, s, r.Server())
		if err != nil {
			return told, err
		}
		defer func() { err = errors.Join(err, from.Close()) }()
		o := r.writeOptions(s)
		o.Exclude, o.DryRun = r.Exclude, r.DryRun
		if o.Refreshers, err = r.refreshers(); err != nil {
			return told, err
		}
		v, err := publisher.Repair(ctx, from, to, o)
		if v != nil {
			told = v
		}
		if err == nil && v.Foreign.Count > 0 {
			err = leftAlone(v)
		}
		return told, err
	})
}

// Verify is the command verify, which compares a bucket with its manifest.
type Verify struct {
	destination
	excluding
	checking
	edges
	command.MaxAge
}

// Help returns the text below the first line of --help.
func (*Verify) Help() string {
	return `It compares a listing of the bucket with its manifest, and writes nothing. The exit status is 1 if objects are missing, altered, unknown (named like a site's objects) or foreign (named otherwise). With --key, --dest may be https://HOST, which cannot be listed.

	followpress verify --dest s3://BUCKET`
}

// Validate checks the flags before the run; kong calls it.
func (v *Verify) Validate() error {
	if storage.IsWeb(v.Dest) {
		return errors.Join(v.checkOnline(), v.checkKeys(), v.checkURLs(), v.CheckMaxAge())
	}
	return errors.Join(v.checkDestination(), v.checkPatterns(), v.checkKeys(), v.checkURLs(), v.CheckMaxAge())
}

// Run verifies.
func (v *Verify) Run(ctx context.Context, stdout, stderr io.Writer) error {
	return v.report(stdout, stderr, secret.URL(v.Dest).String(), func(s session) (result, error) {
		verify := v.verifyListed
		if storage.IsWeb(v.Dest) {
			verify = v.verifyOnline
		}
		found, err := verify(ctx, s)
		if found.AsOf != "" {
			err = errors.Join(err, v.CheckAge(found.AsOf))
		}
		return found, err
	})
}

// verifyListed verifies a bucket by a listing.
func (v *Verify) verifyListed(ctx context.Context, s session) (*publisher.Verification, error) {
	to, err := v.openBucket(ctx, s, false)
	if err != nil {
		return &publisher.Verification{}, err
	}
	o := v.readOptions(s)
	o.Exclude = v.Exclude
	if o.Refreshers, err = v.refreshers(); err != nil {
		return &publisher.Verification{}, err
	}
	found, err := publisher.Verify(ctx, to, o)
	if found == nil {
		return &publisher.Verification{}, err
	}
	if err == nil && len(v.Key) > 0 {
		found.Signed, err = v.verifySigned(ctx, s, to)
	}
	switch n := found.Missing.Count + found.Altered.Count + found.Unknown.Count; {
	case err != nil:
	case n > 0:
		advice := "run followpress repair"
		if found.Marked {
			advice = "run followpress publish once no publish is running" // repair refuses
		}
		err = fmt.Errorf("%s differs from its manifest: %d missing, %d altered, %d unknown; %s",
			v.Dest, found.Missing.Count, found.Altered.Count, found.Unknown.Count, advice)
	case found.Foreign.Count > 0:
		err = leftAlone(found)
	}
	return found, errors.Join(cmp.Or(err, v.differs(found.Signed, "publish the site again")), v.checkEdges(ctx, to))
}

func leftAlone(v *publisher.Verification) error {
	like, exclude := string(v.Foreign.Keys[0]), ""
	if quoted := strconv.Quote(like); quoted != `"`+like+`"` {
		like, exclude = quoted, " "+excludedBy(like)
	}
	return fmt.Errorf("%d foreign objects, such as %s; name them with --exclude%s, remove them, or keep the site below its own prefix",
		v.Foreign.Count, like, exclude)
}

// excludedBy returns an --exclude pattern that matches exactly this key, quoted for a shell.
func excludedBy(key string) string {
	return "'" + strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) || strings.ContainsRune(`*?[\'`, r) {
			return '?'
		}
		return r
	}, key) + "'"
}

// excluding is the flag for foreign objects that verify and repair ignore.
type excluding struct {
	Exclude []string `sep:"none" placeholder:"PATTERN" help:"Ignore foreign objects that match, such as robots.txt or pictures/*; a folder includes its contents; repeatable."`
}

func (e *excluding) checkPatterns() error {
	if _, err := (publisher.Options{Exclude: e.Exclude}).WithDefaults(); err != nil {
		return fmt.Errorf("--%w", err)
	}
	return nil
}

// A session has the logger, the progress and the streams of one run.
type session struct {
	log      *slog.Logger
	progress *command.Progress
	stderr   io.Writer
}

// A result is the report of a run, successful or not.
type result interface {
	Note(dest string, err error)
	fmt.Stringer
}

// reporting are the flags of all commands in this package.
type reporting struct {
	patience `group:"Advanced:"`
	Report   string `placeholder:"FILE" help:"Write a report as JSON; - is standard output. Must be outside sites and bucket folders."`
	command.Messages
	LogLevel string `group:"Advanced:" enum:"debug,info,warn,error" default:"warn" placeholder:"debug|info|warn|error" help:"Minimum level of the log on standard error; debug logs every request (default ${default})."`
}

type patience struct {
	Patience time.Duration `default:"2m" placeholder:"DURATION" help:"How long to retry temporary failures of a request (default ${default})."`
}

// report calls do and reports its result, even after an error.
func (r *reporting) report(stdout, stderr io.Writer, dest string, do func(s session) (result, error)) error {
	if err := command.CheckFile("report", r.Report, ""); err != nil {
		return err
	}
	log := command.Logger(stderr, command.LogLevel(r.LogLevel))
	s := session{log: log, progress: command.NewProgress(stderr), stderr: stderr}
	told, err := do(s)
	s.progress.End()
	if told == nil { // init without a site
		return err
	}
	told.Note(dest, err)
	text := told.String()
	fmt.Fprint(stderr, plain.Text(text)) // anyone may have named the keys in a bucket
	if staged, ok := told.(interface{ setStages([]command.Stage) }); ok {
		staged.setStages(s.progress.Stages())
	}
	return errors.Join(err, command.WriteReport(r.Report, told, stdout), command.WriteSummary(forJob(dest, text, err)))
}

// forJob formats a report for the summary of a CI job: as code, so that no key is taken for
// Markdown. plain.Text comes first, since it may add lines, which must be indented too.
func forJob(dest, report string, err error) string {
	if err != nil {
		report += "error: " + err.Error() + "\n"
	}
	return "### " + cmp.Or(dest, "caches") + "\n\n    " + strings.ReplaceAll(strings.TrimSuffix(plain.Text(report), "\n"), "\n", "\n    ") + "\n\n"
}

// destination are the flags of commands that read a bucket.
type destination struct {
	Dest string `required:"" placeholder:"URL" help:"The bucket: s3://BUCKET, s3://BUCKET/PREFIX or file:///FOLDER."`
	command.S3
	reporting
}

func (d *destination) checkDestination() error {
	at, err := storage.ParseLocation(d.Dest)
	switch {
	case d.Dest == "":
		return nil // kong reports the missing flag
	case err != nil:
		return fmt.Errorf("--dest: %w", err)
	case at.Folder != "" && command.Inside(d.Report, at.Folder):
		return fmt.Errorf("--report=%s is in the destination: verify would count it as an unknown object", d.Report)
	}
	_, err = d.readOptions(session{}).WithDefaults()
	return err
}

func (d *destination) readOptions(s session) publisher.Options {
	return publisher.Options{Patience: d.Patience, Progress: s.progress, Log: s.log}
}

// openBucket opens the bucket. With write, it also removes the leftovers of a killed run in a folder.
func (d *destination) openBucket(ctx context.Context, s session, write bool) (storage.Bucket, error) {
	at, err := storage.ParseLocation(d.Dest)
	if err != nil {
		return nil, fmt.Errorf("--dest: %w", err)
	}
	o := d.Server()
	o.Log = s.log
	to, err := storage.OpenBucket(ctx, at, o)
	if local, ok := to.(*storage.Local); ok && write && err == nil {
		err = local.CleanUp()
	}
	return to, err
}

// writing are the flags of commands that write to a bucket.
type writing struct {
	destination
	transfer `group:"Advanced:"`
	lock     `group:"Advanced:"`
	caches   `group:"Caches to purge after a publish:"`
	purging  `group:"Caches to purge after a publish:"`
}

type transfer struct {
	NoSync bool `help:"Do not sync a file:// folder to disk: faster, but a power failure may corrupt it."`
}

type lock struct {
	BreakLock bool `help:"Take the lock even from a running publisher; nothing is written before its lease ends."`
}

type purging struct {
	PurgeMax  int           `default:"1000" placeholder:"N" help:"Purge everything if more objects than this changed (default ${default}); 0 means always."`
	PurgeWait time.Duration `default:"15s" placeholder:"DURATION" help:"Wait before purging (default ${default}), so that fallbacks, which check every 10s, see the new site first."`
}

func (w *writing) checkWriting(site string) error {
	if err := w.checkDestination(); err != nil {
		return err
	}
	switch {
	case w.PurgeMax < 0 || w.PurgeWait < 0:
		return errors.New("--purge-max and --purge-wait cannot be negative")
	case reportInSite(w.Report, site):
		return fmt.Errorf("--report=%s is in the site, where the next generate would have to remove it; name a file elsewhere", w.Report)
	}
	if _, err := w.writeOptions(session{}).WithDefaults(); err != nil {
		return err
	}
	_, err := w.purgers(w.Patience, session{stderr: io.Discard})
	return err
}

// reportInSite reports whether a report's file would be in a site, or among its parts.
func reportInSite(report, site string) bool {
	if place, ok := parts.At(site); ok {
		if at, err := storage.ParseLocation(place); err == nil {
			place = at.Folder
		}
		site = place
	}
	return site != "" && command.Inside(report, site)
}

func (w *writing) writeOptions(s session) publisher.Options {
	o := w.readOptions(s)
	o.MaxChanged = w.PurgeMax
	o.BreakLock = w.BreakLock
	return o
}

// run calls do, purges its changes, and reports both.
func (w *writing) run(ctx context.Context, stdout, stderr io.Writer, dryRun bool, do func(session) (result, error)) error {
	return w.report(stdout, stderr, w.Dest, func(s session) (result, error) {
		told, err := do(s)
		s.progress.End()
		told, purgeErr := w.purge(ctx, s, told, dryRun)
		return told, errors.Join(err, purgeErr)
	})
}

func (w *writing) openToWrite(ctx context.Context, s session, write bool) (storage.Bucket, error) {
	to, err := w.openBucket(ctx, s, write)
	if local, ok := to.(*storage.Local); ok {
		local.NoSync = w.NoSync
	}
	return to, err
}

func (w *writing) setUp(ctx context.Context, s session, from publisher.Site, to storage.Bucket) error {
	config, err := publisher.ConfigOf(ctx, from)
	if err != nil {
		return err
	}
	done, err := publisher.SetUp(ctx, to, config, w.writeOptions(s))
	for _, step := range done {
		if line := w.Dest + ": " + step; strings.HasPrefix(step, publisher.Skipped) {
			command.Warn(s.stderr, line)
		} else {
			fmt.Fprintln(s.stderr, line)
		}
	}
	return err
}

// publishing are the flags of commands that publish a site.
type publishing struct {
	guards
	signing `group:"A signature:"`
	writing
	tagging `group:"Caches to purge after a publish:"`

	refreshers note.Keys // for publisher.Options
}

type guards struct {
	Overwrite     bool              `help:"Publish even over foreign objects. Without it, a first publish fails and names them."`
	MaxLoss       publisher.Percent `default:"5%" placeholder:"PERCENT" help:"Refuse a site that lost more than this share of the bucket's lists, primary lists, follows or names (default ${default})."`
	AllowRollback bool              `help:"Publish a site older than the bucket's, whatever it lost. Readers that saw the newer signature refuse it."`
}

type tagging struct {
	Tags []string `enum:"cloudfront,cloudflare,fastly" placeholder:"SERVICE" help:"Store tags with each object, so that purges name a few tags instead of many URLs. The first publish with other tags uploads everything."`
}

// maxTagged caps the keys in memory for computing tags, at some 100 bytes each.
const maxTagged = 200_000

func (p *publishing) checkPublishing(site string) error {
	return errors.Join(p.checkSigning(), p.checkWriting(site))
}

// An opener opens a site to publish, with a report if it was rendered.
type opener func(ctx context.Context, s session, server storage.S3Options) (openSite, *summary.Report, error)

func (p *publishing) publish(ctx context.Context, s session, open opener, dryRun bool,
	before ...func(context.Context, session, publisher.Site, storage.Bucket) error) (told *published, err error) {
	told = &published{Report: publisher.NewReport()}
	to, err := p.openToWrite(ctx, s, !dryRun)
	if err != nil {
		return told, err
	}
	from, rendered, err := open(ctx, s, p.Server())
	if err != nil {
		return told, err
	}
	told.Rendered = rendered
	defer func() { err = errors.Join(err, from.Close()) }()
	for _, do := range before {
		if err := do(ctx, s, from, to); err != nil {
			return told, err
		}
	}
	o := p.writeOptions(s)
	o.DryRun, o.MaxLoss, o.Overwrite = dryRun, &p.MaxLoss, p.Overwrite
	o.Unsigned, o.AllowRollback, o.NotAfter, o.Refreshers = p.Unsigned, p.AllowRollback, time.Now().Add(note.MaxAhead), p.refreshers
	if o.Signing, err = p.open(ctx); err != nil {
		return told, err
	}
	if r, ok := from.(*renderedSite); ok && r.inputs != nil {
		o.Inputs = r.inputs
	}
	if o.Tags, err = tags.Normal(p.Tags); err != nil {
		return told, fmt.Errorf("--%w", err)
	}
	if o.Tags != "" && p.PurgeMax > 0 {
		o.MaxChanged = max(p.PurgeMax, maxTagged)
	}
	report, err := publisher.Publish(ctx, from, to, o)
	told.Report = report
	warnOfEdges(s, report)
	report.Requests = to.Requests()
	if report.Requests != nil && report.Outcome == publisher.Planned { // folders get no requests
		report.Requests = report.ExpectedRequests()
	}
	return told, err
}
