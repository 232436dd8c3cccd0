package live

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/followpress/followpress/live"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source/follow"
)

// A final is a graph of one list, which cannot be written some times.
type final struct {
	fails int
	calls int
}

func (f *final) Finalized(_ context.Context, w *snapshot.Writer) (snapshot.Meta, error) {
	if f.calls++; f.calls <= f.fails {
		return snapshot.Meta{}, &fullDisk{}
	}
	return snapshot.Meta{AsOf: time.Unix(900_000_000, 0)}, w.WriteList(snapshot.List{TokenID: "1", Owner: site.Address{1}})
}

func (*final) Renew() {}

type fullDisk struct{}

func (*fullDisk) Error() string { return "write records.ndjson: " + syscall.ENOSPC.Error() }

// A failed publish, here because the disk is full, is reported and retried at a later tick. It does
// not change the bucket or the last snapshot.
func TestPublishFailsAndIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		c, err := parse("--state", filepath.Join(dir, "state"), "--rpc", "1=http://n", "--dest", "file://"+dir+"/bucket", "--no-sync")
		if err != nil {
			t.Fatal(err)
		}
		log := &buffer{}
		m := newMonitor(func() live.Status { return live.Status{} }, func() follow.Status { return follow.Status{} })
		from := &final{fails: 2}
		b := &background{Command: c, source: from, monitor: m, log: slog.New(slog.NewTextHandler(log, nil))}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			b.run(ctx)
		}()
		for tick, want := range []string{failed, failed, done, unchanged} {
			if tick > 0 {
				time.Sleep(time.Hour)
			}
			synctest.Wait()
			if got := m.status().Publish; got == nil || got.Outcome != want || (got.Error != "") != (want == failed) {
				t.Errorf("tick %d: got %+v, want %s; log:\n%s", tick, got, want, log)
			}
		}
		stop()
		<-ended
		if n := strings.Count(log.String(), "the publish failed"); n != 2 || !strings.Contains(log.String(), "no space left") {
			t.Errorf("log: got %d failures, want 2 with their reason: %s", n, log)
		}
		bucket, err := openBucket(t.Context(), c.Dest, c.Server())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := bucket.Get(t.Context(), site.RootKey); err != nil {
			t.Errorf("the bucket: got %v, want a site", err)
		}
	})
}

// A process stopped during a publish ends the publish and reports no failure.
func TestStopDuringPublish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := parse("--state", t.TempDir(), "--rpc", "1=http://n", "--dest", "file://"+t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		log := &buffer{}
		m := newMonitor(func() live.Status { return live.Status{} }, func() follow.Status { return follow.Status{} })
		ctx, stop := context.WithCancel(t.Context())
		b := &background{Command: c, source: slow{}, monitor: m, log: slog.New(slog.NewTextHandler(log, nil))}
		time.AfterFunc(time.Minute, stop)
		begun := time.Now()
		b.run(ctx)
		if took := time.Since(begun); took != time.Minute || m.status().Publish != nil || log.String() != "" {
			t.Errorf("stop: got an end after %v, %+v, %s; want one at once, and no failure", took, m.status().Publish, log)
		}
	})
}

// A slow source waits until its context ends.
type slow struct{}

func (slow) Finalized(ctx context.Context, _ *snapshot.Writer) (snapshot.Meta, error) {
	<-ctx.Done()
	return snapshot.Meta{}, errors.Join(errors.New("stopped"), ctx.Err())
}

func (slow) Renew() {}
