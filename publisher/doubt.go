package publisher

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/followpress/followpress/storage"
)

// A doubt says that requests of an earlier run may arrive late: the run was taken over while it
// may only have been stopped, or it got no answer to a request. The doubt is kept in the lock,
// which outlives the runs. While it exists, runs compare with a listing and keep the mark.
type doubt struct {
	Run   string      `json:"run,omitempty"`   // ID of the run; "" if there are several
	Since time.Time   `json:"since"`           // by the bucket's clock; no such request was signed later
	Sites []markedRun `json:"sites,omitempty"` // named by the mark, which a late request may delete
}

// lateness is how long after its signing a request may take effect. S3 refuses requests whose
// time differs by more than 15 minutes from its own (RequestTimeTooSkewed), and the sender's
// clock may be wrong by as much. The rest allows for differences between the bucket's clocks.
const lateness = time.Hour

// settled reports whether no request can arrive any more. A run that compares with a listing
// after that ends the doubt.
func (d *doubt) settled(now time.Time) bool { return d == nil || now.Sub(d.Since) > lateness }

// merge is the doubt about the requests of both; either may be nil.
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

// withSites is the doubt with more sites whose objects may arrive.
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

// notInFuture is the doubt with a time far in the future replaced by now. One wrong answer of a
// server or a proxy could otherwise keep a doubt for years.
func (d *doubt) notInFuture(now time.Time) *doubt {
	if d == nil || !d.Since.After(now.Add(lateness)) {
		return d
	}
	return &doubt{Run: d.Run, Since: now.UTC(), Sites: d.Sites}
}

// doubtOf is the doubt about the owner of an unreleased lock: its last request was signed within
// the lease after its last heartbeat.
func (b lockBody) doubtOf(info storage.Info, now time.Time) *doubt {
	last := info.Modified
	if last.IsZero() {
		last = now
	}
	return (&doubt{Run: b.ID, Since: last.Add(b.lease()).UTC()}).notInFuture(now)
}

// equal reports whether two doubts have the same run and time.
func (d *doubt) equal(other *doubt) bool {
	return d == other || d != nil && other != nil && d.Run == other.Run && d.Since.Equal(other.Since)
}

// doubted reports whether the bucket may differ from its manifest according to the lock. Late
// requests of the run that published last make no difference: they would repeat earlier ones.
func (b lockBody) doubted() bool { return b.Doubt != nil && (b.Doubt.Run == "" || b.Doubt.Run != b.ID) }

// changeLock changes a lock that another run may hold, or creates a free one. change reports
// whether it changed anything.
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
