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
