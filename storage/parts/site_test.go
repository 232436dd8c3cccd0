package parts_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/afero"
	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/parts"
)

// partsServer serves a bucket "parts" from the files of a folder. before may handle a request, and reports whether it
// did.
func partsServer(t testing.TB, folder string, before func(w http.ResponseWriter, r *http.Request) bool) storage.S3Options {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before != nil && before(w, r) {
			return
		}
		name := filepath.Join(folder, strings.TrimPrefix(r.URL.Path, "/parts/"))
		if info, err := os.Stat(name); err == nil {
			w.Header().Set("ETag", fmt.Sprintf(`"%x"`, info.ModTime().UnixNano()))
		}
		http.ServeFile(w, r, name)
	}))
	t.Cleanup(server.Close)
	return storage.S3Options{Endpoint: server.URL}
}

// openParts opens parts in a folder or a bucket.
func openParts(t testing.TB, at string, o storage.S3Options) storage.Site {
	t.Helper()
	s, err := storage.OpenSite(t.Context(), at, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// equalTo reads all objects of a site concurrently and in random order.
func equalTo(t *testing.T, s storage.Site, want memsite.Site) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(16)
	for key, body := range want {
		group.Go(func() error {
			if got, err := s.Get(context.Background(), key); err != nil || string(got) != body {
				t.Errorf("%q: got %d bytes, %v, want %d", key, len(got), err, len(body))
			}
			return nil
		})
	}
	_ = group.Wait() // none fails
	for _, key := range []site.Key{"nothing", "_manifest/zz", "_manifest/", "_site/below", "api/v1", ""} {
		if _, err := s.Get(t.Context(), key); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("%q: got %v, want ErrNotFound", key, err)
		}
	}
}

// TestPartsAreTheSite: parts hold the objects of the site, in a folder, in a bucket, and as one tar file.
func TestPartsAreTheSite(t *testing.T) {
	made := map[string]memsite.Site{"odd": madeUp(t, 1, oddObjects()), "oddly cut": madeUp(t, 2, oddObjects())}
	for _, api := range []string{site.APISpec, site.APIEFP} {
		files, _, err := generator.ToMemory(t.Context(), afero.FromIOFS{FS: fixtures.Demo()}, generator.Options{Config: site.Config{API: api}})
		if err != nil {
			t.Fatal(err)
		}
		if made[api], err = memsite.Read(files); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range made {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			place := want.WriteParts(t, folder)
			t.Run("folder", func(t *testing.T) { equalTo(t, openParts(t, place, storage.S3Options{}), want) })
			t.Run("URL", func(t *testing.T) {
				equalTo(t, openParts(t, "file://"+place, storage.S3Options{}), want)
			})
			t.Run("bucket", func(t *testing.T) {
				equalTo(t, openParts(t, "s3://parts/part-*", partsServer(t, folder, nil)), want)
			})
			t.Run("tar", func(t *testing.T) {
				names, err := filepath.Glob(filepath.Join(folder, "part-*")) // in the order of a shell
				if err != nil {
					t.Fatal(err)
				}
				var archive []byte
				for _, name := range names {
					body, err := os.ReadFile(name)
					if err != nil {
						t.Fatal(err)
					}
					archive = append(archive, body...)
				}
				file := filepath.Join(t.TempDir(), "site.tar")
				if err := os.WriteFile(file, archive, 0o644); err != nil {
					t.Fatal(err)
				}
				equalTo(t, openParts(t, file, storage.S3Options{}), want)
			})
		})
	}
	partsPlaces(t, func(t *testing.T, place *parts.Place, _ func() []string) {
		want := made["odd"]
		want.PutParts(t, place)
		if s := place.Site(); s != nil {
			equalTo(t, s, want)
		}
	})
}

// TestOpenSiteKnowsParts: errors about other names of parts give the right one.
func TestOpenSiteKnowsParts(t *testing.T) {
	folder, unfinished := t.TempDir(), t.TempDir()
	madeUp(t, 1, oddObjects()).WriteParts(t, folder)
	madeUp(t, 1, oddObjects()).WriteParts(t, unfinished)
	if err := os.Remove(filepath.Join(unfinished, parts.Root)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		folder:                            "name them as '" + folder + "/part-*', in quotes",
		unfinished:                        "name them as '" + unfinished + "/part-*', in quotes",
		filepath.Join(folder, "part-3"):   "name all parts as '" + folder + "/part-*', in quotes",
		filepath.Join(folder, "x/part-*"): "no such file",
		folder + "/part-3/part-*":         "is not a folder",
		"s3://bucket/prefix":              "or parts (s3://BUCKET/PREFIX/part-*)",
		"s3://parts/part-*":               "",
	} {
		s, err := storage.OpenSite(t.Context(), path, partsServer(t, folder, nil))
		if want == "" && err == nil {
			err = s.Close()
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
	s := openParts(t, unfinished+"/part-*", storage.S3Options{})
	if _, err := s.Get(t.Context(), site.RootKey); err == nil || !strings.Contains(err.Error(), "has no part-root: the run that writes the parts is unfinished or has failed") {
		t.Errorf("without a root: got %v", err)
	}
	t.Chdir(folder)
	equalTo(t, openParts(t, "part-*", storage.S3Options{}), madeUp(t, 1, oddObjects()))
}

// TestDamagedParts: parts of different runs are detected, at the latest when a differing object is
// read. The error names the remedy, and no answer is wrong.
func TestDamagedParts(t *testing.T) {
	made, changed := madeUp(t, 1, oddObjects()), oddObjects()
	for key := range changed {
		changed[key] += "!"
	}
	place, another := made.Parts(t), madeUp(t, 1, changed).Parts(t)
	var key site.Key // key of an object in part-3
	for k := range oddObjects() {
		if site.ManifestShard(k, 1) == "3" && strings.HasPrefix(string(k), "plain/") && k > key {
			key = k
		}
	}
	whole := place["part-3"]
	at := bytes.LastIndex(whole, []byte(key+"\x00"))
	huge := slices.Clone(whole)
	copy(huge[124:], "77777777777")
	for name, damage := range map[string][]byte{
		"missing":         nil,
		"empty":           {},
		"a header":        whole[:512],
		"half":            whole[:len(whole)/2],
		"cut at the end":  whole[:len(whole)-1],
		"longer":          append(slices.Clone(whole), 0),
		"of another run":  another["part-3"],
		"another part":    place["part-4"],
		"noise":           bytes.Repeat([]byte("noise"), len(whole)/5+1)[:len(whole)],
		"another object":  append(append(slices.Clone(whole[:at]), 'x'), whole[at+1:]...),
		"a huge manifest": huge,
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			made.WriteParts(t, folder)
			file := filepath.Join(folder, "part-3")
			err := os.WriteFile(file, damage, 0o644)
			if damage == nil {
				err = os.Remove(file)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range []string{folder + "/part-*", "s3://parts/part-*"} {
				s := openParts(t, at, partsServer(t, folder, nil))
				if _, err := s.Get(t.Context(), key); !errors.Is(err, parts.ErrBroken) || !strings.Contains(err.Error(), "part-3") || storage.Temporary(err) {
					t.Errorf("%s: got %v, want ErrParts", at, err)
				}
				if strings.HasPrefix(at, "s3:") {
					continue
				}
				for key, want := range made { // the others can be read
					if got, err := s.Get(t.Context(), key); err == nil && string(got) != want || err != nil && !errors.Is(err, parts.ErrBroken) {
						t.Fatalf("%s: %s: got %d bytes, %v", at, key, len(got), err)
					}
				}
			}
		})
	}
}

// TestPartsAreReplacedWhileTheyAreRead: a reader detects a new run in its place, and finds the new site after Reopen.
func TestPartsAreReplacedWhileTheyAreRead(t *testing.T) {
	changed := oddObjects()
	for key, body := range changed {
		changed[key] = strings.ToUpper(body) // the size stays the same
	}
	before, after := madeUp(t, 1, oddObjects()), madeUp(t, 1, changed)
	for _, at := range []string{"", "s3://parts/part-*"} {
		folder := t.TempDir()
		here := before.WriteParts(t, folder)
		s := openParts(t, cmp.Or(at, here), partsServer(t, folder, nil))
		equalTo(t, s, before)
		place, err := parts.Open(t.Context(), folder, storage.S3Options{})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Millisecond) // file times are coarse
		after.PutParts(t, place)
		reopener := s.(interface{ Reopen(context.Context) error })
		if err := reopener.Reopen(t.Context()); err != nil {
			t.Fatal(err)
		}
		equalTo(t, s, after)
		if _, err := place.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := reopener.Reopen(t.Context()); err == nil {
			t.Error("without a root: got no error")
		}
		equalTo(t, s, after)
	}
}

// largeParts has one shard with all of its objects in one part of some 8 MiB.
func largeParts(t testing.TB) (made memsite.Site, inOrder []site.Key) {
	t.Helper()
	objects := map[site.Key]string{}
	for i := 0; len(inOrder) < 1000; i++ {
		key := site.Key(fmt.Sprint("object/", i))
		if site.ManifestShard(key, 1) == "7" {
			objects[key] = strings.Repeat(string(rune('a'+i%26)), 8000)
			inOrder = append(inOrder, key)
		}
	}
	slices.Sort(inOrder)
	return madeUp(t, 1, objects), inOrder
}

// TestPartsAreReadInChunks: a first publish sends about a request per MiB, and the next one reads little more than it
// needs.
func TestPartsAreReadInChunks(t *testing.T) {
	made, keys := largeParts(t)
	folder := t.TempDir()
	made.WriteParts(t, folder)
	var requests, sent atomic.Int64
	o := partsServer(t, folder, func(_ http.ResponseWriter, r *http.Request) bool {
		requests.Add(1)
		var first, last int64
		if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &first, &last); err != nil {
			t.Error("a request has no range")
		}
		if !strings.HasSuffix(r.URL.Path, parts.Root) {
			sent.Add(last - first + 1)
		}
		return false
	})
	read := func(keys []site.Key, concurrency int) (int64, int64) {
		requests.Store(0)
		sent.Store(0)
		s := openParts(t, "s3://parts/part-*", o)
		var group errgroup.Group
		group.SetLimit(concurrency)
		for _, key := range keys {
			group.Go(func() error {
				body, err := s.Get(t.Context(), key)
				if err == nil && string(body) != made[key] {
					return fmt.Errorf("%s differs", key)
				}
				return err
			})
		}
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
		return requests.Load(), sent.Load()
	}
	size := int64(len(made.Parts(t)["part-7"]))
	for _, concurrency := range []int{1, 64} {
		if n, bytes := read(keys, concurrency); n > 30 || bytes > size*5/4+1<<20 {
			t.Errorf("all objects, %d at a time: got %d requests for %d bytes of %d", concurrency, n, bytes, size)
		}
	}
	var few []site.Key
	for i := 100; i < len(keys); i += 200 {
		few = append(few, keys[i])
	}
	if n, bytes := read(few, 1); n > 2+int64(len(few)) || bytes > 1<<20+int64(len(few))*9000 {
		t.Errorf("%d objects: got %d requests for %d bytes", len(few), n, bytes)
	}
}

// TestPartsShareRequests: concurrent reads of one chunk share a request, and end independently.
func TestPartsShareRequests(t *testing.T) {
	made, keys := largeParts(t)
	var requests atomic.Int64
	release := make(chan struct{})
	folder := t.TempDir()
	made.WriteParts(t, folder)
	o := partsServer(t, folder, func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "part-7") {
			requests.Add(1)
			<-release
		}
		return false
	})
	s := openParts(t, "s3://parts/part-*", o)
	ctx, cancel := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for i := range 20 {
		readers.Go(func() {
			if i == 0 {
				if _, err := s.Get(ctx, keys[0]); !errors.Is(err, context.Canceled) {
					t.Errorf("cancelled: got %v", err)
				}
				close(release)
				return
			}
			if _, err := s.Get(t.Context(), keys[i]); err != nil {
				t.Error(err)
			}
		})
	}
	for requests.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	readers.Wait()
	if n := requests.Load(); n != 1 {
		t.Errorf("got %d requests, want 1 for all who wait", n)
	}
}

// TestPartsSurviveABadServer: temporary failures are retried; a permanent one gives a clear error.
func TestPartsSurviveABadServer(t *testing.T) {
	made, folder := madeUp(t, 1, oddObjects()), t.TempDir()
	made.WriteParts(t, folder)
	var n atomic.Int64
	bad := partsServer(t, folder, func(w http.ResponseWriter, r *http.Request) bool {
		switch n.Add(1) % 5 {
		case 0:
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		case 2: // the answer breaks off
			body, err := os.ReadFile(filepath.Join(folder, filepath.Base(r.URL.Path)))
			if err != nil {
				t.Error(err)
			}
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-%d/%d", len(body)-1, len(body)))
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(body[:len(body)/2])
			panic(http.ErrAbortHandler)
		}
		return false
	})
	equalTo(t, openParts(t, "s3://parts/part-*", bad), made)

	for status, want := range map[int]string{http.StatusForbidden: "AWS_ACCESS_KEY_ID", http.StatusServiceUnavailable: "check the endpoint"} {
		o := partsServer(t, folder, func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "part-3") {
				return false
			}
			w.WriteHeader(status)
			return true
		})
		s := openParts(t, "s3://parts/part-*", o)
		for range 2 {
			_, err := s.Get(t.Context(), site.ManifestKey("3"))
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "part-3") || errors.Is(err, parts.ErrBroken) {
				t.Errorf("status %d: got %v, want %q", status, err, want)
			}
		}
	}
}

// TestPartsTakeBoundedMemory: a read takes the memory of the object and of some chunks.
func TestPartsTakeBoundedMemory(t *testing.T) {
	const large = 100 << 20
	objects := map[site.Key]string{"large": strings.Repeat("x", large)}
	for i := range 100 {
		objects[site.Key(fmt.Sprint("small/", i))] = "small"
	}
	folder := t.TempDir()
	for _, at := range []string{madeUp(t, 1, objects).WriteParts(t, folder), "s3://parts/part-*"} {
		s := openParts(t, at, partsServer(t, folder, nil))
		took := func(keys ...site.Key) int64 {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for _, key := range keys {
				if body, err := s.Get(t.Context(), key); err != nil || string(body) != objects[key] {
					t.Fatalf("%s: got %d bytes, %v", key, len(body), err)
				}
			}
			runtime.ReadMemStats(&after)
			return int64(after.TotalAlloc - before.TotalAlloc)
		}
		var small []site.Key
		for key := range objects {
			if key != "large" {
				small = append(small, key)
			}
		}
		if n := took(small...); n > 64<<20 { // 17 parts with a chunk or less, and the root
			t.Errorf("%s: the small objects: allocated %d bytes", at, n)
		}
		if n := took("large"); n > large+8<<20 {
			t.Errorf("%s: the large object: allocated %d bytes", at, n)
		}
		refuse := errors.New("too large")
		_, err := s.(interface {
			GetAdmitted(context.Context, site.Key, func(context.Context, int64) error) ([]byte, error)
		}).GetAdmitted(t.Context(), "large", func(_ context.Context, size int64) error {
			if size != large {
				t.Errorf("got the size %d", size)
			}
			return refuse
		})
		if !errors.Is(err, refuse) {
			t.Errorf("got %v, want the error of admit", err)
		}
	}
}
