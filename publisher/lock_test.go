package publisher

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/followpress/followpress/publisher/internal/lock"
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
