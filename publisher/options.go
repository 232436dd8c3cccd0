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

	"github.com/followpress/followpress/publisher/internal/inputs"
	"github.com/followpress/followpress/publisher/internal/lock"
	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/publisher/internal/sign"
	"github.com/followpress/followpress/publisher/internal/spool"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/site/shards"
	"github.com/followpress/followpress/site/tags"
)

// Bulk says whether to send many objects in one request, as an archive that the server unpacks.
type Bulk string

// The values of Bulk.
const (
	BulkAuto Bulk = "auto" // if there are many objects to send, and the server unpacks archives
	BulkOn   Bulk = "on"   // always; it is an error if the server does not unpack archives
	BulkOff  Bulk = "off"  // never
)

// Defaults of Options.
const (
	defaultConcurrency = 64
	DefaultLease       = lock.DefaultLease
	defaultPatience    = 2 * time.Minute
	defaultKeepInputs  = 7
	// grace is how long requests in flight may continue after the context was cancelled.
	grace = 5 * time.Second
)

// What the rooms of the publisher define and its callers use.
type (
	// Inputs are what a site was made of, which a bucket can keep beside it.
	Inputs = inputs.Inputs
	// Signing says how a site is signed.
	Signing = sign.Signing
)

// Errors of a publish about the note of the bucket.
var (
	// ErrSigned says that a publish without a signature would leave readers of a signed bucket without one.
	ErrSigned       = sign.ErrSigned
	errOtherNote    = sign.ErrOtherNote
	errStolen       = sign.ErrStolen
	errExplorerKeys = sign.ErrExplorerKeys
)

// Options of a run. The zero value is valid.
type Options struct {
	Concurrency   int           // limit of requests in flight, not counting the lock's; 0 means defaultConcurrency
	Bulk          Bulk          // "" means BulkAuto
	DryRun        bool          // plan, and write nothing
	NoLock        bool          // publish without the lock; the caller makes sure that nobody else publishes
	BreakLock     bool          // take the lock even from a live publisher, after waiting for its lease to end
	Overwrite     bool          // put the first site even over objects that no site of ours has put
	Lease         time.Duration // treat a lock as abandoned after this long without a heartbeat, 1s to 1h; 0 means DefaultLease
	Owner         string        // name of the publisher in the lock; "" means user@host
	Patience      time.Duration // give up on a request this long after its first failure; 0 means defaultPatience
	MaxChanged    int           // limit of the keys in Report.Changed; with more changes it is Unknown
	MaxLoss       *Percent      // refuse a site that lacks more than this share of the live one's lists, follows or names; nil means 100 %
	NotAfter      time.Time     // a site that is as of a later time is refused with errFuture; zero means any time
	AllowRollback bool          // publish a site that is older than the live one, whatever it lacks. Readers of a signed bucket refuse it
	Tags          string        // objects get tags for these services, as in site.Config.Tags; "" means none. Repair keeps those of the bucket
	Exclude       []string      // patterns of path.Match: Verify and Repair take no notice of foreign objects whose key, or a folder of it, matches
	Signing       *Signing      // how to sign the site; nil means not at all. Repair leaves the note alone
	Refreshers    note.Keys     // keys of who signs refreshes. In a signed bucket, only what they signed says that a refresh has put an object
	Unsigned      bool          // publish without a signature even to a bucket that has one, whose note is removed first
	Inputs        Inputs        // what the site was made of, to put beside it; nil means that the bucket keeps what it has
	KeepInputs    int           // how many sites the bucket keeps the inputs of, the new one too; 0 means defaultKeepInputs. Only with Inputs
	Progress      Progress      // nil means none
	Log           *slog.Logger  // nil means none

	drain    time.Duration                      // 0 means lock.DrainTime; shorter in tests whose publishers are certainly dead
	clock    func() lock.Instant                // of leases; nil means the clocks of this machine
	stagger  func(request string) time.Duration // delay of each attempt, which replaces jitter in the simulation; nil means none
	anyRules bool                               // header rules may be those of another version, in tests
	maxDelta int                                // 0 means shards.MaxDelta; less in tests of small sites whose shards are put again
	memory   int                                // 0 means spool.Memory; less in tests of small sites that need the temporary file
}

// Progress is told how far a run has come. Its methods are called from many goroutines.
type Progress interface {
	// Stage begins a part of the run. total is the sum of n over all AddBytes of this stage,
	// or 0 if it is not known.
	Stage(name string, total int64)
	// AddBytes says that n more items are done, with so many bytes.
	AddBytes(n, bytes int64)
}

type noProgress struct{}

func (noProgress) Stage(string, int64)   {}
func (noProgress) AddBytes(int64, int64) {}

// WithDefaults returns the options with defaults in place of zero values, or an error for
// invalid ones.
func (o Options) WithDefaults() (Options, error) { //nolint:gocyclo // an option after the other
	o.Concurrency = cmp.Or(o.Concurrency, defaultConcurrency)
	o.Bulk = cmp.Or(o.Bulk, BulkAuto)
	o.Lease = cmp.Or(o.Lease, DefaultLease)
	o.Patience = cmp.Or(o.Patience, defaultPatience)
	o.KeepInputs = cmp.Or(o.KeepInputs, defaultKeepInputs)
	o.drain = cmp.Or(o.drain, lock.DrainTime)
	o.memory = cmp.Or(o.memory, spool.Memory)
	o.maxDelta = cmp.Or(o.maxDelta, shards.MaxDelta)
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
			return o, fmt.Errorf("exclude %q: not a pattern, such as robots.txt or pictures/*", pattern)
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
		return o, fmt.Errorf("concurrency %d: use 1 or more, or 0 for %d", o.Concurrency, defaultConcurrency)
	case o.Lease < lock.MinLease || o.Lease > lock.MaxLease:
		return o, fmt.Errorf("lease %v: between %v and %v", o.Lease, lock.MinLease, lock.MaxLease)
	case o.MaxChanged < 0:
		return o, fmt.Errorf("at most %d changed keys: a number cannot be negative", o.MaxChanged)
	case o.KeepInputs < 0:
		return o, fmt.Errorf("inputs of %d sites to keep: use 1 or more, or 0 for %d", o.KeepInputs, defaultKeepInputs)
	case o.Patience < 0:
		return o, fmt.Errorf("patience %v: a time cannot be negative", o.Patience)
	case o.Bulk != BulkAuto && o.Bulk != BulkOn && o.Bulk != BulkOff:
		return o, fmt.Errorf("bulk %q: use %s, %s or %s", o.Bulk, BulkAuto, BulkOn, BulkOff)
	case o.Signing != nil && o.Unsigned:
		return o, fmt.Errorf("either signed or unsigned, not both")
	case o.NoLock && o.BreakLock:
		return o, fmt.Errorf("either no lock or break the lock, not both")
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
