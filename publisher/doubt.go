package publisher

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/followpress/followpress/storage"
)

// A doubt says that requests of an earlier run may arrive late: of one that was taken for
// dead and may only have been stopped, or one that did not hear what became of a request.
// It is kept in the lock, which outlives the runs. As long as it is there, runs look at
// everything by listing, and leave the mark.
type doubt struct {
	Run   string      `json:"run,omitempty"`   // whose requests; "" if there are several
	Since time.Time   `json:"since"`           // by the bucket's clock: nothing was signed later
	Sites []markedRun `json:"sites,omitempty"` // what the mark named: one of those requests may delete it
}

// lateness is how long after its signing a request may arrive: S3 refuses those whose
// time differs by more than 15 minutes from its own (RequestTimeTooSkewed), and the
// sender's clock may be wrong by as much. The rest is for the bucket's clocks.
const lateness = time.Hour

// settled reports whether nothing can arrive any more. A run that looks at everything
// after that ends the doubt.
func (d *doubt) settled(now time.Time) bool { return d == nil || now.Sub(d.Since) > lateness }

// and is the doubt of both; either may be nil.
func (d *doubt) merge(other *doubt) *doubt {
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
	return sum.withSites(other.Sites)
}

// of is the doubt with more sites whose objects may arrive.
func (d *doubt) withSites(sites []markedRun) *doubt {
	sum := *d
	sum.Sites = slices.Clip(d.Sites)
	for _, s := range sites {
		if !slices.ContainsFunc(sum.Sites, s.equal) {
			sum.Sites = append(sum.Sites, s)
		}
	}
	slices.SortStableFunc(sum.Sites, func(a, b markedRun) int { return a.Since.Compare(b.Since) })
	sum.Sites = slices.CompactFunc(sum.Sites, markedRun.sameRules)
	return &sum
}

// sane is the doubt without a time in the future, which would never pass: one wrong
// answer of a server or a proxy is enough for that.
func (d *doubt) notInFuture(now time.Time) *doubt {
	if d == nil || !d.Since.After(now.Add(lateness)) {
		return d
	}
	return &doubt{Run: d.Run, Since: now.UTC(), Sites: d.Sites}
}

// doubtOf is the doubt about the owner of a lock that it has not released: its last
// request was signed within the lease of its last heartbeat.
func (b lockBody) doubtOf(info storage.Info, now time.Time) *doubt {
	last := info.Modified
	if last.IsZero() {
		last = now
	}
	return (&doubt{Run: b.ID, Since: last.Add(b.lease()).UTC()}).notInFuture(now)
}

// is reports whether two doubts are the same one.
func (d *doubt) equal(other *doubt) bool {
	return d == other || d != nil && other != nil && d.Run == other.Run && d.Since.Equal(other.Since)
}

// doubted reports whether a lock says that the bucket may not be what its manifest says.
// Late requests of the run that published last would repeat what they have done.
func (b lockBody) doubted() bool { return b.Doubt != nil && (b.Doubt.Run == "" || b.Doubt.Run != b.ID) }

// changeLock changes the lock of whoever has it, or makes one that is free. change
// reports whether there is anything to change.
func changeLock(ctx context.Context, bucket *retryingBucket, change func(*lockBody) bool) error {
	for range maxLockWrites {
		body, info, err := readLock(ctx, bucket)
		condition := storage.Condition(info.ETag)
		if errors.Is(err, storage.ErrNotFound) {
			body, condition = lockBody{ID: newID(), Released: true}, storage.IfAbsent
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
