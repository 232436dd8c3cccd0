// Package publish has the commands that put a site into storage and look after it there:
// publish, init, verify, repair and purge.
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
	reports "github.com/followpress/followpress/cmd/internal/report"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/internal/plain"
	"github.com/followpress/followpress/internal/secret"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/site/tags"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/parts"
)

// Publish is the command that uploads what changed to a bucket.
type Publish struct {
	source
	command.MaxAge
	DryRun bool `help:"Show what would be done, and write nothing."`
	inputs
	publishing
}

// Help is what --help shows below the first line.
func (*Publish) Help() string {
	return `It uploads only what changed, writes objects before anything that refers to them, allows one publisher at a time, and resumes a killed run from any machine. With --snapshot it renders objects while it uploads them, without files between. Credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the shared credentials file, or the machine's role.

	followpress publish --site site.tar --dest s3://BUCKET`
}

// AfterApply decides between --snapshot and --site.
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
		p.keepInputs = p.KeepInputs
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

// Init is the command that makes a bucket ready.
type Init struct {
	Site string `placeholder:"SITE" help:"Then publish this site: a folder or .tar file that generate wrote, or parts."`
	publishing
}

// Help is what --help shows below the first line.
func (*Init) Help() string {
	return `It creates the bucket if there is none, makes the objects of a site, and nothing else, readable for everybody, and allows browsers of all origins (CORS). What the server does not support is reported and skipped. With --site, it publishes that site; without, the flags for reports and purges do nothing.

	followpress init --dest s3://BUCKET --site site.tar`
}

// Validate checks the flags before the run; kong calls it.
func (i *Init) Validate() error {
	return errors.Join(checkSite(i.Site, i.Dest), i.checkPublishing(i.Site))
}

// Run makes the bucket ready, and publishes if there is a site.
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

// Repair is the command that repairs what verify finds.
type Repair struct {
	Site   string `required:"" placeholder:"SITE" help:"The site that the bucket holds: a folder or .tar file that generate wrote, or parts."`
	DryRun bool   `help:"Show what would be put and deleted, and write nothing."`
	writing
	excluding
	refreshed
}

// Help is what --help shows below the first line.
func (*Repair) Help() string {
	return `It puts back the objects that verify finds missing or altered, and deletes unknown ones, whose names are like those of a site. Foreign objects stay; the exit status is 1 if there are any that --exclude does not name.

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

// Verify is the command that compares a bucket with its manifest.
type Verify struct {
	destination
	excluding
	checking
	edges
	command.MaxAge
}

// Help is what --help shows below the first line.
func (*Verify) Help() string {
	return `It compares a listing of the bucket with the manifest there. It writes nothing. The exit status is 1 if anything is missing, altered, unknown (named like an object of a site) or foreign (named otherwise). With --key, --dest may be https://HOST, which nobody can list.

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

// verifyListed is verify of a bucket.
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
		advice := "followpress repair puts it right"
		if found.Marked {
			advice = "when no publish runs, followpress publish puts it right" // repair refuses to
		}
		err = fmt.Errorf("%s is not what its manifest says: %d missing, %d altered, %d unknown: %s",
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
	return fmt.Errorf("%d objects are none of a site's, like %s: name them with --exclude%s, remove them, or keep the site below a prefix of its own",
		v.Foreign.Count, like, exclude)
}

// excludedBy is a pattern for --exclude, quoted for a shell, that matches a key, whatever characters it has.
func excludedBy(key string) string {
	return "'" + strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) || strings.ContainsRune(`*?[\'`, r) {
			return '?'
		}
		return r
	}, key) + "'"
}

// excluding has what verify and repair leave out.
type excluding struct {
	Exclude []string `sep:"none" placeholder:"PATTERN" help:"Take no notice of objects that are none of a site's and match, like robots.txt or pictures/*; may be repeated. A folder stands for all in it."`
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

// A result is the report of a run, whatever it did and however it ended.
type result interface {
	Note(dest string, err error)
	Markdown() string
	fmt.Stringer
}

// reporting are the flags that all commands of this package have.
type reporting struct {
	patience `group:"Advanced:"`
	Report   string `placeholder:"FILE" help:"Write a report as JSON, or as a page with a picture of the run if the name ends in .html; - is standard output. The file must not be inside a site or the folder of a bucket."`
	command.Messages
	LogLevel string `group:"Advanced:" enum:"debug,info,warn,error" default:"warn" placeholder:"debug|info|warn|error" help:"What to log on standard error; debug logs every request (default ${default})."`
}

type patience struct {
	Patience time.Duration `default:"2m" placeholder:"DURATION" help:"How long to retry a request that fails temporarily (default ${default})."`
}

// report calls do and reports its result, however it ended.
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
	fmt.Fprint(stderr, plain.Text(told.String())) // keys in a bucket are anybody's
	stages := s.progress.Stages()
	if staged, ok := told.(interface{ setStages([]command.Stage) }); ok {
		staged.setStages(stages)
	}
	return errors.Join(err, reports.WriteRun(r.Report, dest, told, stages, stdout), command.WriteSummary(told.Markdown()))
}

// destination are the flags of the commands that read a bucket.
type destination struct {
	Dest string `required:"" placeholder:"URL" help:"The bucket: s3://BUCKET, s3://BUCKET/PREFIX or file:///FOLDER."`
	command.S3
	reporting
}

func (d *destination) checkDestination() error {
	at, err := storage.ParseLocation(d.Dest)
	switch {
	case d.Dest == "":
		return nil // kong says what is missing
	case err != nil:
		return fmt.Errorf("--dest: %w", err)
	case at.Folder != "" && command.Inside(d.Report, at.Folder):
		return fmt.Errorf("--report=%s is in the destination: verify would take it for an unknown object", d.Report)
	}
	_, err = d.readOptions(session{}).WithDefaults()
	return err
}

func (d *destination) readOptions(s session) publisher.Options {
	return publisher.Options{Patience: d.Patience, Progress: s.progress, Log: s.log}
}

// openBucket opens the bucket. If write is set, it also removes what a killed run has left in a folder.
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

// writing are the flags of the commands that write to a bucket.
type writing struct {
	destination
	transfer `group:"Advanced:"`
	lock     `group:"Advanced:"`
	caches   `group:"Caches to purge after a publish:"`
	purging  `group:"Caches to purge after a publish:"`
}

type transfer struct {
	NoSync bool `help:"Do not sync a file:// folder to disk: faster, but a power failure may leave it broken."`
}

type lock struct {
	NoLock    bool `help:"Publish without the lock; safe only if nothing else publishes."`
	BreakLock bool `help:"Take the lock even from a live run; nothing is written before its lease has ended."`
	lease
}

type lease struct {
	LockLease time.Duration `default:"1m" placeholder:"DURATION" help:"How long the lock is valid after a heartbeat (default ${default}). Other publishers wait that long, and 5s more, before they take it over."`
}

type purging struct {
	PurgeMax  int           `default:"1000" placeholder:"N" help:"Purge everything if more objects changed (default ${default}); 0 means always."`
	PurgeWait time.Duration `default:"15s" placeholder:"DURATION" help:"How long to wait before purging (default ${default}), so that fallbacks, which look for a new site every 10s, have noticed it."`
}

func (w *writing) checkWriting(site string) error {
	if err := w.checkDestination(); err != nil {
		return err
	}
	switch {
	case w.PurgeMax < 0 || w.PurgeWait < 0:
		return errors.New("--purge-max and --purge-wait cannot be negative")
	case reportInSite(w.Report, site):
		return fmt.Errorf("--report=%s is in the site: the next generate would have to remove it", w.Report)
	}
	if _, err := w.writeOptions(session{}).WithDefaults(); err != nil {
		return err
	}
	_, err := w.purgers(w.Patience, session{stderr: io.Discard})
	return err
}

// reportInSite reports whether the file of a report would be in a site, or among its parts.
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
	o.NoLock, o.BreakLock, o.Lease = w.NoLock, w.BreakLock, w.LockLease
	return o
}

// run calls do, purges what it changed, and reports both.
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

// publishing are the flags of the commands that publish a site.
type publishing struct {
	guards
	signing `group:"A signature:"`
	writing
	tagging `group:"Caches to purge after a publish:"`

	keepInputs int       // of sites, if from is one with inputs
	refreshers note.Keys // of publisher.Options
}

type guards struct {
	Overwrite     bool              `help:"Publish even over objects of others, such as an index.html. Without it, the first publish refuses and names them."`
	MaxLoss       publisher.Percent `default:"5%" placeholder:"PERCENT" help:"Refuse a site that lacks more than this share of the lists, primary lists, follows or names of the one in the bucket, 0% to 100% (default ${default}). A first publish has nothing to lose."`
	AllowRollback bool              `help:"Publish a site that is older than the one in the bucket, whatever it lacks. Readers that check a signature and have seen the newer one refuse it."`
}

type tagging struct {
	Tags []string `enum:"cloudfront,cloudflare,fastly" placeholder:"SERVICE" help:"Store each object with tags for these services, so that their caches can be purged by few tags instead of many URLs, or everything. The first publish with other tags puts all objects again."`
}

// maxTagged bounds the keys in memory from which tags are made: some 100 bytes each. Few tags may do
// for many objects.
const maxTagged = 200_000

func (p *publishing) checkPublishing(site string) error {
	return errors.Join(p.checkSigning(), p.checkWriting(site))
}

// An opener opens a site to publish, and says what was rendered for it, if anything was.
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
		o.Inputs, o.KeepInputs = r.inputs, p.keepInputs
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
	if report.Requests != nil && report.Outcome == publisher.Planned { // a folder gets no requests
		report.Requests = report.ExpectedRequests()
	}
	return told, err
}
