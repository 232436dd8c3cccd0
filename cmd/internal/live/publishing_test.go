package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
	"github.com/followpress/followpress/internal/testenv/tempdir"
	"github.com/followpress/followpress/live"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/chain"
	"github.com/followpress/followpress/source/follow"
	"github.com/followpress/followpress/storage"
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

func TestMain(m *testing.M) {
	tempdir.InMemory()
	if os.Getenv(runMain) != "" {
		command.Main("live", About, &Command{})
	}
	os.Exit(m.Run())
}

// A world is a history on nodes in this process.
type world struct {
	*history.History
	nodes map[uint64]*meanrpc.Node
}

func newWorld(t *testing.T, seed uint64, transactions int) *world {
	t.Helper()
	w := &world{history.Random(seed, history.Options{Chains: history.Production(), Transactions: transactions}), map[uint64]*meanrpc.Node{}}
	for _, c := range w.Chains {
		w.nodes[c.ID] = meanrpc.Start(t, c.ID, slices.Values(w.Blocks))
	}
	return w
}

func (w *world) urls() map[uint64][]string {
	urls := map[uint64][]string{}
	for id, n := range w.nodes {
		urls[id] = []string{n.URL}
	}
	return urls
}

// sync reads all events from the nodes into a state folder.
func (w *world) sync(t *testing.T, dir string) {
	t.Helper()
	state, err := chain.Open(dir, source.Production())
	if err != nil {
		t.Fatal(err)
	}
	defer state.Close()
	if _, err := state.Sync(t.Context(), chain.Options{URLs: w.urls(), NoSync: true, Progress: quiet{}}); err != nil {
		t.Fatal(err)
	}
}

// events returns the events of the state in a folder, as text.
func events(t *testing.T, dir string) (all string) {
	t.Helper()
	state, err := chain.Open(dir, source.Production())
	if err != nil {
		t.Fatal(err)
	}
	defer state.Close()
	for e, err := range state.Events() {
		if err != nil {
			t.Fatal(err)
		}
		all += fmt.Sprintf("%+v\n", e)
	}
	return all
}

// more adds blocks with events to all nodes.
func (w *world) more(seed uint64) {
	had := len(w.Blocks)
	w.History = w.Continue(seed, history.Options{Transactions: 40})
	for _, n := range w.nodes {
		n.Add(slices.Values(w.Blocks[had:]))
	}
}

func keep(t *testing.T, c *copies, dir string) {
	t.Helper()
	if err := c.keep(t.Context(), dir); err != nil {
		t.Fatalf("keep %s: %v", dir, err)
	}
}

// A restored state equals the original, with its profiles, and sync continues from there.
func TestCopies(t *testing.T) {
	w := newWorld(t, 1, 150)
	dir, bucket := t.TempDir(), filepath.Join(t.TempDir(), "bucket")
	c := &copies{storage.OpenLocal(bucket), bucket}
	if _, err := c.restore(t.Context(), t.TempDir()); !errors.Is(err, errNoCopy) {
		t.Errorf("restore from an empty bucket: got %v, want %v", err, errNoCopy)
	}
	w.sync(t, dir)
	profiles := bytes.Repeat([]byte("profile "), pieceBytes/8+100) // two pieces
	if err := os.MkdirAll(filepath.Join(dir, "profiles"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "profiles/store.db"), profiles, 0o644); err != nil {
		t.Fatal(err)
	}
	keep(t, c, dir)
	first := puts(t, bucket)
	keep(t, c, dir)
	if again := puts(t, bucket); !slices.Equal(again, first) {
		t.Errorf("the same state again: got %q, want %q", again, first)
	}
	w.more(2)
	w.sync(t, dir)
	keep(t, c, dir)

	back := t.TempDir()
	if _, err := c.restore(t.Context(), back); err != nil {
		t.Fatal(err)
	}
	if got, want := events(t, back), events(t, dir); got != want {
		t.Errorf("events: got %d bytes, want %d", len(got), len(want))
	}
	if got, err := os.ReadFile(filepath.Join(back, "profiles/store.db")); err != nil || !bytes.Equal(got, profiles) {
		t.Errorf("profiles: got %d bytes, %v, want %d", len(got), err, len(profiles))
	}
	if _, err := os.Stat(filepath.Join(back, "restoring")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("work folder: got %v, want none", err)
	}
	w.more(3)
	w.sync(t, back)
	w.sync(t, dir)
	if events(t, back) != events(t, dir) {
		t.Error("after more blocks: got other events than the state that was kept")
	}
}

// A copy never replaces one of later blocks.
func TestOlderCopy(t *testing.T) {
	w := newWorld(t, 1, 100)
	old, dir, bucket := t.TempDir(), t.TempDir(), t.TempDir()
	c := &copies{storage.OpenLocal(bucket), bucket}
	w.sync(t, old)
	w.more(2)
	w.sync(t, dir)
	keep(t, c, dir)
	before := puts(t, bucket)
	if err := c.keep(t.Context(), old); !errors.Is(err, errOlderCopy) {
		t.Errorf("an older state: got %v, want %v", err, errOlderCopy)
	}
	if after := puts(t, bucket); !slices.Equal(after, before) {
		t.Errorf("after an older state: got %q, want %q", after, before)
	}
}

// puts returns the names and times of the files of a bucket.
func puts(t *testing.T, bucket string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(bucket, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == ".followpress" {
			return fs.SkipDir
		}
		if err == nil && !d.IsDir() && d.Name() != string(copyKey) {
			info, err := d.Info()
			all = append(all, fmt.Sprint(d.Name(), info.ModTime()))
			return err
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A copy with missing or changed bytes is not restored, and the error names the remedy. The next
// copy repairs the bucket.
func TestDamagedCopies(t *testing.T) {
	w := newWorld(t, 1, 100)
	dir := t.TempDir()
	w.sync(t, dir)
	aPiece := func(bucket string) string {
		found, err := filepath.Glob(filepath.Join(bucket, "pieces", "*"))
		if err != nil || len(found) == 0 {
			t.Fatal("no piece", err)
		}
		return found[0]
	}
	pointer := func(change func(string) string) func(string) error {
		return func(bucket string) error {
			name := filepath.Join(bucket, string(copyKey))
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			changed := change(string(text))
			if changed == string(text) {
				return errors.New("nothing changed")
			}
			return os.WriteFile(name, []byte(changed), 0o644)
		}
	}
	for name, damage := range map[string]func(bucket string) error{
		"a piece is gone":        func(bucket string) error { return os.Remove(aPiece(bucket)) },
		"a piece is cut":         func(bucket string) error { return os.Truncate(aPiece(bucket), 20) },
		"a piece is no piece":    func(bucket string) error { return os.WriteFile(aPiece(bucket), []byte("other"), 0o644) },
		"a piece is another one": func(bucket string) error { return alter(aPiece(bucket)) },
		"no JSON":                pointer(func(s string) string { return s[:len(s)/2] }),
		"a file elsewhere":       pointer(func(s string) string { return strings.Replace(s, "chains/10/logs", "../../10/logs", 1) }),
		"a file twice":           pointer(func(s string) string { return strings.Replace(s, "chains/10/logs", "chains/1/logs", 1) }),
		"another size":           pointer(func(s string) string { return strings.Replace(s, `"size":`, `"size":1`, 1) }),
	} {
		t.Run(name, func(t *testing.T) {
			bucket := t.TempDir()
			c := &copies{storage.OpenLocal(bucket), bucket}
			keep(t, c, dir)
			if err := damage(bucket); err != nil {
				t.Fatal(err)
			}
			to := t.TempDir()
			_, err := c.restore(t.Context(), to)
			if !errors.Is(err, errDamaged) || !strings.Contains(err.Error(), "remove ") {
				t.Errorf("restore: got %v, want %v and what to do", err, errDamaged)
			}
			if chain.IsState(to) {
				t.Error("restore: got a state, want none")
			}
			if name == "a piece is another one" || name == "a piece is no piece" || name == "a piece is cut" {
				return // restore trusts a name that is a digest
			}
			keep(t, c, dir)
			if _, err := c.restore(t.Context(), to); err != nil || events(t, to) != events(t, dir) {
				t.Errorf("restore of the next copy: got %v, want the state", err)
			}
		})
	}
}

// alter changes a byte of a piece, which stays a piece.
func alter(name string) error {
	packed, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		return err
	}
	defer decoder.Close()
	piece, err := decoder.DecodeAll(packed, nil)
	if err != nil {
		return err
	}
	piece[len(piece)/2] ^= 1
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(name, encoder.EncodeAll(piece, nil), 0o644), encoder.Close())
}

// A state of another version is not replaced, and not taken for a damaged one.
func TestCopyOfAnotherVersion(t *testing.T) {
	w := newWorld(t, 1, 20)
	dir, bucket := t.TempDir(), t.TempDir()
	w.sync(t, dir)
	c := &copies{storage.OpenLocal(bucket), bucket}
	text := []byte(`{"format":2}`)
	if err := os.WriteFile(filepath.Join(bucket, string(copyKey)), text, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := c.keep(t.Context(), dir); !errors.Is(err, errVersion) {
		t.Errorf("keep: got %v, want %v", err, errVersion)
	}
	if _, err := c.restore(t.Context(), t.TempDir()); !errors.Is(err, errVersion) {
		t.Errorf("restore: got %v, want %v", err, errVersion)
	}
	if now, err := os.ReadFile(filepath.Join(bucket, string(copyKey))); err != nil || !bytes.Equal(now, text) {
		t.Errorf("the copy: got %s, %v, want %s", now, err, text)
	}
}

// An interferer is a bucket in which something happens before pieces are listed, and before the copy is put.
type interferer struct {
	*storage.Local
	listed, named func()
}

func (i *interferer) List(ctx context.Context, prefix, after site.Key, found func(storage.Info) error) error {
	if i.listed != nil {
		i.listed()
	}
	return i.Local.List(ctx, prefix, after, found)
}

func (i *interferer) Put(ctx context.Context, o storage.Object, condition storage.Condition) (string, error) {
	if i.named != nil && o.Key == copyKey {
		i.named()
	}
	return i.Local.Put(ctx, o, condition)
}

// Of two that keep copies at the same time, one fails, whether or not there was a copy before.
func TestCopiesInterfere(t *testing.T) {
	w := newWorld(t, 1, 100)
	old, dir := t.TempDir(), t.TempDir()
	w.sync(t, old)
	w.more(2)
	w.sync(t, dir)
	for _, before := range []bool{false, true} {
		bucket := t.TempDir()
		other := &copies{storage.OpenLocal(bucket), bucket}
		if before {
			keep(t, other, old)
		}
		c := &copies{&interferer{Local: storage.OpenLocal(bucket), named: func() { keep(t, other, dir) }}, bucket}
		if err := c.keep(t.Context(), old); !errors.Is(err, storage.ErrCondition) {
			t.Errorf("the second of two, a copy before %v: got %v, want %v", before, err, storage.ErrCondition)
		}
		back := t.TempDir()
		if _, err := other.restore(t.Context(), back); err != nil || events(t, back) != events(t, dir) {
			t.Errorf("after two, a copy before %v: got %v, want the newer state", before, err)
		}
	}
}

// A state that is reorganised while it is copied is copied again, whether its logs become shorter or longer.
func TestStateChangesDuringCopy(t *testing.T) {
	for _, transactions := range []int{5, 400} {
		w := newWorld(t, 1, 100)
		dir, bucket := t.TempDir(), t.TempDir()
		w.sync(t, dir)
		changed := false
		c := &copies{&interferer{Local: storage.OpenLocal(bucket), listed: func() {
			if changed {
				return
			}
			changed = true
			state, err := chain.Open(dir, source.Production())
			if err != nil {
				t.Fatal(err)
			}
			defer state.Close()
			forked, instead := w.Fork(8453, w.Chains[0].First, 9, history.Options{Transactions: transactions})
			w.nodes[8453].Reorg(w.Chains[0].First, instead...)
			w.History = forked
			if _, err := state.Sync(t.Context(), chain.Options{URLs: w.urls(), NoSync: true, Progress: quiet{}, Reread: map[uint64]uint64{8453: 0}}); err != nil {
				t.Fatal(err)
			}
		}}, bucket}
		keep(t, c, dir)
		back := t.TempDir()
		if _, err := c.restore(t.Context(), back); err != nil || events(t, back) != events(t, dir) {
			t.Errorf("a fork of %d transactions during the run: got %v, want all of it", transactions, err)
		}
	}
}

// Pieces that no copy names go, an hour after they were put.
func TestOldPieces(t *testing.T) {
	w := newWorld(t, 1, 50)
	dir, bucket := t.TempDir(), t.TempDir()
	c := &copies{storage.OpenLocal(bucket), bucket}
	w.sync(t, dir)
	keep(t, c, dir)
	for i, age := range []time.Duration{2 * pieceGrace, pieceGrace / 2} {
		name := filepath.Join(bucket, "pieces", strings.Repeat(fmt.Sprint(i), 64)+".zst")
		if err := os.WriteFile(name, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	keep(t, c, dir)
	left, err := filepath.Glob(filepath.Join(bucket, "pieces", "[01][01]*"))
	if err != nil || len(left) != 1 || !strings.Contains(left[0], "1111") {
		t.Errorf("old pieces: got %q, want only the one of half an hour ago", left)
	}
	if _, err := c.restore(t.Context(), t.TempDir()); err != nil {
		t.Error(err)
	}
}

type quiet struct{}

func (quiet) Stage(string, int64) {}
func (quiet) Add(int64)           {}
func (quiet) End()                {}
