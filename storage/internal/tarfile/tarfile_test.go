package tarfile

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage/internal/object"
)

func openTar(t *testing.T, path string) *File {
	t.Helper()
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // perhaps it is closed already
	return s
}

// tarOf returns a tar file with a root and objects, whose bodies are the word and their keys.
func tarOf(t *testing.T, word string, objects int) []byte {
	t.Helper()
	var archive bytes.Buffer
	writeTar(t, &archive, word, objects)
	return archive.Bytes()
}

func writeTar(t *testing.T, to io.Writer, word string, objects int) {
	t.Helper()
	writer := tar.NewWriter(to)
	put := func(key site.Key, body []byte) {
		err := writer.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: string(key), Size: int64(len(body)), Mode: 0o644})
		if _, err2 := writer.Write(body); errors.Join(err, err2) != nil {
			t.Fatal(errors.Join(err, err2))
		}
	}
	for n := range objects {
		key := numbered(n)
		put(key, []byte(word+" "+string(key)))
	}
	root := site.Root{
		Format: site.Format, AsOf: "2026-01-01T00:00:00Z", BucketDigits: 1, ShardDigits: 1,
		Manifest: map[string]site.SHA256{}, Counts: site.Counts{Objects: objects},
	}
	for _, shard := range site.HashPrefixes(1) {
		root.Manifest[shard] = site.Sum256([]byte(word))
	}
	body, err := root.Encode()
	if err != nil {
		t.Fatal(err)
	}
	put(site.RootKey, body)
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
}

// numbered returns a key; every tenth is too long for a plain tar header.
func numbered(n int) site.Key {
	if n%10 == 0 {
		return site.Key(fmt.Sprintf("api/v1/users/%s%d/searchFollowing", strings.Repeat("é", 100), n))
	}
	return site.Key(fmt.Sprintf("api/v1/lists/%d/details", n))
}

// rename replaces a file, as generate does. It sets an older time, because Reopen skips files that may still be being
// written.
func rename(t *testing.T, path string, body []byte) {
	t.Helper()
	err := os.WriteFile(path+".new", body, 0o644)
	settled := time.Now().Add(-time.Second)
	if err = errors.Join(err, os.Chtimes(path+".new", settled, settled), os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
}

func TestATarThatIsReplaced(t *testing.T) {
	const objects = 50
	path := filepath.Join(t.TempDir(), "site.tar")
	rename(t, path, tarOf(t, "first", objects))
	s := openTar(t, path)
	shows := func(word string) {
		t.Helper()
		for n := range objects {
			want := word + " " + string(numbered(n))
			if body, err := s.Get(t.Context(), numbered(n)); err != nil || string(body) != want {
				t.Fatalf("%s: got %q, %v, want %q", numbered(n), body, err, want)
			}
		}
		if _, err := s.Get(t.Context(), "api/v1/lists/999/details"); !errors.Is(err, object.ErrNotFound) {
			t.Errorf("no object: got %v, want ErrNotFound", err)
		}
	}
	shows("first")
	rename(t, path, tarOf(t, "second", objects))
	shows("first") // before any request
	if err := s.Reopen(t.Context()); err != nil {
		t.Fatal(err)
	}
	shows("second")

	// An unusable file leaves the old one in use, with an error.
	whole := tarOf(t, "third", objects)
	for name, c := range map[string]struct {
		body []byte
		want string
	}{
		"nothing":    {nil, "has no _site"},
		"cut off":    {whole[:3*512+5], "unexpected EOF"},
		"a part":     {whole[:4*512], "incomplete"}, // one object
		"no tar":     {bytes.Repeat([]byte("no tar "), 1000), "invalid tar header"},
		"damaged":    {bytes.ReplaceAll(whole, []byte("_site\x00"), []byte("_sit\x00\x00")), "invalid tar header"}, // by its checksum
		"other root": {bytes.Replace(whole, []byte(`{"format":2,`), []byte(`{"format":7,`), 1), "format 7"},
	} {
		rename(t, path, c.body)
		err := s.Reopen(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
		shows("second")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := s.Reopen(t.Context()); err == nil {
		t.Error("Reopen of a removed file: got no error, want one")
	}
	shows("second")
	rename(t, path, whole)
	if err := s.Reopen(t.Context()); err != nil {
		t.Error(err)
	}
	shows("third")
}

// A file younger than the resolution of file times is skipped, because it may change without a new time.
func TestATarThatIsNotSettled(t *testing.T) {
	was := settleTime
	settleTime = time.Hour
	t.Cleanup(func() { settleTime = was })
	path := filepath.Join(t.TempDir(), "site.tar")
	rename(t, path, tarOf(t, "first", 1))
	s := openTar(t, path)
	for _, c := range []struct {
		age        time.Duration
		word, want string
	}{
		{time.Minute, "second", "first"},
		{2 * time.Hour, "second", "second"},
		{-24 * time.Hour, "third", "third"}, // by a clock that is ahead
	} {
		rename(t, path, tarOf(t, c.word, 1))
		modified := time.Now().Add(-c.age)
		if err := errors.Join(os.Chtimes(path, modified, modified), s.Reopen(t.Context())); err != nil {
			t.Fatal(err)
		}
		want := c.want + " " + string(numbered(0))
		if body, err := s.Get(t.Context(), numbered(0)); err != nil || string(body) != want {
			t.Errorf("a new file of age %s: got %q, %v, want %q", c.age, body, err, want)
		}
	}
}

// The new file is used even if the old one cannot be closed. An error would mean that the old one is still in use.
func TestATarThatCannotBeClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "site.tar")
	rename(t, path, tarOf(t, "first", 1))
	s := openTar(t, path)
	if err := s.Close(); err != nil { // so that it fails again
		t.Fatal(err)
	}
	rename(t, path, tarOf(t, "second", 1))
	if err := s.Reopen(t.Context()); err != nil {
		t.Errorf("Reopen: got %v, want no error", err)
	}
	want := "second " + string(numbered(0))
	if body, err := s.Get(t.Context(), numbered(0)); err != nil || string(body) != want {
		t.Errorf("%s: got %q, %v, want %q", numbered(0), body, err, want)
	}
}

// Reading a tar file that is overwritten in place gives the old bytes or an error, never the new bytes. Once
// complete, the new file is used.
func TestATarThatIsWrittenOver(t *testing.T) {
	const objects = 400
	path := filepath.Join(t.TempDir(), "site.tar")
	rename(t, path, tarOf(t, "first", objects))
	s := openTar(t, path)
	if err := s.Reopen(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := tarOf(t, "other", objects) // every object is where it was, and as long
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	end := readAllTheTime(s, objects, func(key, body string, err error) bool {
		if err == nil && body != "first "+key {
			t.Errorf("%s: got %q, want %q or an error", key, body, "first "+key)
			return false
		}
		return true
	})
	for at := 0; at < len(next); at += 8 << 10 {
		if _, err := file.WriteAt(next[at:min(len(next), at+8<<10)], int64(at)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	end()
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), numbered(1)); err == nil || errors.Is(err, object.ErrNotFound) || !strings.Contains(err.Error(), "overwritten") {
		t.Errorf("afterwards: got %v, want an error that says it was overwritten", err)
	}
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		err := s.Reopen(t.Context())
		body, err2 := s.Get(t.Context(), numbered(1))
		if err == nil && err2 == nil && strings.HasPrefix(string(body), "other ") {
			break
		}
		if time.Since(begun) > 20*time.Second {
			t.Fatalf("after Reopen: got %v, %q, %v, want the new file", err, body, err2)
		}
	}
}

// readAllTheTime reads the objects of a site in four goroutines until end is called or a check returns false.
func readAllTheTime(s *File, objects int, check func(key, body string, err error) bool) (end func()) {
	var reading sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	for reader := range 4 {
		reading.Go(func() {
			for n := reader; ctx.Err() == nil; n = (n + 1) % objects {
				body, err := s.Get(context.Background(), numbered(n))
				if !check(string(numbered(n)), string(body), err) {
					return
				}
			}
		})
	}
	return func() { cancel(); reading.Wait() }
}

// Reads in progress during a replacement finish in the old file.
func TestReadsWhileATarIsReplaced(t *testing.T) {
	const objects, turns = 40, 30
	path := filepath.Join(t.TempDir(), "site.tar")
	words := []string{"even", "odd"}
	rename(t, path, tarOf(t, words[0], objects))
	s := openTar(t, path)
	end := readAllTheTime(s, objects, func(key, body string, err error) bool {
		if err != nil || body != "even "+key && body != "odd "+key {
			t.Errorf("%s: got %q, %v, want the body", key, body, err)
			return false
		}
		return true
	})
	for turn := range turns {
		rename(t, path, tarOf(t, words[(turn+1)%2], objects))
		if err := s.Reopen(t.Context()); err != nil {
			t.Error(err)
		}
	}
	end()
}

// The index of a site as large as Epinions takes a few megabytes, without growing, because the root gives its size.
func TestTheIndexOfATarIsSmall(t *testing.T) {
	const objects, most = 100_000, 8.5 // bytes of memory an object
	path := filepath.Join(t.TempDir(), "site.tar")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	buffered := bufio.NewWriter(file)
	writeTar(t, buffered, "word", objects)
	settled := time.Now().Add(-time.Second)
	if err := errors.Join(buffered.Flush(), file.Close(), os.Chtimes(path, settled, settled)); err != nil {
		t.Fatal(err)
	}
	s := openTar(t, path)
	before, begun := inUse(), time.Now()
	if err := s.Reopen(t.Context()); err != nil {
		t.Fatal(err)
	}
	took := inUse() - before
	t.Logf("%.1f bytes an object, made in %v", float64(took)/objects, time.Since(begun))
	if took > objects*most {
		t.Errorf("got %d bytes for %d objects, want at most %v each", took, objects, most)
	}
	for n := 0; n < objects; n += 997 {
		if body, err := s.Get(t.Context(), numbered(n)); err != nil || string(body) != "word "+string(numbered(n)) {
			t.Fatalf("%s: got %q, %v, want the body", numbered(n), body, err)
		}
	}
	runtime.KeepAlive(s)
}

func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
