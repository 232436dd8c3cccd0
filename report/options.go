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

// Options configure a comparison. The zero value is valid.
type Options struct {
	Date        time.Time     // date of the report; zero means now
	Concurrency int           // maximum number of pairs of objects read concurrently; 0 means DefaultConcurrency
	Memory      int64         // maximum bytes of these objects; 0 means DefaultMemory
	Patience    time.Duration // retry a request for this long after its first failure; 0 means DefaultPatience
	Progress    Progress      // nil means none

	limits limits // lower in tests
}

// Progress receives the progress of a run. Its methods must be safe for concurrent use.
type Progress interface {
	// Stage begins a part of the run. total is the sum of n over all AddBytes of this stage, or 0 if unknown.
	Stage(name string, total int64)
	// AddBytes reports n more items, with the given bytes in total.
	AddBytes(n, bytes int64)
}

type noProgress struct{}

func (noProgress) Stage(string, int64)   {}
func (noProgress) AddBytes(int64, int64) {}

// limits are the maximum numbers of things counted individually, as in the package comment.
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

// retrying returns the retry policy of requests. An attempt may take 256 MiB over a slow line.
func retrying(patience time.Duration) storage.Retry {
	return storage.Retry{Patience: patience, Attempt: 5 * time.Minute, Hint: "check --endpoint, and that the server is up"}
}

const dateFormat = time.DateOnly
