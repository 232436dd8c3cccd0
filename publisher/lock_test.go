package publisher

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

func lockOn(t *testing.T, bucket Bucket, o Options) (*lock, context.Context, error) {
	t.Helper()
	o, err := o.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	ctx, lost := context.WithCancelCause(context.Background())
	t.Cleanup(func() { lost(nil) })
	p := retrying(bucket, time.Second)
	l, err := acquire(ctx, newID(), p, o, lost)
	return l, ctx, err
}

// Of many publishers that start together one gets the lock; the errors of the others
// name its owner.
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
			case !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "somebody"):
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
		if err := l.release(context.Background(), sameDoubt); err != nil {
			t.Fatal(err)
		}
	}
	if left := inBucket(t, folder); len(left) > 0 {
		t.Errorf("objects: got %v, want none", left)
	}
}

// A lock without a heartbeat for its lease is taken over; the old owner notices that,
// and removes nothing.
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
	if !second.doubted || second.found == nil || second.found.Run != first.body.ID {
		t.Errorf("doubt of a takeover: got %+v, want one about %s", second.found, first.body.ID)
	}
	owner.mu.Lock()
	owner.left = -1 // it lives again
	owner.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("first publisher: got no end of its context, want ErrLockLost")
	}
	if !errors.Is(context.Cause(ctx), ErrLockLost) {
		t.Error(context.Cause(ctx))
	}
	if err := first.release(context.Background(), sameDoubt); err != nil {
		t.Error(err)
	}
	if _, ok := inBucket(t, folder)[site.LockKey]; !ok { // or it is released
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

// If the server ignores conditions the run publishes without a lock, and logs that once.
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

// After the end of the lease nothing is sent, and requests under way are canceled.
func TestLeaseEnds(t *testing.T) {
	l := newLease(50*time.Millisecond, machineTime(), machineTime)
	ctx, cancel, err := l.context(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer cancel()
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("request after the end of the lease: got it running, want it cut off")
	}
	if _, _, err := l.context(context.Background()); !errors.Is(err, errNotHeld) {
		t.Errorf("request after the end of the lease: got %v, want errNotHeld", err)
	}
	l.renew(machineTime().add(time.Hour))
	again, cancel, err := l.context(context.Background())
	if err != nil || again.Err() != nil {
		t.Errorf("after a heartbeat: got %v, %v, want no error", err, again.Err())
	}
	cancel()
}

// A request that the end of the lease has cut off can be tried again, even if a heartbeat has renewed
// the lease before the request returns; that renewal does not let the request go on.
func TestLeaseIsRenewedAfterItsEnd(t *testing.T) {
	for name, end := range map[string]func(context.Context, *lease){
		"by the timer": func(ctx context.Context, _ *lease) { <-ctx.Done() },
		"by the clock": func(_ context.Context, l *lease) { // as after a stop, before the timer fires
			l.timer.Stop()
			time.Sleep(time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := retrying(openLocal(t.TempDir()), time.Second)
				b.lease = newLease(time.Minute, machineTime(), machineTime)
				defer b.lease.release()
				err := b.attempt(time.Hour, func(ctx context.Context) error {
					end(ctx, b.lease)
					first := ctx.Err()
					b.lease.renew(machineTime())
					if again := ctx.Err(); first == nil || !errors.Is(again, first) {
						t.Errorf("context of the request: got %v, and %v after a heartbeat, want the same error", first, again)
					}
					return context.Canceled // as a request whose context has ended
				})
				if !errors.Is(err, errNotHeld) || !isRetryable(err) {
					t.Errorf("request: got %v, want errNotHeld, which is retryable", err)
				}
			})
		})
	}
}

// A publisher whose lease has expired during a publish stops, and the site of the new
// owner stays as it is.
func TestStalePublisherStops(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	newer := siteOf(t, objectsOf(40, " newer"))
	bucket := openLocal(folder)
	stalled, ended := publishStalling(t, bucket)
	publish(t, newer, bucket, Options{drain: time.Millisecond})
	close(stalled.goOn)
	if err := <-ended; !errors.Is(err, ErrLockLost) {
		t.Errorf("stale publisher: got %v, want ErrLockLost", err)
	}
	equalSites(t, inBucket(t, folder), newer)
}

// A run that breaks the lock of a live publisher waits until that one has stopped by
// itself. If some of its objects arrive nevertheless, the next run repairs that.
func TestBrokenLockOfALivingPublisher(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	newer := siteOf(t, objectsOf(40, " newer"))
	bucket := openLocal(folder)
	stalled, ended := publishStalling(t, bucket)
	publish(t, newer, bucket, Options{BreakLock: true, drain: time.Millisecond})
	close(stalled.goOn)
	if err := <-ended; !errors.Is(err, ErrLockLost) && !errors.Is(err, ErrInterleaved) {
		t.Errorf("stale publisher: got %v, want ErrLockLost or ErrInterleaved", err)
	}
	publish(t, newer, bucket, Options{drain: time.Millisecond})
	equalSites(t, inBucket(t, folder), newer)
}

// publishStalling publishes another site, up to a write at which the whole publisher is
// suspended.
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

// A lease ends by the clock that reaches its end first: the monotonic one stops while a machine
// sleeps, and the wall clock can be set.
func TestLeaseEndsByEitherClock(t *testing.T) {
	begun := machineTime()
	for name, passed := range map[string]instant{
		"the machine has slept":       {begun.monotonic, begun.wall.Add(2 * time.Minute)},
		"the wall clock was set back": {begun.monotonic.Add(2 * time.Minute), begun.wall.Add(-time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			now := begun
			l := newLease(time.Minute, begun, func() instant { return now })
			defer l.release()
			if !l.held() {
				t.Error("lease that begins: got it ended, want it held")
			}
			if now = passed; l.held() {
				t.Error("lease of a minute after two: got it held, want it ended")
			}
		})
	}
}

// However long a lock says that its owner sends requests, others wait no longer than any owner does.
func TestLeaseOfALock(t *testing.T) {
	for said, want := range map[float64]time.Duration{
		30: 30 * time.Second, 0: 0, -1: 0, maxLease.Seconds(): maxLease, maxLease.Seconds() + 1: maxLease, 1e300: maxLease, math.Inf(1): maxLease, math.Inf(-1): 0,
	} {
		if got := (lockBody{Lease: said}).lease(); got != want {
			t.Errorf("a lease of %g s: got %v, want %v", said, got, want)
		}
	}
}
