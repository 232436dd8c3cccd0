package checked_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/followpress/followpress/internal/testenv/testkey"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/site/shards"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/checked"
)

// A counting store counts the reads of the manifest.
type counting struct {
	checked.Store
	indexes, shards atomic.Int64
}

func (c *counting) GetAdmitted(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	switch name, _ := strings.CutPrefix(string(key), string(site.ManifestKey(""))); {
	case site.ManifestKey(name) != key:
	case len(name) == 1:
		c.indexes.Add(1)
	case len(name) == 3:
		c.shards.Add(1)
	}
	return c.Store.GetAdmitted(ctx, key, admit)
}

// A damaged index makes readers read the indexes only once per interval, however many objects they request. Objects
// below other indexes stay readable. A repair is noticed after the interval.
func TestADamagedIndexIsReadOnceForATime(t *testing.T) {
	for name, damage := range map[string]func(b bucket, index site.Key){
		"altered": func(b bucket, index site.Key) { b.put(memsite.Site{index: "damaged"}) },
		"removed": func(b bucket, index site.Key) { b.remove(index) },
		"1 GiB":   func(b bucket, index site.Key) { b.grow(index) },
	} {
		t.Run(name, func(t *testing.T) { damagedIndex(t, damage) })
	}
}

func damagedIndex(t *testing.T, damage func(b bucket, index site.Key)) {
	t.Helper()
	s := siteOf(t, 24, 50, 3)
	root := s.Root(t)
	indexes := int64(len(shards.Indexes(&root)))
	key := detailsOf(60)
	index := site.ManifestKey(site.ManifestShard(key, 1))
	b := newBucket(t, s)
	damage(b, index)
	synctest.Test(t, func(t *testing.T) {
		store := &counting{Store: b.store()}
		is, err := checked.Open(t.Context(), store, note.Keys{}, checked.Options{})
		if err != nil {
			t.Fatal(err)
		}
		below := 0
		for list := range lists {
			body, err := is.Get(t.Context(), detailsOf(list))
			switch altered := errors.Is(err, checked.ErrAltered); {
			case site.ManifestKey(site.ManifestShard(detailsOf(list), 1)) == index:
				if below++; !altered {
					t.Errorf("list %d, below the damaged index: got %q and %v, want ErrAltered", list, body, err)
				}
			case err != nil || string(body) != s[detailsOf(list)]:
				t.Errorf("list %d: got %q and %v", list, body, err)
			}
		}
		if got := store.indexes.Load(); got != indexes || below < 2 {
			t.Errorf("got %d indexes read for %d objects below the damaged one, want each of the %d once", got, below, indexes)
		}
		if got := store.shards.Load(); got > lists-int64(below) {
			t.Errorf("got %d shards read, want none below the damaged index", got)
		}
		b.put(memsite.Site{index: s[index]})
		time.Sleep(time.Minute)
		for range 2 {
			if body, err := is.Get(t.Context(), key); err != nil || string(body) != s[key] {
				t.Errorf("after it was repaired: got %q and %v", body, err)
			}
		}
		if got := store.indexes.Load(); got != 2*indexes {
			t.Errorf("after it was repaired: got %d indexes read in all, want %d", got, 2*indexes)
		}
	})
}

// An index that was altered after it was read is not passed on to readers that check by themselves.
func TestAnIndexThatIsAlteredLater(t *testing.T) {
	s := siteOf(t, 24, 50, 3)
	index := site.ManifestKey(site.ManifestShard(detailsOf(60), 1))
	b := newBucket(t, s)
	is, err := checked.Open(t.Context(), b.store(), note.Keys{}, checked.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if body, err := is.Get(t.Context(), index); err != nil || string(body) != s[index] {
		t.Fatalf("got %d bytes and %v, want the index", len(body), err)
	}
	b.put(memsite.Site{index: strings.Replace(s[index], "0", "1", 1)})
	if body, err := is.Get(t.Context(), index); !errors.Is(err, checked.ErrAltered) {
		t.Errorf("got %d bytes and %v, want ErrAltered", len(body), err)
	}
}

// Listing a shard and then requesting its objects reads the shard once.
func TestAShardThatIsListedIsReadOnce(t *testing.T) {
	s := siteOf(t, 24, 50, 3)
	store := &counting{Store: newBucket(t, s).store()}
	is, err := checked.Open(t.Context(), store, note.Keys{}, checked.Options{Pinned: true})
	if err != nil {
		t.Fatal(err)
	}
	entries, err := is.Shard(t.Context(), site.ManifestShard(detailsOf(60), 3))
	if err != nil || len(entries) == 0 {
		t.Fatalf("got %d entries and %v", len(entries), err)
	}
	for _, e := range entries {
		if _, err := is.Get(t.Context(), e.Key); err != nil && !errors.Is(err, storage.ErrNotFound) {
			t.Error(err)
		}
	}
	if got := store.shards.Load(); got != 1 {
		t.Errorf("got %d shards read, want 1", got)
	}
}

// A faulty store runs fault instead of reading shards.
type faulty struct {
	checked.Store
	fault func() error
}

func (s faulty) GetAdmitted(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	if name, ok := strings.CutPrefix(string(key), string(site.ManifestKey(""))); ok && len(name) == 3 {
		return nil, s.fault()
	}
	return s.Store.GetAdmitted(ctx, key, admit)
}

// The timeout of a store is an error, not the end of another reader's context. A panic ends one read, not the process.
func TestFaultsOfAStore(t *testing.T) {
	for want, fault := range map[string]func() error{
		"deadline exceeded": func() error { return &storage.UnansweredError{Err: context.DeadlineExceeded} },
		"panic: a bug":      func() error { panic("a bug") },
	} {
		is, err := checked.Open(t.Context(), faulty{newBucket(t, siteOf(t, 24, 50, 3)).store(), fault}, note.Keys{}, checked.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if body, err := is.Get(ctx, detailsOf(60)); err == nil || !strings.Contains(err.Error(), want) || ctx.Err() != nil {
			t.Errorf("got %q and %v, want %s at once", body, err, want)
		}
	}
}

// A forbidding store rejects large objects itself, as S3 does.
type forbidding struct{ checked.Store }

func (f forbidding) GetAdmitted(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	return f.Store.GetAdmitted(ctx, key, func(ctx context.Context, size int64) error {
		if size > 1<<20 {
			return fmt.Errorf("get %s: %w", key, storage.ErrTooLarge)
		}
		return admit(ctx, size)
	})
}

// An object too large for the store is treated like one too large for the reader: an invalid announcement, or an
// altered object.
func TestTooLargeForTheStore(t *testing.T) {
	p := testkey.New(t, origin)
	today := p.Sign(t, siteOf(t, 24, 50, 1), 1)
	large, shard := detailsOf(60), site.ManifestKey(site.ManifestShard(detailsOf(60), 1))
	for _, grown := range []site.Key{note.NextKey, large, shard} {
		b := newBucket(t, today)
		b.put(memsite.Site{grown: "{}"})
		b.grow(grown)
		is, err := checked.Open(t.Context(), forbidding{b.store()}, p.Keys, checked.Options{})
		if err != nil {
			t.Fatalf("%s: %v", grown, err)
		}
		body, err := is.Get(t.Context(), large)
		if right := string(body) == today[large]; grown == note.NextKey && !right || grown != note.NextKey && !errors.Is(err, checked.ErrAltered) {
			t.Errorf("%s: got %q and %v", grown, body, err)
		}
	}
}

// In a public bucket without listing, behind a server that does not state sizes, missing objects are forbidden, and
// objects of any size are accepted.
func TestPublicBucketThatStreams(t *testing.T) {
	p := testkey.New(t, origin)
	large := detailsOf(7)
	config, err := site.Config{BasePath: "api/v1"}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	body := string(bytes.Repeat([]byte("x"), 300_000))
	s := memsite.New(t, site.Root{Format: site.Format, AsOf: "2026-11-01T00:00:00Z", Config: config, BucketDigits: 1, ShardDigits: 1},
		map[site.Key]string{large: body, detailsOf(8): "8"})
	folder := newBucket(t, p.Sign(t, s, 1)).folder
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(r.URL.Path)))
		if err != nil {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.(http.Flusher).Flush() // no Content-Length
		_, _ = w.Write(body)
	}))
	t.Cleanup(server.Close)
	for name, keys := range map[string]note.Keys{"with a key": p.Keys, "without": {}} {
		t.Run(name, func(t *testing.T) {
			web, err := storage.OpenPublished(t.Context(), server.URL, storage.S3Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer web.Close()
			opened, err := checked.Open(context.Background(), web, keys, checked.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for key, want := range map[site.Key]string{large: body, detailsOf(8): "8"} {
				var admitted int64
				got, err := opened.GetAdmitted(context.Background(), key, func(_ context.Context, size int64) error {
					admitted += size
					return nil
				})
				if err != nil || string(got) != want || admitted != int64(len(want)) {
					t.Errorf("%s: got %d bytes, %v, and %d admitted; want %d", key, len(got), err, admitted, len(want))
				}
			}
		})
	}
}
