package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/iotest"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage/internal/location"
	"github.com/followpress/followpress/storage/internal/s3"
	"github.com/followpress/followpress/storage/internal/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func openFiles(t *testing.T, at location.Location, o s3.Options) *Files {
	t.Helper()
	files, err := Open(t.Context(), storetest.OpenS3With(t, at, o))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func openFile(t *testing.T, files *Files, name string) afero.File {
	t.Helper()
	file, err := files.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
	return file
}

// noise returns n bytes without repetition.
func noise(n int) string {
	body := make([]byte, n)
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(body) // never fails
	return string(body)
}

// TestFilesOfABucket: a folder of a bucket is a valid fs.FS, without objects outside it or in subfolders.
func TestFilesOfABucket(t *testing.T) {
	storetest.OnServers(t, func(t *testing.T, server *servers.Server) {
		at := location.Location{Bucket: server.Bucket(t), Prefix: "snap+shots/ü/"}
		bodies := map[string]string{"a.parquet": noise(100_000), "empty": "", "meta.json": "{}", "z": noise(64 << 10)}
		var names []string
		for name, body := range bodies {
			storetest.Put(t, storetest.OpenS3(t, server, at), storetest.Object(site.Key(name), body))
			names = append(names, name)
		}
		storetest.Put(t, storetest.OpenS3(t, server, at), storetest.Object("below/meta.json", "{}"))
		storetest.Put(t, storetest.OpenS3(t, server, location.Location{Bucket: at.Bucket}), storetest.Object("meta.json", "{}"), storetest.Object("snap+shots/b", "{}"))

		files := openFiles(t, at, s3.Options{Endpoint: server.Endpoint})
		if err := fstest.TestFS(files.FS, names...); err != nil {
			t.Error(err)
		}
		for name, want := range bodies {
			if body, err := afero.ReadFile(files, name); err != nil || string(body) != want {
				t.Errorf("%s: got %d bytes and the error %v, want the %d that were put", name, len(body), err, len(want))
			}
			if path, err := files.RealPath(name); err != nil || path != "s3://"+at.Bucket+"/snap+shots/ü/"+name {
				t.Errorf("path of %s: got %s, %v", name, path, err)
			}
		}
		if infos, err := afero.ReadDir(files, "."); err != nil || len(infos) != len(bodies) {
			t.Errorf("files: got %d, %v, want %d", len(infos), err, len(bodies))
		}
		for _, name := range []string{"no", "below", "below/meta.json", "b"} {
			if _, err := files.Open(name); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: got %v, want that it does not exist", name, err)
			}
		}
	})
}

func TestFilesAreReadAnywhere(t *testing.T) {
	storetest.OnServers(t, func(t *testing.T, server *servers.Server) {
		at := location.Location{Bucket: server.Bucket(t)}
		body := noise(9<<20 + 7)
		storetest.Put(t, storetest.OpenS3(t, server, at), storetest.Object("file", body))
		readsAnywhere(t, openFile(t, openFiles(t, at, s3.Options{Endpoint: server.Endpoint}), "file"), body)
	})
}

// readsAnywhere reads at random offsets from several goroutines.
func readsAnywhere(t *testing.T, file afero.File, body string) {
	t.Helper()
	var group sync.WaitGroup
	for seed := range uint64(4) {
		group.Go(func() {
			random := rand.New(rand.NewPCG(seed, 0))
			at := 0
			for range 100 {
				if random.IntN(3) == 0 {
					at = random.IntN(len(body))
				}
				buf := make([]byte, 1+random.IntN(100_000))
				want := body[at:min(at+len(buf), len(body))]
				n, err := file.ReadAt(buf, int64(at))
				if string(buf[:n]) != want || (err != nil) != (n < len(buf)) || err != nil && !errors.Is(err, io.EOF) {
					t.Errorf("%d bytes at %d: got %d and the error %v, want %d", len(buf), at, n, err, len(want))
				}
				at = (at + n) % len(body)
			}
		})
	}
	group.Wait()
}

// TestFilesKeepLittleInMemory: many open files share the memory limit, and dropped spans are read again.
func TestFilesKeepLittleInMemory(t *testing.T) {
	storetest.OnServers(t, func(t *testing.T, server *servers.Server) {
		at := location.Location{Bucket: server.Bucket(t)}
		body := noise(1 << 20)
		const most = 1 << 20
		for i := range 8 {
			storetest.Put(t, storetest.OpenS3(t, server, at), storetest.Object(site.Key(fmt.Sprint(i)), body))
		}
		files := openFiles(t, at, s3.Options{Endpoint: server.Endpoint})
		files.bucket.most = most
		var open []afero.File
		for i := range 8 {
			file, err := files.Open(fmt.Sprint(i))
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, file)
		}
		for at := 0; at < len(body); at += 32 << 10 {
			for i, file := range open {
				part := make([]byte, 32<<10)
				if _, err := file.ReadAt(part, int64(at)); err != nil || string(part) != body[at:at+len(part)] {
					t.Fatalf("file %d at %d: got other bytes, or the error %v", i, at, err)
				}
			}
			if n := files.bucket.memory; n > most {
				t.Fatalf("got %d bytes in memory, want at most %d", n, most)
			}
		}
		for _, file := range open {
			if err := file.Close(); err != nil {
				t.Error(err)
			}
		}
		if n := files.bucket.memory; n != 0 {
			t.Errorf("after closing: got %d bytes in memory", n)
		}
	})
}

// TestFilesThatChange: reads return the listed version, or an error.
func TestFilesThatChange(t *testing.T) {
	storetest.OnServers(t, func(t *testing.T, server *servers.Server) {
		at := location.Location{Bucket: server.Bucket(t), Prefix: "snapshot/"}
		b := storetest.OpenS3(t, server, at)
		body := noise(1 << 20)
		storetest.Put(t, b, storetest.Object("replaced", body), storetest.Object("deleted", body))
		files := openFiles(t, at, s3.Options{Endpoint: server.Endpoint})
		begun := map[string]afero.File{"replaced": openFile(t, files, "replaced"), "deleted": openFile(t, files, "deleted")}
		for name, file := range begun {
			if _, err := io.ReadFull(file, make([]byte, 1000)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		storetest.Put(t, b, storetest.Object("replaced", noise(2<<20)), storetest.Object("new", body))
		if err := b.Delete(t.Context(), []site.Key{"deleted"}); err != nil {
			t.Fatal(err)
		}
		for name, file := range begun {
			rest, err := io.ReadAll(file)
			if err == nil || len(rest) > 64<<10 || !strings.HasSuffix(err.Error(), "snapshot/"+name+" was replaced or deleted while it was read") {
				t.Errorf("%s: got %d bytes and the error %v", name, len(rest), err)
			}
		}
		if _, err := files.Open("new"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a new file: got %v, want that it does not exist", err)
		}
	})
}

// TestFilesAreTriedAgain: temporary failures are retried, and a server that is gone gives an error that no reader
// mistakes for the end of the file.
func TestFilesAreTriedAgain(t *testing.T) {
	storetest.OnServers(t, func(t *testing.T, server *servers.Server) {
		at := location.Location{Bucket: server.Bucket(t)}
		body := noise(3 << 20)
		storetest.Put(t, storetest.OpenS3(t, server, at), storetest.Object("file", body))
		files := openFiles(t, at, s3.Options{Endpoint: server.Endpoint, Transport: &storetest.Busy{}})
		if got, err := afero.ReadFile(files, "file"); err != nil || string(got) != body {
			t.Errorf("a busy server: got %d bytes and the error %v, want %d", len(got), err, len(body))
		}
		proxy := server.Proxy(t)
		file := openFile(t, openFiles(t, at, s3.Options{Endpoint: proxy.Endpoint}), "file")
		proxy.Break(100_000, false)
		n, err := io.Copy(io.Discard, file)
		if err == nil || n == int64(len(body)) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
			!strings.Contains(err.Error(), "tried 7 times: check --endpoint") {
			t.Errorf("a server that has gone: got %d bytes and the error %v", n, err)
		}
	})
}

// TestFilesTakeFewRequests: a sequential read sends one request per few megabytes.
func TestFilesTakeFewRequests(t *testing.T) {
	storetest.OnServers(t, func(t *testing.T, server *servers.Server) {
		at := location.Location{Bucket: server.Bucket(t)}
		body := noise(20 << 20)
		storetest.Put(t, storetest.OpenS3(t, server, at), storetest.Object("file", body))
		counted := &counting{}
		files := openFiles(t, at, s3.Options{Endpoint: server.Endpoint, Transport: counted})
		listed := counted.requests.Load()
		got, err := io.ReadAll(iotest.HalfReader(openFile(t, files, "file")))
		if requests := counted.requests.Load() - listed; err != nil || !bytes.Equal(got, []byte(body)) || requests > 15 {
			t.Errorf("20 MiB: got %d bytes with %d requests and the error %v, want at most 15 requests", len(got), requests, err)
		}
	})
}

type counting struct{ requests atomic.Int64 }

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	return http.DefaultTransport.RoundTrip(r)
}

func TestFilesWithoutBucketSayWhatToCheck(t *testing.T) {
	storetest.OnServers(t, func(t *testing.T, server *servers.Server) {
		_, err := Open(t.Context(), storetest.OpenS3(t, server, location.Location{Bucket: "no-such-bucket", Prefix: "x/"}))
		if want := "read s3://no-such-bucket/x/: no such bucket; check its name, --endpoint and --region"; fmt.Sprint(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
}
