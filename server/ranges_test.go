package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/internal/testenv/fakes3"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/data"
	"github.com/followpress/followpress/storage"
)

// withData returns the demo's site with a body as one of its tables.
func withData(t *testing.T, body []byte) afero.Fs {
	t.Helper()
	files := demo(t)
	root, err := site.ParseRoot([]byte(objects(t, files)[site.RootKey]))
	if err != nil {
		t.Fatal(err)
	}
	root.Config.Data = true
	encoded, err := root.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for key, body := range map[site.Key][]byte{site.RootKey: encoded, data.Key(data.Follows, 0): body, data.Key(data.Ops, 0): {}, data.PackageKey: []byte(`{"resources":[]}`)} {
		if err := afero.WriteFile(files, string(key), body, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// inFakeS3 puts the objects of a site into a bucket of a server that answers ranges.
func inFakeS3(t *testing.T, files afero.Fs) storage.Bucket {
	t.Helper()
	b, err := storage.OpenBucket(t.Context(), storage.Location{Bucket: "site"}, storage.S3Options{Endpoint: fakes3.Start(t, fakes3.Lacks{}).Endpoint})
	if err != nil {
		t.Fatal(err)
	}
	for key, body := range objects(t, files) {
		o := storage.Object{Entry: site.Entry{Key: key, Size: int64(len(body)), MD5: site.Sum([]byte(body))}, Body: []byte(body)}
		if _, err := b.Put(t.Context(), o, storage.Always); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

const tableURL = "/_data/follows.parquet"

// TestRanges: parts of tables are answered as RFC 9110 says, from a bucket and from memory alike, and parts of nothing else.
func TestRanges(t *testing.T) {
	body := []byte(strings.Repeat("0123456789", 20_000))
	size := strconv.Itoa(len(body))
	files := withData(t, body)
	etag := `"` + site.Sum(body).String() + `"`
	for name, store := range map[string]server.Store{"memory": storage.NewFolder(files), "bucket": inFakeS3(t, files)} {
		t.Run(name, func(t *testing.T) {
			base := serve(t, store)
			for _, tc := range []struct {
				method, path, headers string
				status                int
				part                  string // expected Content-Range
				from, to              int    // offsets in the body
			}{
				{"GET", tableURL, "", 200, "", 0, len(body)},
				{"GET", tableURL, "Range: bytes=0-3", 206, "bytes 0-3/" + size, 0, 4},
				{"GET", tableURL, "Range: bytes=0-0", 206, "bytes 0-0/" + size, 0, 1},
				{"GET", tableURL, "Range: bytes=3-150002", 206, "bytes 3-150002/" + size, 3, 150_003},
				{"GET", tableURL, "Range: bytes=199990-", 206, "bytes 199990-199999/" + size, 199_990, len(body)},
				{"GET", tableURL, "Range: bytes=-8", 206, "bytes 199992-199999/" + size, 199_992, len(body)},
				{"GET", tableURL, "Range: bytes=-999999999", 206, "bytes 0-199999/" + size, 0, len(body)},
				{"GET", tableURL, "Range: bytes=199999-999999999999", 206, "bytes 199999-199999/" + size, 199_999, len(body)},
				{"GET", tableURL, "Range: bytes=200000-", 416, "bytes */" + size, 0, 0},
				{"GET", tableURL, "Range: bytes=4-3", 416, "", 0, 0},
				{"GET", tableURL, "Range: bytes=x", 416, "", 0, 0},
				{"GET", tableURL, "Range: bytes=99999999999999999999-", 416, "", 0, 0},
				{"GET", tableURL, "Range: lines=0-3", 200, "", 0, len(body)},
				{"GET", tableURL, "Range: bytes=0-3,8-9", 200, "", 0, len(body)},
				{"GET", tableURL, "Range: bytes=0-3\nIf-Range: " + etag, 206, "bytes 0-3/" + size, 0, 4},
				{"GET", tableURL, "Range: bytes=0-3\nIf-Range: \"other\"", 200, "", 0, len(body)},
				{"GET", tableURL, "Range: bytes=0-3\nIf-Range: W/" + etag, 200, "", 0, len(body)},
				{"GET", tableURL, "Range: bytes=0-3\nIf-Range: Sun, 29 Nov 2026 00:00:00 GMT", 200, "", 0, len(body)},
				{"GET", tableURL, "Range: bytes=0-3\nIf-None-Match: " + etag, 304, "", 0, 0},
				{"GET", tableURL, "Range: bytes=0-3\nAccept-Encoding: gzip", 206, "bytes 0-3/" + size, 0, 4},
				{"HEAD", tableURL, "", 200, "", 0, 0},
				{"HEAD", tableURL, "Range: bytes=0-3", 200, "", 0, 0},
				{"GET", "/_data/ops.parquet", "", 200, "", 0, 0},
				{"GET", "/_data/ops.parquet", "Range: bytes=0-3", 200, "", 0, 0},
				{"GET", "/_data/badges.parquet", "Range: bytes=0-3", 404, "", -1, 0},
				{"POST", tableURL, "Range: bytes=0-3", 405, "", -1, 0},
				{"GET", "/_data/datapackage.json", "Range: bytes=0-3", 200, "", -1, 0},
				{"GET", "/api/v1/leaderboard/followers", "Range: bytes=0-3", 200, "", -1, 0},
				{"GET", "/api/v1/leaderboard/followers", "Range: bytes=9999999-\nIf-Range: \"x\"", 200, "", -1, 0},
			} {
				what := tc.method + " " + tc.path + " " + strings.ReplaceAll(tc.headers, "\n", ", ")
				var headers []string
				for line := range strings.SplitSeq(tc.headers, "\n") {
					if name, value, ok := strings.Cut(line, ": "); ok {
						headers = append(headers, name, value)
					}
				}
				got, text := request(t, tc.method, base+tc.path, headers...)
				h := got.Header
				if got.StatusCode != tc.status || tc.part != "" && h.Get("Content-Range") != tc.part || tc.status < 300 && tc.part == "" && h.Get("Content-Range") != "" {
					t.Errorf("%s: got status %d, Content-Range %q, want %d, %q", what, got.StatusCode, h.Get("Content-Range"), tc.status, tc.part)
				}
				if tc.from < 0 { // no table
					if h.Get("Accept-Ranges")+h.Get("Content-Range") != "" {
						t.Errorf("%s: got headers of ranges, want none: %v", what, h)
					}
					continue
				}
				if h.Get("Access-Control-Allow-Origin") != "*" || !strings.Contains(h.Get("Access-Control-Expose-Headers"), "Accept-Ranges, Content-Range") {
					t.Errorf("%s: got no CORS headers: %v", what, h)
				}
				if tc.status < 400 && (h.Get("Etag") != etag && tc.path == tableURL || h.Get("Content-Encoding") != "") {
					t.Errorf("%s: got ETag %q, Content-Encoding %q, want %q and none", what, h.Get("Etag"), h.Get("Content-Encoding"), etag)
				}
				if tc.status < 300 && (text != string(body[tc.from:tc.to]) || h.Get("Accept-Ranges") != "bytes" || h.Get("Content-Type") != "application/vnd.apache.parquet") {
					t.Errorf("%s: got %d bytes, %v, want those from %d to %d", what, len(text), h, tc.from, tc.to)
				}
				if tc.method == http.MethodHead && h.Get("Content-Length") != size {
					t.Errorf("%s: got length %s, want %s", what, h.Get("Content-Length"), size)
				}
			}
		})
	}
}

// A rangingStore is a site with a table that is only made up as it is read. It counts the parts that it sends at a time.
type rangingStore struct {
	server.Store
	size int64
	send func(ctx context.Context) error // before each Read of a part

	mu         sync.Mutex
	open, most int
}

func (s *rangingStore) Get(ctx context.Context, key site.Key) ([]byte, error) {
	if key == data.Key(data.Follows, 0) {
		return nil, errors.New("the whole table was asked for")
	}
	return s.Store.Get(ctx, key)
}

func (s *rangingStore) Stat(_ context.Context, key site.Key) (storage.Info, error) {
	if key != data.Key(data.Follows, 0) {
		return storage.Info{}, storage.ErrNotFound
	}
	return storage.Info{Key: key, Size: s.size, ETag: "a"}, nil
}

func (s *rangingStore) ReadRange(ctx context.Context, _ site.Key, etag string, offset, length int64) (io.ReadCloser, error) {
	if etag != "a" || offset < 0 || length < 1 || length > 1000 || offset+length > s.size {
		return nil, fmt.Errorf("%d bytes of %q from %d on: want a part of a, and no more than is asked for", length, etag, offset)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
	s.most = max(s.most, s.open)
	return &part{s, ctx, bytes.NewReader(bytes.Repeat([]byte{byte(offset)}, int(length)))}, nil
}

type part struct {
	of  *rangingStore
	ctx context.Context
	*bytes.Reader
}

func (p *part) Read(into []byte) (int, error) {
	if err := p.of.send(p.ctx); err != nil {
		return 0, err
	}
	return p.Reader.Read(into)
}

func (p *part) Close() error {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.of.open--
	return nil
}

// TestManyRanges: of a thousand concurrent requests for parts, the server copies as many as its
// memory allows. It never holds the whole table, the other requests wait, and requests for other
// objects are answered.
func TestManyRanges(t *testing.T) {
	const clients, atOnce = 1000, server.DefaultInFlightBytes / 12 / (64 << 10)
	goOn := make(chan struct{})
	store := &rangingStore{Store: storage.NewFolder(withData(t, nil)), size: 48 << 20, send: func(context.Context) error { <-goOn; return nil }}
	handler := newHandler(t, store, server.Options{Timeout: 10 * time.Minute})
	var done sync.WaitGroup
	var right atomic.Int64
	for n := range clients {
		done.Go(func() {
			r := httptest.NewRequest(http.MethodGet, tableURL, nil)
			r.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", n, n+99))
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if w.Code == http.StatusPartialContent && bytes.Equal(w.Body.Bytes(), bytes.Repeat([]byte{byte(n)}, 100)) {
				right.Add(1)
			}
		})
	}
	eventually(t, "all other requests wait", func() bool { return handler.RequestsWaiting() == clients-atOnce })
	if got := ask(handler, "/api/v1/leaderboard/followers").Code; got != http.StatusOK {
		t.Errorf("a concurrent request: got status %d, want 200", got)
	}
	close(goOn)
	done.Wait()
	if got := right.Load(); got != clients {
		t.Errorf("parts: got %d right ones, want %d", got, clients)
	}
	if store.most != atOnce || store.open != 0 {
		t.Errorf("parts at a time: got %d, and %d that are still open, want %d, and none", store.most, store.open, atOnce)
	}
	if got := handler.InFlight(); got != 0 {
		t.Errorf("in flight in the end: got %d bytes, want none", got)
	}
}

// TestRangeCutOff: an answer that the store does not send to its end ends early, and holds nothing then.
func TestRangeCutOff(t *testing.T) {
	for name, send := range map[string]func(context.Context) error{
		"replaced": func(context.Context) error { return storage.ErrCondition },
		"stalled":  func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			store := &rangingStore{Store: storage.NewFolder(withData(t, nil)), size: 1 << 20, send: send}
			handler := newHandler(t, store, server.Options{Timeout: 500 * time.Millisecond})
			front := httptest.NewServer(handler)
			defer front.Close()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, front.URL+tableURL, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Range", "bytes=10-1009")
			got, err := http.DefaultClient.Do(r)
			if err == nil {
				defer got.Body.Close()
				_, err = io.ReadAll(got.Body)
			}
			if err == nil {
				t.Error("got a whole answer, want that the connection ends")
			}
			eventually(t, "nothing is held", func() bool { return handler.InFlight() == 0 })
		})
	}
}
