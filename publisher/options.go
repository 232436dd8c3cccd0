package publisher

import (
	"cmp"
	"fmt"
	"log/slog"
	"os/user"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"github.com/followpress/followpress/publisher/internal/guard"
	"github.com/followpress/followpress/publisher/internal/inputs"
	"github.com/followpress/followpress/publisher/internal/lock"
	"github.com/followpress/followpress/publisher/internal/report"
	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/publisher/internal/sign"
	"github.com/followpress/followpress/publisher/internal/spool"
	"github.com/followpress/followpress/publisher/internal/transfer"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/site/shards"
	"github.com/followpress/followpress/site/tags"
)

// Defaults of Options.
const (
	defaultConcurrency = 64
	DefaultLease       = lock.DefaultLease
	defaultPatience    = 2 * time.Minute
	// grace is how long requests in flight may continue after the context is canceled.
	grace = 5 * time.Second
)

// Types of internal packages that callers need.
type (
	// Bucket is the part of object storage that the publisher uses.
	Bucket = requests.Store
	// Progress reports how far a run has come.
	Progress = requests.Progress
	// Inputs provides the data that a site was made of, which a bucket can keep next to it.
	Inputs = inputs.Inputs
	// Signing configures how to sign a site.
	Signing = sign.Signing
	// Percent is a share of 0 to 100 %.
	Percent = guard.Percent
	// Report describes what a run found and did.
	Report = report.Report
	// Outcome is how a run ended.
	Outcome = report.Outcome
	// Changed names the objects and manifest shards that a run changed.
	Changed = report.Changed
	// Verification describes how a bucket differs from its manifest.
	Verification = report.Verification
	// Found lists the keys of one kind.
	Found = report.Found
	// SignedVerification describes how a bucket differs from its signed root.
	SignedVerification = report.SignedVerification
)

// Outcomes of a run.
const (
	Published   = report.Published
	Unchanged   = report.Unchanged // the bucket already equaled the site
	Planned     = report.Planned   // after a dry run
	Interrupted = report.Interrupted
	Failed      = report.Failed
)

// NewReport returns a report with the outcome Failed.
func NewReport() *Report { return report.New() }

// NewVerification returns an empty verification.
func NewVerification() *Verification { return report.NewVerification() }

var (
	// ErrLocked means that another publisher holds the lock.
	ErrLocked = lock.ErrLocked
	// ErrLockLost means that another publisher took the lock: it had no heartbeat for its lease, or
	// BreakLock was set.
	ErrLockLost    = lock.ErrLockLost
	errInterleaved = lock.ErrInterleaved
	// ErrRollback means that the site to publish is older than the live one, or than one that readers
	// have seen.
	ErrRollback = guard.ErrRollback
	errForeign  = guard.ErrForeign
	// ErrSigned means that an unsigned publish would leave readers of a signed bucket without a
	// signature.
	ErrSigned       = sign.ErrSigned
	errOtherNote    = sign.ErrOtherNote
	errStolen       = sign.ErrStolen
	errExplorerKeys = sign.ErrExplorerKeys
)

// Options configures a run. The zero value is valid.
type Options struct {
	Concurrency int  // limit of requests in flight, not counting the lock's; 0 means defaultConcurrency
	DryRun      bool // plan, and write nothing
	BreakLock   bool // take the lock even from a live publisher, after waiting for its lease to end

	Overwrite  bool          // let the first site overwrite objects that followpress did not put
	Lease      time.Duration // treat a lock as abandoned after this long without a heartbeat, 1s to 1h; 0 means DefaultLease
	Owner      string        // name of the publisher in the lock; "" means user@host
	Patience   time.Duration // give up on a request this long after its first failure; 0 means defaultPatience
	MaxChanged int           // limit of the keys in Report.Changed; beyond it, Changed is Unknown
	MaxLoss    *Percent      // refuse a site that lacks more than this share of the live one's lists, follows or names; nil means 100 %

	NotAfter      time.Time // reject a site with a later time; zero means any time
	AllowRollback bool      // publish a site that is older than the live one, whatever it lacks; readers of a signed bucket reject it
	Tags          string    // services to tag objects for, as in site.Config.Tags; "" means none; Repair keeps the bucket's tags
	Exclude       []string  // patterns of path.Match; Verify and Repair ignore foreign objects whose key, or a folder of it, matches

	Signing    *Signing  // how to sign the site; nil means unsigned; Repair keeps the note
	Refreshers note.Keys // keys that sign refreshes; in a signed bucket, only data signed by one of them counts as a refresh

	Unsigned bool         // publish without a signature, even to a signed bucket; the run removes its note first
	Inputs   Inputs       // data that the site was made of, to put next to it; nil leaves those in the bucket alone
	Progress Progress     // nil means none
	Log      *slog.Logger // nil means none

	drain    time.Duration                      // 0 means lock.DrainTime; shorter in tests whose publishers are certainly dead
	clock    func() lock.Instant                // clock of leases; nil means the clocks of this machine
	stagger  func(request string) time.Duration // delay of each attempt, which replaces jitter in the simulation; nil means none
	anyRules bool                               // accept the header rules of another version, in tests
	maxDelta int                                // 0 means shards.MaxDelta; less in tests in which small sites put shards again
	packFrom int                                // 0 means transfer.PackFrom; less in tests in which small sites need archives
	memory   int                                // 0 means spool.Memory; less in tests in which small sites need the temporary file
}

type noProgress struct{}

func (noProgress) Stage(string, int64)   {}
func (noProgress) AddBytes(int64, int64) {}

// WithDefaults returns the options with defaults in place of zero values, or an error for invalid
// ones.
func (o Options) WithDefaults() (Options, error) {
	o.Concurrency = cmp.Or(o.Concurrency, defaultConcurrency)
	o.Lease = cmp.Or(o.Lease, DefaultLease)
	o.Patience = cmp.Or(o.Patience, defaultPatience)
	o.drain = cmp.Or(o.drain, lock.DrainTime)
	o.memory = cmp.Or(o.memory, spool.Memory)
	o.maxDelta = cmp.Or(o.maxDelta, shards.MaxDelta)
	o.packFrom = cmp.Or(o.packFrom, transfer.PackFrom)
	if o.clock == nil {
		o.clock = lock.MachineTime
	}
	if o.Progress == nil {
		o.Progress = noProgress{}
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Owner == "" {
		o.Owner = defaultOwner()
	}
	for _, pattern := range o.Exclude {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return o, fmt.Errorf("exclude %q: invalid pattern; use one such as robots.txt or pictures/*", pattern)
		}
	}
	if err := o.Signing.Check(); err != nil {
		return o, err
	}
	if _, err := tags.Normal(strings.Fields(o.Tags)); err != nil {
		return o, err
	}
	switch {
	case o.Concurrency < 0:
		return o, fmt.Errorf("concurrency %d: must be 1 or more, or 0 for %d", o.Concurrency, defaultConcurrency)
	case o.Lease < lock.MinLease || o.Lease > lock.MaxLease:
		return o, fmt.Errorf("lease %v: must be between %v and %v", o.Lease, lock.MinLease, lock.MaxLease)
	case o.MaxChanged < 0:
		return o, fmt.Errorf("limit of changed keys %d: must not be negative", o.MaxChanged)
	case o.Patience < 0:
		return o, fmt.Errorf("patience %v: must not be negative", o.Patience)
	case o.Signing != nil && o.Unsigned:
		return o, fmt.Errorf("signing and unsigned exclude each other")
	}
	return o, nil
}

func defaultOwner() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return name + "@" + lock.Hostname()
}

func (o Options) requests(retries *atomic.Int64) requests.Settings {
	return requests.Settings{Concurrency: o.Concurrency, Patience: o.Patience, Log: o.Log, Retries: retries, Stagger: o.stagger}
}

func (o Options) lock() lock.Options {
	return lock.Options{Owner: o.Owner, Lease: o.Lease, Drain: o.drain, Break: o.BreakLock, Clock: o.clock}
}
