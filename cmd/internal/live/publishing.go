package live

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/cmd/internal/generate"
	"github.com/followpress/followpress/cmd/internal/publish"
	snapshots "github.com/followpress/followpress/cmd/internal/snapshot"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/storage"
)

// A finalizer makes snapshots of finalized blocks; follow.Follower implements it.
type finalizer interface {
	Finalized(ctx context.Context, w *snapshot.Writer) (snapshot.Meta, error)
	Renew()
}

// background works on a clock: it asks for profiles and badges, publishes, and copies the state. It logs
// failures and retries at a later tick.
type background struct {
	*Command
	source   finalizer
	services *snapshots.Services // nil if none
	copies   *copies             // nil if none
	monitor  *monitor
	log      *slog.Logger
}

// run works until ctx ends.
func (b *background) run(ctx context.Context) {
	every(ctx, b.PublishEvery, func(ctx context.Context) error {
		if b.services != nil {
			b.tell(ctx, "profiles and badges", b.refresh(ctx))
		}
		var err error
		if b.Dest != "" {
			err = b.publish(ctx)
		}
		if b.copies != nil && ctx.Err() == nil {
			b.copyState(ctx)
		}
		return err
	})
}

func (b *background) tell(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		b.log.Warn(what+": failed, will retry", "error", err)
	}
}

// refresh asks services for the profiles and badges of the accounts in the last snapshot.
func (b *background) refresh(ctx context.Context) error {
	return b.withSnapshot(ctx, false, func(files afero.Fs, _ snapshot.Meta) error {
		wanted, err := held(ctx, files)
		if err != nil {
			return err
		}
		told, err := b.services.Refresh(ctx, wanted)
		for _, report := range told {
			b.log.Info("asked services", "report", strings.TrimSpace(report.String()))
		}
		if len(told) > 0 {
			b.source.Renew()
		}
		return err
	})
}

// held counts the lists that follow each account of a snapshot; lists' accounts have an entry too.
func held(ctx context.Context, files afero.Fs) (map[site.Address]uint32, error) {
	all := map[site.Address]uint32{}
	lists := snapshot.Reader[snapshot.List]{Snapshot: files, Done: func(block snapshot.Block[snapshot.List]) error {
		for _, row := range block.Rows {
			all[rules.AccountOf(row.Value.Owner, row.Value.User)] += 0
		}
		return nil
	}}
	if err := lists.Table(ctx, snapshot.TableLists); err != nil {
		return nil, err
	}
	type followed struct {
		account site.Address
		is      bool
	}
	records := snapshot.Reader[followed]{Snapshot: files, Untimed: true, Done: func(block snapshot.Block[followed]) error {
		for _, row := range block.Rows {
			if row.Value.is {
				all[row.Value.account]++
			}
		}
		return nil
	}}
	err := records.Records(ctx, func(r *snapshot.Record) (followed, error) {
		account, ok := r.Address()
		return followed{account, ok && rules.IsFollow(rules.Kind{Version: r.Version, Type: r.Type}, r.Tags)}, nil
	})
	return all, err
}

// withSnapshot calls do with a snapshot of finalized blocks: a new one if fresh, else that of an earlier
// tick if there is one. The state keeps it between ticks, if there is a state.
func (b *background) withSnapshot(ctx context.Context, fresh bool, do func(afero.Fs, snapshot.Meta) error) (err error) {
	dir := filepath.Join(b.State, "snapshot")
	if b.State == "" {
		work, failed := os.MkdirTemp("", "followpress-live-")
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
		dir = filepath.Join(work, "snapshot")
	}
	var meta snapshot.Meta
	if _, err := os.Stat(dir); fresh || errors.Is(err, fs.ErrNotExist) {
		if meta, err = b.write(ctx, dir); err != nil {
			return fmt.Errorf("make the snapshot of finalized blocks: %w", err)
		}
	}
	files, err := snapshot.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	return do(files, meta)
}

// write writes the snapshot of finalized blocks, uncompressed: it is read once, on this machine.
func (b *background) write(ctx context.Context, dir string) (meta snapshot.Meta, err error) {
	w, err := snapshot.Create(dir, snapshot.WriteOptions{Compression: "none", NoSync: true})
	if err != nil {
		return meta, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if meta, err = b.source.Finalized(ctx, w); err != nil {
		return meta, err
	}
	return meta, w.Commit(meta)
}

// publish publishes the site of finalized blocks. A concurrent publisher is not an error.
func (b *background) publish(ctx context.Context) error {
	begun := time.Now()
	told := publishStatus{}
	var report *publisher.Report
	err := b.withSnapshot(ctx, true, func(files afero.Fs, meta snapshot.Meta) error {
		told.AsOf = meta.AsOf.UTC().Format(time.RFC3339)
		content, err := b.content(ctx)
		if err != nil {
			return err
		}
		keys, err := b.Keys(ctx)
		if err != nil {
			return err
		}
		o, err := content.Options(ctx, b.Dest, b.Server(), keys)
		if err != nil {
			return err
		}
		refreshers, err := content.Refreshers()
		if err != nil {
			return err
		}
		report, err = b.Publish(ctx, publish.Destination{URL: b.Dest, Server: b.Server(), Log: b.log, Tell: &lines{b.log}, Refreshers: refreshers}, files, o)
		return err
	})
	told.At, told.Seconds = time.Now(), time.Since(begun).Seconds()
	if report != nil {
		told.Objects, told.Bytes = report.Plan.Put, report.Plan.Bytes
	}
	attributes := []any{"dest", b.Dest, "as_of", told.AsOf, "objects", told.Objects, "seconds", told.Seconds}
	switch {
	case err != nil && ctx.Err() != nil:
		return err
	case errors.Is(err, publisher.ErrLocked):
		told.Outcome, told.Error = busy, err.Error()
		b.log.Info("another publisher holds the lock, the next tick publishes", append(attributes, "error", err)...)
		err = nil
	case err != nil:
		told.Outcome, told.Error = failed, err.Error()
		b.log.Warn("the publish failed, a later tick retries; requests are answered as before", append(attributes, "error", err)...)
	case report.Outcome == publisher.Unchanged:
		told.Outcome = unchanged
		b.log.Info("nothing to publish", attributes...)
	default:
		told.Outcome = done
		b.log.Info("published", attributes...)
	}
	b.monitor.publishEnded(told)
	return err
}

// content returns the flags for the site's content. With upstreams, refreshed data in the destination is
// merged, unless a flag overrides that or no site exists yet.
func (b *background) content(ctx context.Context) (*generate.Content, error) {
	content := b.Content
	own, err := b.RefreshPublic()
	if err != nil {
		return nil, err
	}
	if own != "" {
		content.RefreshedKey = append(slices.Clone(content.RefreshedKey), own)
	}
	if content.Refreshed != nil || !b.refreshes() {
		return &content, nil
	}
	bucket, err := openBucket(ctx, b.Dest, b.Server())
	if err != nil {
		return nil, fmt.Errorf("--dest: %w", err)
	}
	if _, err := bucket.Get(ctx, site.RootKey); errors.Is(err, storage.ErrNotFound) {
		return &content, nil
	} else if err != nil {
		return nil, fmt.Errorf("--dest: %w", err)
	}
	refreshed := strings.TrimSuffix(b.Dest, "/") + "/" + strings.TrimSuffix(string(site.RefreshPrefix), "/")
	content.Refreshed = &refreshed
	return &content, nil
}

// copyState copies the state. A newer copy there is logged, and is not a failure.
func (b *background) copyState(ctx context.Context) {
	begun := time.Now()
	err := b.copies.keep(ctx, b.State)
	switch {
	case err != nil && ctx.Err() != nil:
	case err != nil:
		b.monitor.copyEnded(failed)
		b.log.Warn("the state was not copied, will retry", "error", err)
	default:
		b.monitor.copyEnded(done)
		b.log.Info("copied the state", "to", b.StateCopy, "seconds", time.Since(begun).Seconds())
	}
}

// openBucket opens the bucket at a location already checked.
func openBucket(ctx context.Context, location string, server storage.S3Options) (storage.Bucket, error) {
	at, err := storage.ParseLocation(location)
	if err != nil {
		return nil, err
	}
	return storage.OpenBucket(ctx, at, server)
}

// lines logs each line written to it.
type lines struct{ log *slog.Logger }

// Write expects whole lines.
func (l *lines) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" {
			l.log.Info(line)
		}
	}
	return len(text), nil
}

// progress logs the stages of long work, such as the first read of all blocks.
type progress struct {
	log *slog.Logger

	mu    sync.Mutex
	stage string
	total int64
	done  int64
	begun time.Time
	told  time.Time
}

const tellEvery = 10 * time.Second

// Stage begins a stage.
func (p *progress) Stage(name string, total int64) {
	p.End()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stage, p.total, p.done, p.begun, p.told = name, total, 0, time.Now(), time.Now()
}

// Add reports n more items done.
func (p *progress) Add(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done += n; p.stage != "" && time.Since(p.told) >= tellEvery {
		p.told = time.Now()
		p.log.Info("reading", "stage", p.stage, "done", p.done, "of", p.total)
	}
}

// End ends the stage.
func (p *progress) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if took := time.Since(p.begun); p.stage != "" && took >= time.Second {
		p.log.Info("read", "stage", p.stage, "done", p.done, "seconds", took.Seconds())
	}
	p.stage = ""
}

// longestBackoff caps the wait after failures, unless the interval is longer.
const longestBackoff = time.Hour

// every calls do at once and then at each tick until ctx ends, one call at a time: ticks during a call
// are skipped. After n failures in a row it waits 2^(n-1) intervals, at most longestBackoff. Intervals
// follow the monotonic clock, so setting the clock has no effect.
func every(ctx context.Context, interval time.Duration, do func(ctx context.Context) error) {
	begun, failures := time.Now(), 0
	for ctx.Err() == nil {
		if err := do(ctx); err != nil {
			failures++
		} else {
			failures = 0
		}
		next := interval - time.Since(begun)%interval + backoff(interval, failures)
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// backoff returns the wait beyond the next tick, after this number of failures in a row.
func backoff(interval time.Duration, failures int) time.Duration {
	wait := interval
	for range failures - 1 {
		if wait *= 2; wait >= longestBackoff {
			wait = max(interval, longestBackoff)
			break
		}
	}
	return wait - interval
}
