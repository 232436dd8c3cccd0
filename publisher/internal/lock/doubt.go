package lock

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/storage"
)

// A Doubt means that requests of an earlier run may arrive late: another run took over from it
// although it may only have been stopped, or a request got no answer. The doubt is kept in the
// lock, which outlives the runs. While it exists, runs compare with a listing and keep the mark.
type Doubt struct {
	Run   string    `json:"run,omitempty"`   // ID of the run; "" for several
	Since time.Time `json:"since"`           // by the bucket's clock; no such request was signed later
	Sites []Run     `json:"sites,omitempty"` // sites named by the mark, which a late request may delete
}

// Settled reports whether no request can arrive anymore. A run that compares with a listing after
// that ends the doubt.
func (d *Doubt) Settled(now time.Time) bool { return d == nil || now.Sub(d.Since) > requests.Lateness }

// Merge returns a doubt that covers the requests of both; either may be nil.
func (d *Doubt) Merge(other *Doubt) *Doubt {
	if d == nil || other == nil {
		return cmp.Or(d, other)
	}
	sum := *d
	if other.Run != d.Run {
		sum.Run = ""
	}
	if other.Since.After(d.Since) {
		sum.Since = other.Since
	}
	return sum.WithSites(other.Sites)
}

// WithSites returns the doubt with additional sites whose objects may arrive.
func (d *Doubt) WithSites(sites []Run) *Doubt {
	sum := *d
	sum.Sites = slices.Clip(d.Sites)
	for _, s := range sites {
		if !slices.ContainsFunc(sum.Sites, s.equal) {
			sum.Sites = append(sum.Sites, s)
		}
	}
	slices.SortStableFunc(sum.Sites, func(a, b Run) int { return a.Since.Compare(b.Since) })
	sum.Sites = slices.CompactFunc(sum.Sites, Run.SameRules)
	return &sum
}

// NotInFuture returns the doubt with a time far in the future replaced by now. Otherwise one wrong
// answer of a server or a proxy could keep a doubt for years.
func (d *Doubt) NotInFuture(now time.Time) *Doubt {
	if d == nil || !d.Since.After(now.Add(requests.Lateness)) {
		return d
	}
	return &Doubt{Run: d.Run, Since: now.UTC(), Sites: d.Sites}
}

// DoubtOf returns the doubt about the owner of an unreleased lock: its last request was signed
// within the lease after its last heartbeat.
func (b Body) DoubtOf(info storage.Info, now time.Time) *Doubt {
	last := info.Modified
	if last.IsZero() {
		last = now
	}
	return (&Doubt{Run: b.ID, Since: last.Add(b.LeaseTime()).UTC()}).NotInFuture(now)
}

// Equal reports whether two doubts have the same run and time.
func (d *Doubt) Equal(other *Doubt) bool {
	return d == other || d != nil && other != nil && d.Run == other.Run && d.Since.Equal(other.Since)
}

// Doubted reports whether, according to the lock, the bucket may differ from its manifest. Late
// requests of the run that published last make no difference: they repeat earlier ones.
func (b Body) Doubted() bool { return b.Doubt != nil && (b.Doubt.Run == "" || b.Doubt.Run != b.ID) }

// Change changes a lock that another run may hold, or creates a free one. change reports whether it
// changed anything.
func Change(ctx context.Context, bucket *requests.Bucket, change func(*Body) bool) error {
	for range maxLockWrites {
		body, info, err := Read(ctx, bucket)
		condition := storage.Condition(info.ETag)
		if errors.Is(err, storage.ErrNotFound) {
			body, condition = Body{ID: NewID(), Released: true}, storage.IfAbsent
		} else if err != nil {
			return err
		}
		if !change(&body) {
			return nil
		}
		_, _, err = writeLock(ctx, bucket, body, condition)
		if errors.Is(err, storage.ErrUnsupported) {
			_, _, err = writeLock(ctx, bucket, body, storage.Always)
		}
		if !errors.Is(err, storage.ErrCondition) && !errors.Is(err, storage.ErrNotFound) {
			return err
		}
	}
	return ErrLocked
}
