package publisher

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// unreachable returns a bucket with the temporary errors of storage: no process listens on its
// port.
func unreachable(t *testing.T) Bucket {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	bucket, err := storage.OpenBucket(context.Background(), storage.Location{Bucket: "bucket"}, storage.S3Options{Endpoint: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	return bucket
}

// A flaky bucket fails for some time.
type flaky struct {
	Bucket
	broken   Bucket
	failures atomic.Int32
}

func (f *flaky) Read(ctx context.Context, key site.Key) ([]byte, storage.Info, error) {
	if f.failures.Add(-1) >= 0 {
		return f.broken.Read(ctx, key)
	}
	return f.Bucket.Read(ctx, key)
}

func (f *flaky) Put(ctx context.Context, o storage.Object, c storage.Condition) (string, error) {
	if f.failures.Add(-1) >= 0 {
		return f.broken.Put(ctx, o, c)
	}
	return f.Bucket.Put(ctx, o, c)
}

// A closed bucket refuses all requests.
type closed struct{ Bucket }

func (closed) Read(context.Context, site.Key) ([]byte, storage.Info, error) {
	return nil, storage.Info{}, storage.ErrNoBucket
}

// A failure that a retry cannot fix ends the run at once.
func TestPermanentFailure(t *testing.T) {
	bucket := &flaky{Bucket: openLocal(t.TempDir()), broken: closed{}}
	bucket.failures.Store(1)
	report, err := Publish(t.Context(), siteOf(t, objectsOf(3, "")), bucket, Options{})
	if !errors.Is(err, storage.ErrNoBucket) || report.Retries > 0 {
		t.Errorf("got %v after %d retries, want ErrNoBucket at once", err, report.Retries)
	}
}

// Retryable failures are retried, and counted.
func TestRetries(t *testing.T) {
	folder := t.TempDir()
	want := siteOf(t, objectsOf(3, ""))
	bucket := &flaky{Bucket: openLocal(folder), broken: unreachable(t)}
	bucket.failures.Store(3)
	report := publish(t, want, bucket, Options{Concurrency: 1})
	equalSites(t, inBucket(t, folder), want)
	if report.Retries != 3 {
		t.Errorf("retries in the report: got %d, want 3", report.Retries)
	}
}

// When patience is used up, the error is the last attempt's.
func TestPatienceEnds(t *testing.T) {
	begun := time.Now()
	report, err := Publish(context.Background(), siteOf(t, objectsOf(1, "")), unreachable(t), Options{Patience: time.Second})
	if !storage.Temporary(err) || report.Outcome != Failed {
		t.Errorf("got %v, %s, want a temporary error and failed", err, report.Outcome)
	}
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("time: got %v, want the patience at most", took)
	}
}

// An interrupt ends the wait before a retry.
func TestInterruptEndsWaiting(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	begun := time.Now()
	report, err := Publish(ctx, siteOf(t, objectsOf(1, "")), unreachable(t), Options{})
	if !errors.Is(err, context.DeadlineExceeded) || report.Outcome != Interrupted {
		t.Errorf("got %v, %s, want DeadlineExceeded and interrupted", err, report.Outcome)
	}
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("time: got %v, want an end at once", took)
	}
}

// hanging never answers before its context ends.
type hanging struct{ Bucket }

func (hanging) Put(ctx context.Context, _ storage.Object, _ storage.Condition) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

// Requests in flight at an interrupt may end within the grace period.
func TestGrace(t *testing.T) {
	next, bucket := siteOf(t, objectsOf(1, "")), hanging{openLocal(t.TempDir())}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(200*time.Millisecond, cancel)
		begun := time.Now()
		report, err := Publish(ctx, next, bucket, Options{})
		if !errors.Is(err, context.Canceled) || report.Outcome != Interrupted {
			t.Errorf("got %v, %s, want Canceled and interrupted", err, report.Outcome)
		}
		if took := time.Since(begun); took < grace || took > grace+5*time.Second {
			t.Errorf("time: got %v, want about %v", took, grace)
		}
	})
}

// A listing that breaks off continues after the last key, not from the beginning.
func TestListingGoesOn(t *testing.T) {
	folder := t.TempDir()
	publish(t, siteOf(t, objectsOf(20, "")), openLocal(folder), Options{})
	want := len(inBucket(t, folder)) + 1 // the lock
	bucket := &breakingList{Bucket: openLocal(folder), broken: unreachable(t)}
	p := retrying(bucket, 10*time.Second)
	found := map[site.Key]int{}
	if err := p.List(context.Background(), "", func(info storage.Info) error { found[info.Key]++; return nil }); err != nil {
		t.Fatal(err)
	}
	for key, times := range found {
		if times > 1 {
			t.Errorf("%s: got listed %d times, want once", key, times)
		}
	}
	if len(found) != want {
		t.Errorf("got %d keys, want %d", len(found), want)
	}
}

// breakingList fails after every 25 keys.
type breakingList struct {
	Bucket
	broken Bucket
}

func (b *breakingList) List(ctx context.Context, prefix, after site.Key, found func(storage.Info) error) error {
	const keys = 25
	n := 0
	enough := errors.New("enough")
	err := b.Bucket.List(ctx, prefix, after, func(info storage.Info) error {
		if n++; n > keys {
			return enough
		}
		return found(info)
	})
	if errors.Is(err, enough) {
		_, _, err = b.broken.Read(ctx, "key")
	}
	return err
}
