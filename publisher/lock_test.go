package publisher

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/followpress/followpress/publisher/internal/lock"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

func lockOn(t *testing.T, bucket Bucket, o Options) (*lock.Lock, context.Context, error) {
	t.Helper()
	o, err := o.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	ctx, lost := context.WithCancelCause(context.Background())
	t.Cleanup(func() { lost(nil) })
	p := retrying(bucket, time.Second)
	l, err := lock.Acquire(ctx, lock.NewID(), p, o.lock(), lost)
	return l, ctx, err
}

// Of many publishers that start together one gets the lock; the errors of the others name its
// owner.
func TestOneOfManyIsLocked(t *testing.T) {
	folder := t.TempDir()
	var held atomic.Int32
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			_, _, err := lockOn(t, openLocal(folder), Options{Owner: "somebody", Lease: time.Second})
			switch {
			case err == nil:
				held.Add(1)
			case !errors.Is(err, lock.ErrLocked) || !strings.Contains(err.Error(), "somebody"):
				t.Error(err)
			}
		})
	}
	group.Wait()
	if held.Load() != 1 {
		t.Errorf("publishers with the lock: got %d, want 1", held.Load())
	}
}

func TestReleasedLockIsFree(t *testing.T) {
	folder := t.TempDir()
	for range 3 {
		l, _, err := lockOn(t, openLocal(folder), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Release(context.Background(), lock.SameDoubt); err != nil {
			t.Fatal(err)
		}
	}
	if left := inBucket(t, folder); len(left) > 0 {
		t.Errorf("objects: got %v, want none", left)
	}
}

// A lock without a heartbeat for its lease is taken over; the old owner notices and removes
// nothing.
func TestLockWithoutHeartbeatIsTakenOver(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	owner := &mortal{Bucket: openLocal(folder), left: 3} // the lock and its two probes
	first, ctx, err := lockOn(t, owner, Options{Lease: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	second, _, err := lockOn(t, openLocal(folder), Options{drain: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took < time.Second {
		t.Errorf("takeover: got it after %v, want the lease of 1s at least", took)
	}
	if !second.Doubted || second.Found == nil || second.Found.Run != first.ID() {
		t.Errorf("doubt of a takeover: got %+v, want one about %s", second.Found, first.ID())
	}
	owner.mu.Lock()
	owner.left = -1 // it lives again
	owner.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("first publisher: got no end of its context, want ErrLockLost")
	}
	if !errors.Is(context.Cause(ctx), lock.ErrLockLost) {
		t.Error(context.Cause(ctx))
	}
	if err := first.Release(context.Background(), lock.SameDoubt); err != nil {
		t.Error(err)
	}
	if _, ok := inBucket(t, folder)[site.LockKey]; !ok { // otherwise it was released
		t.Error("lock of the second publisher: got none, want it")
	}
}

func TestBreakLock(t *testing.T) {
	folder := t.TempDir()
	if _, _, err := lockOn(t, openLocal(folder), Options{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := lockOn(t, openLocal(folder), Options{BreakLock: true, drain: dead}); err != nil {
		t.Error(err)
	}
}

// careless accepts conditions and ignores them, as some servers do.
type careless struct{ Bucket }

func (c careless) Put(ctx context.Context, o storage.Object, _ storage.Condition) (string, error) {
	return c.Bucket.Put(ctx, o, storage.Always)
}

// If the server ignores conditions, the run publishes without a lock and logs that once.
func TestServerWithoutConditions(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	var log strings.Builder
	want := siteOf(t, objectsOf(5, ""))
	report := publish(t, want, careless{openLocal(folder)}, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	equalSites(t, inBucket(t, folder), want)
	if !report.Unlocked || strings.Count(log.String(), "conditional writes") != 1 {
		t.Errorf("got unlocked %v, want true and a warning:\n%s", report.Unlocked, &log)
	}
}

// A publisher whose lease expires during a publish stops, and the site of the new owner stays
// unchanged.
func TestStalePublisherStops(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	newer := siteOf(t, objectsOf(40, " newer"))
	bucket := openLocal(folder)
	stalled, ended := publishStalling(t, bucket)
	publish(t, newer, bucket, Options{drain: time.Millisecond})
	close(stalled.goOn)
	if err := <-ended; !errors.Is(err, lock.ErrLockLost) {
		t.Errorf("stale publisher: got %v, want ErrLockLost", err)
	}
	equalSites(t, inBucket(t, folder), newer)
}

// A run that breaks the lock of a live publisher waits until the other has stopped by itself. If
// some of its objects arrive nevertheless, the next run repairs that.
func TestBrokenLockOfALivingPublisher(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	newer := siteOf(t, objectsOf(40, " newer"))
	bucket := openLocal(folder)
	stalled, ended := publishStalling(t, bucket)
	publish(t, newer, bucket, Options{BreakLock: true, drain: time.Millisecond})
	close(stalled.goOn)
	if err := <-ended; !errors.Is(err, lock.ErrLockLost) && !errors.Is(err, errInterleaved) {
		t.Errorf("stale publisher: got %v, want ErrLockLost or errInterleaved", err)
	}
	publish(t, newer, bucket, Options{drain: time.Millisecond})
	equalSites(t, inBucket(t, folder), newer)
}

// publishStalling publishes another site, up to a write at which the whole publisher is suspended.
func publishStalling(t *testing.T, bucket Bucket) (*stalling, chan error) {
	stalled := &stalling{Bucket: bucket, at: 30, stalled: make(chan struct{}), goOn: make(chan struct{})}
	ended := make(chan error, 1)
	older := siteOf(t, objectsOf(40, " older"))
	go func() {
		_, err := Publish(context.Background(), older, stalled, Options{Lease: time.Second, Concurrency: 1})
		ended <- err
	}()
	<-stalled.stalled
	return stalled, ended
}

// stalling suspends the publisher, heartbeats included, at one of the writes.
type stalling struct {
	Bucket
	writes        atomic.Int32
	at            int32
	stalled, goOn chan struct{}
}

func (s *stalling) Put(ctx context.Context, o storage.Object, c storage.Condition) (string, error) {
	if n := s.writes.Add(1); n == s.at {
		close(s.stalled)
	}
	if s.writes.Load() >= s.at {
		<-s.goOn
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	return s.Bucket.Put(ctx, o, c)
}
