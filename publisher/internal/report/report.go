// Package report describes what runs found and did, for people and as JSON.
package report

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/followpress/followpress/publisher/internal/inputs"
	"github.com/followpress/followpress/publisher/internal/plan"
	"github.com/followpress/followpress/publisher/internal/sign"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// An Outcome is how a run ended.
type Outcome string

// Outcomes of a run.
const (
	Published   Outcome = "published"
	Unchanged   Outcome = "unchanged" // the bucket already equaled the site
	Planned     Outcome = "planned"   // after a dry run
	Interrupted Outcome = "interrupted"
	Failed      Outcome = "failed"
)

// A Report describes what a run found and did. Sizes are in bytes, times in seconds.
type Report struct {
	Dest     string      `json:"dest"` // set by Note
	Outcome  Outcome     `json:"outcome"`
	Error    string      `json:"error,omitempty"` // set by Note
	AsOf     string      `json:"as_of"`           // time of the site's snapshot
	Site     site.Counts `json:"site"`
	Live     bool        `json:"live"`     // whether readers see the site, even if the run failed later
	Resumed  bool        `json:"resumed"`  // whether the site was compared with a listing because the manifests could not be compared
	Unlocked bool        `json:"unlocked"` // whether the run had no lock because the server has no conditional writes
	Bulk     bool        `json:"bulk"`     // whether archives were sent

	Plan struct {
		Put       int   `json:"put"`   // objects to put, without manifest shards
		Added     int   `json:"added"` // new objects, part of Put; the others are replaced because their bytes or headers changed
		Bytes     int64 `json:"bytes"`
		Manifests int   `json:"manifests"`
		Delete    int   `json:"delete"`
	} `json:"plan"`
	Done Done `json:"done"`
	// Inputs counts the inputs of sites that were put and deleted; nil if there were none, or the
	// run failed earlier.
	Inputs *inputs.Report `json:"inputs,omitempty"`

	// Signed describes the new note; nil if the run put none.
	Signed *sign.Signature `json:"signed,omitempty"`

	Changed Changed     `json:"-"` // for purging caches
	Config  site.Config `json:"-"` // configuration of the site, to derive URLs from Changed
	Before  site.Config `json:"-"` // configuration of the previous live site; zero if unknown

	Requests map[storage.Request]int `json:"requests,omitempty"` // set by the caller: requests made, or expected after a dry run
	Retries  int64                   `json:"retries"`
	Seconds  float64                 `json:"seconds"`

	planned bool // whether Plan is set
	mu      sync.Mutex
}

// Done counts finished changes.
type Done struct {
	Put       int   `json:"put"`
	Bytes     int64 `json:"bytes"` // including manifests
	Manifests int   `json:"manifests"`
	Deleted   int   `json:"deleted"`
}

// Changed names the objects and manifest shards that a run put or deleted, or that a dry run would.
// It omits the root.
type Changed struct {
	Keys    []site.Key // in no particular order
	Unknown bool       // whether other objects changed too: more than the limit, changes by a run that was cut off, or other headers
}

// New returns a report with the outcome Failed.
func New() *Report { return &Report{Outcome: Failed} }

// Note sets the fields that only the caller knows: the name of the destination, and the final
// error, which may be nil.
func (r *Report) Note(dest string, err error) {
	r.Dest = dest
	if err != nil {
		r.Error = err.Error()
	}
}

// SetPlan records the plan of the run. live is the root of the bucket, or nil.
func (r *Report) SetPlan(p *plan.Plan, live *site.Root, maxChanged int) error {
	r.planned = true
	keys, complete, err := p.Changed(maxChanged)
	if err != nil {
		return err
	}
	r.Changed = Changed{Keys: keys, Unknown: !complete}
	switch {
	case live == nil, r.Resumed: // caches were not purged of the changes of an earlier run
		r.Changed = Changed{Unknown: true}
	case !maps.Equal(live.HeaderRules, r.Config.HeaderRules()): // computed answers change too, and have no keys
		r.Changed = Changed{Unknown: true}
	}
	if live != nil {
		r.Before = live.Config
	}
	r.Plan.Put, r.Plan.Added, r.Plan.Bytes = p.Put, p.Added, p.Bytes
	r.Plan.Manifests, r.Plan.Delete = p.Manifests, p.Deletes.Records
	return nil
}

// Add counts finished changes. It may be called from many goroutines.
func (r *Report) Add(more Done) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Done.Put += more.Put
	r.Done.Bytes += more.Bytes
	r.Done.Manifests += more.Manifests
	r.Done.Deleted += more.Deleted
}

// ExpectedRequests estimates the requests of a dry run's plan, with one object per request.
func (r *Report) ExpectedRequests() map[storage.Request]int {
	const (
		bookkeeping = 4 // lock, its probe, mark, root
		checks      = 4 // root; root and mark under the lock; the lock before its release
	)
	if r.Outcome == Unchanged {
		return map[storage.Request]int{storage.Get: 2}
	}
	return map[storage.Request]int{
		storage.Put:    r.Plan.Put + r.Plan.Manifests + bookkeeping,
		storage.Get:    r.Plan.Manifests + checks,
		storage.Delete: (r.Plan.Delete+storage.MaxDelete-1)/storage.MaxDelete + 2,
	}
}

// String formats the report for a person.
func (r *Report) String() string {
	var b strings.Builder
	if r.AsOf != "" {
		fmt.Fprintf(&b, "site      %10d objects, %s, as of %s\n", r.Site.Objects, megabytes(r.Site.Bytes), r.AsOf)
	}
	if r.planned {
		fmt.Fprintf(&b, "to do     %10d objects to put (%d of them new), %s, and %d manifest shards; %d to delete\n",
			r.Plan.Put, r.Plan.Added, megabytes(r.Plan.Bytes), r.Plan.Manifests, r.Plan.Delete)
	}
	if r.planned && r.Outcome != Planned {
		fmt.Fprintf(&b, "done      %10d objects put, %d manifest shards, %s%s; %d deleted%s\n",
			r.Done.Put, r.Done.Manifests, megabytes(r.Done.Bytes), r.rate(), r.Done.Deleted, r.remarks())
	}
	if s := r.Signed; s != nil {
		fmt.Fprintf(&b, "signed    %10d is the counter of %s, by %d keys\n", s.Counter, s.Origin, s.Keys)
	}
	if i := r.Inputs; i != nil {
		fmt.Fprintf(&b, "inputs    %10d objects, %d of them put: %s; %d of earlier sites deleted\n", i.Objects, i.Put, megabytes(i.Bytes), i.Deleted)
	}
	if n := r.Requests[storage.Put] + r.Requests[storage.List]; n+r.Requests[storage.Get] > 0 {
		fmt.Fprintf(&b, "requests  %10d put or list, %d get, %d delete; %d retried\n",
			n, r.Requests[storage.Get]+r.Requests[storage.Head], r.Requests[storage.Delete], r.Retries)
	}
	fmt.Fprintf(&b, "%s: %s (%s)\n", r.Dest, r.Outcome, r.took())
	if r.Outcome == Interrupted {
		b.WriteString("run the same command again to resume\n")
	}
	return b.String()
}

func (r *Report) took() time.Duration {
	return time.Duration(r.Seconds * float64(time.Second)).Round(time.Millisecond)
}

func (r *Report) rate() string {
	if r.Seconds == 0 {
		return ""
	}
	return fmt.Sprintf(" (%.0f objects/s)", float64(r.Done.Put+r.Done.Manifests)/r.Seconds)
}

func (r *Report) remarks() string {
	text := ""
	if r.Bulk {
		text += ", many objects per request"
	}
	if r.Resumed {
		text += ", after a listing"
	}
	if r.Unlocked {
		text += ", without a lock"
	}
	return text
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
