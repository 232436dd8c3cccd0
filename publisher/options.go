package publisher

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"time"
)

// Bulk says whether objects are sent many at once.
type Bulk string

// The choices.
const (
	BulkAuto Bulk = "auto" // if there is much to send and the server turns out to unpack it
	BulkOn   Bulk = "on"   // in any case: it is an error if the server does not unpack it
	BulkOff  Bulk = "off"
)

// Defaults of Options.
const (
	DefaultConcurrency = 64
	DefaultLease       = time.Minute
	DefaultPatience    = 2 * time.Minute
	// Grace is how long requests that are under way may take to end after the
	// context was cancelled.
	Grace = 5 * time.Second
	// minLease leaves room for a few heartbeats, by clocks that tell seconds.
	minLease = time.Second
	// maxLease bounds how long others wait for a run that died.
	maxLease = time.Hour
)

// Options of a run.
type Options struct {
	Concurrency int           // requests in flight at most, besides the lock's; 0 means DefaultConcurrency
	Bulk        Bulk          // "" means BulkAuto
	DryRun      bool          // find out what would be done, and write nothing
	NoLock      bool          // do not ask for the lock: the caller knows that nobody else publishes
	BreakLock   bool          // take the lock even from a publisher that is alive, and wait until its lease has run out
	Lease       time.Duration // how long requests are sent after a heartbeat; others wait so long before they take over; 0 means DefaultLease
	Owner       string        // who publishes, for others to read; "" means user@host
	Patience    time.Duration // how long a request is tried again after it failed first; 0 means DefaultPatience
	MaxChanged  int           // keys that Report.Changed names; where more change it says so instead
	Progress    Progress      // nil means that nobody wants to know
	Log         *slog.Logger  // nil means none

	drain   time.Duration                      // 0 means drainTime; tests whose publishers are certainly dead take less
	stagger func(request string) time.Duration // a moment before each attempt, instead of chance; a simulation repeats by it
}

// Progress hears how far a run is. Its methods are called from many goroutines.
type Progress interface {
	// Stage begins a part of the run. total is what Add will add up to, 0 if
	// that is not known.
	Stage(name string, total int64)
	// AddBytes says that n more are done, with so many bytes.
	AddBytes(n, bytes int64)
}

type noProgress struct{}

func (noProgress) Stage(string, int64)   {}
func (noProgress) AddBytes(int64, int64) {}

// WithDefaults fills what is zero and refuses what cannot work.
func (o Options) WithDefaults() (Options, error) {
	o.Concurrency = cmp.Or(o.Concurrency, DefaultConcurrency)
	o.Bulk = cmp.Or(o.Bulk, BulkAuto)
	o.Lease = cmp.Or(o.Lease, DefaultLease)
	o.Patience = cmp.Or(o.Patience, DefaultPatience)
	o.drain = cmp.Or(o.drain, drainTime)
	if o.Progress == nil {
		o.Progress = noProgress{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Owner == "" {
		o.Owner = defaultOwner()
	}
	switch {
	case o.Concurrency < 0:
		return o, fmt.Errorf("concurrency %d: use 1 or more, or 0 for %d", o.Concurrency, DefaultConcurrency)
	case o.Lease < minLease || o.Lease > maxLease:
		return o, fmt.Errorf("lease %v: between %v and %v", o.Lease, minLease, maxLease)
	case o.MaxChanged < 0:
		return o, fmt.Errorf("at most %d changed keys: a number cannot be negative", o.MaxChanged)
	case o.Patience < 0:
		return o, fmt.Errorf("patience %v: a time cannot be negative", o.Patience)
	case o.Bulk != BulkAuto && o.Bulk != BulkOn && o.Bulk != BulkOff:
		return o, fmt.Errorf("bulk %q: use %s, %s or %s", o.Bulk, BulkAuto, BulkOn, BulkOff)
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
	return name + "@" + hostname()
}

func hostname() string {
	host, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return host
}

// newID tells two runs of one owner apart.
func newID() string { return rand.Text() }
