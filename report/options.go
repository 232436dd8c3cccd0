package report

import (
	"cmp"
	"fmt"
	"time"

	"github.com/followpress/followpress/storage"
)

// Defaults of Options.
const (
	DefaultConcurrency = 32
	DefaultMemory      = 64 << 20
	DefaultPatience    = 2 * time.Minute
)

// Options of a comparison. The zero value is valid.
type Options struct {
	Date        time.Time     // of the report; the zero time means now
	Concurrency int           // limit of pairs of objects that are read at a time; 0 means DefaultConcurrency
	Memory      int64         // limit of the bytes of those objects; 0 means DefaultMemory
	Patience    time.Duration // give up on a request this long after its first failure; 0 means DefaultPatience
	Progress    Progress      // nil means none

	limits limits // fewer in tests of what is beyond
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

// Limits of what is counted one by one. The package comment names them.
type limits struct{ accounts, tags, profiles int }

func (o Options) withDefaults() (Options, error) {
	o.Concurrency = cmp.Or(o.Concurrency, DefaultConcurrency)
	o.Memory = cmp.Or(o.Memory, DefaultMemory)
	o.Patience = cmp.Or(o.Patience, DefaultPatience)
	if o.Date.IsZero() {
		o.Date = time.Now()
	}
	if o.Progress == nil {
		o.Progress = noProgress{}
	}
	if o.limits == (limits{}) {
		o.limits = limits{accounts: 1 << 19, tags: 1 << 16, profiles: 1 << 19}
	}
	switch {
	case o.Concurrency < 0:
		return o, fmt.Errorf("concurrency %d: use 1 or more, or 0 for %d", o.Concurrency, DefaultConcurrency)
	case o.Memory < 0:
		return o, fmt.Errorf("memory of %d bytes: use 1 or more, or 0 for %d", o.Memory, DefaultMemory)
	case o.Patience < 0:
		return o, fmt.Errorf("patience %v: a time cannot be negative", o.Patience)
	}
	return o, nil
}

// retrying is how requests are made again. One may take as long as 256 MiB over a slow line.
func retrying(patience time.Duration) storage.Retry {
	return storage.Retry{Patience: patience, Attempt: 5 * time.Minute, Hint: "check --endpoint, and that the server is up"}
}

const dateFormat = time.DateOnly
