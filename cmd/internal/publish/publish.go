// Command publish puts a site into S3-compatible storage.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/storage"
)

const about = `Publish a site: put what changed into a bucket, and delete what is gone.

It compares the manifests of the site and of the bucket, needs no state on this
machine, and takes up where a run was cut off. Readers never find a reference to
something that is not there. Credentials come from AWS_ACCESS_KEY_ID and
AWS_SECRET_ACCESS_KEY, the shared credentials file, or the machine's role.`

type flags struct {
	Site     string `placeholder:"SITE" help:"Folder or .tar file that generate wrote. Only --verify and --init do without."`
	Dest     string `placeholder:"URL" help:"Where to: s3://BUCKET, s3://BUCKET/PREFIX or file:///FOLDER."`
	Endpoint string `placeholder:"URL" env:"FOLLOWPRESS_ENDPOINT,AWS_ENDPOINT_URL_S3,AWS_ENDPOINT_URL" help:"Server of s3://; without one Amazon S3."`
	Region   string `placeholder:"NAME" help:"Region of the bucket; by default AWS_REGION, or us-east-1."`

	Init   bool `help:"Create the bucket if there is none, let everybody read the site's objects, allow all origins (CORS); then publish if there is a --site."`
	DryRun bool `help:"Show what would be done and what it would cost, and write nothing."`
	Verify bool `help:"Compare the bucket with its manifest by listing it; write nothing. Exit status 1 if anything is missing, altered or unknown."`
	Repair bool `help:"Put back what --verify finds missing or altered, from --site, and delete unknown objects that look like a site's."`

	Concurrency int           `default:"0" placeholder:"N" help:"Requests to the bucket in flight at most, besides those that keep the lock; fewer where the uplink or the server is slow; 0 means 64."`
	Bulk        string        `enum:"auto,on,off" default:"auto" help:"Send many objects with one request where the server unpacks them (MinIO): auto asks the server once, if there is much to send; on stops where it does not."`
	NoLock      bool          `help:"Do not ask for the lock: nobody else publishes."`
	BreakLock   bool          `help:"Take the lock even from a run that is alive, and wait until its lease is over before anything is written."`
	LockLease   time.Duration `default:"1m" help:"How long requests are sent after a heartbeat in the lock. Others wait that long, and 5s, before they take over."`
	Owner       string        `placeholder:"NAME" help:"Who publishes, for those who find the lock; by default user@host."`
	Patience    time.Duration `default:"2m" help:"How long to try a request again that fails for a reason that may go away."`

	NoSync bool `help:"Do not force what is put into a file:// folder to the disk: faster, but a power failure may leave anything."`

	Purge     []string      `placeholder:"CACHE" help:"Cache that is to forget what changed, when it is published; may be repeated: cloudfront:ID, cloudflare:ZONE, fastly:SERVICE, varnish:URL, http:URL, with {path} or {url} in it or for everything at once. Credentials: as the bucket's, CLOUDFLARE_API_TOKEN, FASTLY_API_TOKEN."`
	PurgeURL  []string      `placeholder:"URL" help:"Where the public reaches the site, like https://api.example.org, for caches that want whole URLs; may be repeated."`
	PurgeMax  int           `default:"1000" placeholder:"N" help:"Where more objects changed, purge everything (default ${default}); 0 means always."`
	PurgeWait time.Duration `default:"15s" help:"How long to wait before purging: a cache must not ask a fallback that has not noticed the new site yet (it looks every 10s)."`
	PurgeAll  bool          `help:"Purge everything in the caches of --purge and do nothing else, after a purge that failed."`

	Report   string `placeholder:"FILE" help:"Write a report as JSON; - is standard output. Not into the site or the folder of --dest."`
	LogLevel string `enum:"debug,info,warn,error" default:"warn" help:"What to log on standard error; debug logs every request."`

	// List prices of Amazon S3 Standard in us-east-1 (https://aws.amazon.com/s3/pricing/).
	PricePut     float64 `default:"0.005" placeholder:"DOLLARS" help:"Price of 1,000 requests that put or list (default ${default})."`
	PriceGet     float64 `default:"0.0004" placeholder:"DOLLARS" help:"Price of 1,000 requests that get (default ${default})."`
	PriceStorage float64 `default:"0.023" placeholder:"DOLLARS" help:"Price of 1 GB for a month (default ${default})."`
}

func main() {
	command.SaveMemory()
	command.Main("publish", about, &flags{})
}

// Validate refuses what no run could do; kong calls it.
func (f *flags) Validate() error {
	if err := f.validateMode(); err != nil {
		return err
	}
	switch {
	case f.PricePut < 0 || f.PriceGet < 0 || f.PriceStorage < 0:
		return errors.New("a price cannot be negative")
	case f.Site != "" && command.ReportInside(f.Report, f.Site):
		return fmt.Errorf("--report=%s is in the site: the next generate would have to remove it", f.Report)
	}
	if at, err := storage.ParseLocation(f.Dest); err == nil && at.Folder != "" && command.ReportInside(f.Report, at.Folder) {
		return fmt.Errorf("--report=%s is in the destination: --verify would take it for an unknown object", f.Report)
	}
	_, err := f.options(nil, nil).WithDefaults()
	return err
}

// validateMode refuses what is missing for what is to be done.
func (f *flags) validateMode() error {
	if f.Dest == "" && !f.PurgeAll {
		return errors.New("missing flags: --dest=URL")
	}
	if _, err := storage.ParseLocation(f.Dest); err != nil && f.Dest != "" {
		return fmt.Errorf("--dest: %w", err)
	}
	onlyVerify, modes := f.Verify && !f.Repair, 0
	for _, chosen := range []bool{f.DryRun, onlyVerify, f.Repair, f.Init, f.PurgeAll} {
		if chosen {
			modes++
		}
	}
	switch {
	case modes > 1:
		return errors.New("--dry-run, --verify, --repair, --init and --purge-all exclude each other")
	case f.PurgeMax < 0 || f.PurgeWait < 0:
		return errors.New("--purge-max and --purge-wait cannot be negative")
	case f.PurgeAll && len(f.Purge) == 0:
		return errors.New("missing flags: --purge=CACHE")
	case f.Site == "" && !f.Init && !f.PurgeAll && !onlyVerify:
		return errors.New("missing flags: --site=SITE")
	case onlyVerify:
		return nil // the caches that the environment may name are not asked
	}
	_, err := f.purgers(nil, io.Discard)
	return err
}

func (f *flags) options(progress publisher.Progress, log *slog.Logger) publisher.Options {
	return publisher.Options{
		Concurrency: f.Concurrency, Bulk: publisher.Bulk(f.Bulk), DryRun: f.DryRun, NoLock: f.NoLock, BreakLock: f.BreakLock,
		Lease: f.LockLease, Owner: f.Owner, Patience: f.Patience, MaxChanged: f.PurgeMax, Progress: progress, Log: log,
	}
}

// A bucket is a destination, of either kind.
type bucket interface {
	publisher.Bucket
	publisher.SetUpper
	Requests() map[storage.Request]int
}

// A result is what a run tells, whatever it did and however it ended.
type result interface {
	Note(dest string, err error)
	Markdown() string
	fmt.Stringer
}

// Run publishes, verifies or repairs.
func (f *flags) Run(ctx context.Context, stdout, stderr io.Writer) error {
	if err := command.CheckReport(f.Report, ""); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: command.LogLevel(f.LogLevel)}))
	progress := command.NewProgress(stderr)
	told, err := f.do(ctx, f.options(progress, log), log, stderr)
	progress.End()
	told, purgeErr := f.purge(ctx, told, log, stderr)
	err = errors.Join(err, purgeErr)
	if told == nil { // only set up
		return err
	}
	told.Note(f.Dest, err)
	fmt.Fprint(stderr, told)
	return errors.Join(err, command.WriteReport(f.Report, told, stdout), writeSummary(told.Markdown()))
}

// do does what the flags ask for. A result that is not nil says so also after an error.
func (f *flags) do(ctx context.Context, o publisher.Options, log *slog.Logger, stderr io.Writer) (told result, err error) {
	switch {
	case f.PurgeAll:
		return nil, nil
	case f.Verify || f.Repair:
		told = &publisher.Verification{}
	case !f.Init || f.Site != "":
		told = publisher.NewReport()
	}
	to, err := f.open(ctx, log)
	if err != nil {
		return told, err
	}
	var from storage.Site
	if f.Site != "" {
		if from, err = storage.OpenSite(f.Site); err != nil {
			return told, err
		}
		defer func() { err = errors.Join(err, from.Close()) }()
	}
	switch {
	case f.Repair, f.Verify:
		v, err := f.verify(ctx, from, to, o)
		if v != nil {
			told = v
		}
		return told, err
	case f.Init:
		if err := f.setUp(ctx, from, to, o, stderr); err != nil || from == nil {
			return told, err
		}
	}
	return f.publish(ctx, from, to, o)
}

func (f *flags) open(ctx context.Context, log *slog.Logger) (bucket, error) {
	at, err := storage.ParseLocation(f.Dest)
	if err != nil {
		return nil, fmt.Errorf("--dest: %w", err)
	}
	if at.Folder == "" {
		return storage.OpenS3(ctx, at, storage.S3Options{Endpoint: f.Endpoint, Region: f.Region, Connections: f.Concurrency, Log: log})
	}
	local, err := storage.OpenLocal(at.Folder).Pinned()
	if err != nil {
		return nil, fmt.Errorf("--dest: %w", err)
	}
	local.NoSync = f.NoSync
	if f.DryRun || f.Verify && !f.Repair {
		return local, nil
	}
	return local, local.CleanUp()
}

func (f *flags) setUp(ctx context.Context, from storage.Site, to bucket, o publisher.Options, stderr io.Writer) error {
	config, err := publisher.ConfigOf(ctx, from)
	if err != nil {
		return err
	}
	done, err := publisher.SetUp(ctx, to, config, o)
	for _, step := range done {
		fmt.Fprintf(stderr, "%s: %s\n", f.Dest, step)
	}
	return err
}

func (f *flags) publish(ctx context.Context, from storage.Site, to bucket, o publisher.Options) (*publisher.Report, error) {
	report, err := publisher.Publish(ctx, from, to, o)
	report.Requests = to.Requests()
	if report.Requests == nil { // a folder asks no price
		return report, err
	}
	if report.Outcome == publisher.Planned {
		report.Requests = report.ExpectedRequests()
	}
	report.Cost = publisher.Prices{Put: f.PricePut, Get: f.PriceGet, Storage: f.PriceStorage}.Of(report.Requests, report.Site.Bytes)
	return report, err
}

func (f *flags) verify(ctx context.Context, from storage.Site, to bucket, o publisher.Options) (*publisher.Verification, error) {
	if !f.Repair {
		v, err := publisher.Verify(ctx, to, o)
		if err == nil && !v.Good() {
			err = fmt.Errorf("%s is not what its manifest says: %d missing, %d altered, %d unknown (--repair puts it right)",
				f.Dest, v.Missing.Count, v.Altered.Count, v.Unknown.Count)
		}
		return v, err
	}
	v, err := publisher.Repair(ctx, from, to, o)
	if err == nil && v.Left() > 0 {
		err = fmt.Errorf("%d unknown objects are none of a site's and were left alone: remove them, or keep the site below a prefix of its own", v.Left())
	}
	return v, err
}

// writeSummary adds to the summary of a job of GitHub Actions.
func writeSummary(markdown string) (err error) {
	name := os.Getenv("GITHUB_STEP_SUMMARY")
	if name == "" {
		return nil
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("write the summary of the job: %w", err)
	}
	_, err = file.WriteString(markdown)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write the summary of the job: %w", err)
	}
	return nil
}
