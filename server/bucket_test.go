package server_test

import (
	"bytes"
	"context"
	"maps"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/testenv/tempdir"
	"github.com/followpress/followpress/internal/twin/naive"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

func TestMain(m *testing.M) {
	tempdir.InMemory()
	minio.DefaultRetryUnit = time.Millisecond // the library waits once more after its last attempt
	m.Run()
}

// A bucket can be published to and served from.
type bucket interface {
	server.Bucket
	publisher.Bucket
	Get(ctx context.Context, key site.Key) ([]byte, error)
}

// onBuckets runs a test on a bucket of each kind: a folder, and real servers where
// they were asked for. Each call of open is another client of the same bucket.
func onBuckets(t *testing.T, check func(t *testing.T, open func() bucket)) {
	t.Helper()
	t.Run("folder", func(t *testing.T) {
		t.Parallel()
		folder := filepath.Join(t.TempDir(), "bucket")
		check(t, func() bucket { return openLocal(folder) })
	})
	onServers(t, func(t *testing.T, s *servers.Server) {
		at := storage.Location{Bucket: s.Bucket(t)}
		check(t, func() bucket { return openS3(t, s, at, s.Endpoint) })
	})
}

// onServers runs a test on a server of each kind, on both at the same time.
func onServers(t *testing.T, check func(*testing.T, *servers.Server)) {
	t.Helper()
	for _, kind := range servers.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			check(t, servers.Start(t, kind))
		})
	}
}

var environment sync.Mutex

// openS3 opens a bucket at a server, or by way of a proxy. Credentials come from the
// environment, which is read here; tests that run at the same time cannot use t.Setenv.
func openS3(t testing.TB, s *servers.Server, at storage.Location, endpoint string) storage.Bucket {
	t.Helper()
	environment.Lock()
	defer environment.Unlock()
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": s.AccessKey, "AWS_SECRET_ACCESS_KEY": s.SecretKey,
		"AWS_SESSION_TOKEN": "", "AWS_REGION": "", "AWS_DEFAULT_REGION": ""} {
		if err := os.Setenv(name, value); err != nil { //nolint:usetesting // see above
			t.Fatal(err)
		}
	}
	b, err := storage.OpenBucket(context.Background(), at, storage.S3Options{Endpoint: endpoint})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// published puts a site into a bucket.
func published(t testing.TB, files afero.Fs, to bucket) {
	t.Helper()
	if _, err := publisher.Publish(t.Context(), storage.NewFolder(files), to, publisher.Options{}); err != nil {
		t.Fatalf("publish: got %v, want no error", err)
	}
}

// local returns a bucket in a folder that holds a site.
func local(t testing.TB, files afero.Fs) *storage.Local {
	t.Helper()
	return openLocal(inFolder(t, files))
}

// openLocal opens a folder as a bucket. It is not synced to disk, which would wait for what all tests write.
func openLocal(folder string) *storage.Local {
	b := storage.OpenLocal(folder)
	b.NoSync = true
	return b
}

// inFolder writes a site to a folder.
func inFolder(t testing.TB, files afero.Fs) (path string) {
	t.Helper()
	return objects(t, files).Write(t, t.TempDir())
}

// generated returns the site of a snapshot, in memory.
func generated(t testing.TB, snapshot afero.Fs, config site.Config) afero.Fs {
	t.Helper()
	files, _, err := generator.ToMemory(context.Background(), snapshot, generator.Options{Config: config})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// snapshotOf returns a snapshot with rows of three tables, and nothing in the others.
func snapshotOf(lists, records, accounts string) afero.Fs {
	files := fstest.MapFS{}
	for name, text := range map[string]string{
		"meta.json": `{"format":1,"as_of":"2026-11-01T00:00:00Z"}`, "events.ndjson": "", "badges.ndjson": "",
		"lists.ndjson": lists, "records.ndjson": records, "accounts.ndjson": accounts,
	} {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return afero.FromIOFS{FS: files}
}

// content returns every object of a bucket whose key begins with prefix.
func content(t testing.TB, b bucket, prefix site.Key) map[site.Key]string {
	t.Helper()
	all := map[site.Key]string{}
	err := b.List(t.Context(), prefix, "", func(info storage.Info) error {
		body, err := b.Get(t.Context(), info.Key)
		all[info.Key] = string(body)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// unchanged checks that no object was put, replaced or removed.
func unchanged(t testing.TB, b bucket, was map[site.Key]string, what string) {
	t.Helper()
	if is := content(t, b, ""); !maps.Equal(is, was) {
		for key, body := range is {
			if was[key] != body {
				t.Errorf("%s: %s: got another body, %.200s, want it unchanged", what, key, body)
			}
		}
		for key := range was {
			if _, ok := is[key]; !ok {
				t.Errorf("%s: %s: got no object, want it unchanged", what, key)
			}
		}
	}
}

// newHandler returns a handler that discards its log.
func newHandler(t testing.TB, store server.Store, o server.Options) *server.Handler {
	t.Helper()
	if o.Log == nil {
		o.Log = discard
	}
	h, err := server.New(context.Background(), store, o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// watch lets a handler watch its store until stop is called, or the test ends.
func watch(t testing.TB, h *server.Handler) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() { h.Watch(ctx) })
	stop = func() {
		cancel()
		watching.Wait()
	}
	t.Cleanup(stop)
	return stop
}

// eventually waits until something holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for begun := time.Now(); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Since(begun) > 2*time.Minute {
			t.Fatalf("after two minutes: got nothing, want: %s", what)
		}
	}
}

// TestAnswersAreThoseOfTheTwin compares a site of each of some random graphs with a naive computation.
func TestAnswersAreThoseOfTheTwin(t *testing.T) {
	t.Parallel()
	asked := 0
	for seed := range uint64(servers.Rounds(2, 20)) {
		snapshot := naive.Random(seed)
		graph, err := naive.Load(snapshot, naive.Config{BadgesField: "badges"})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		handler := newHandler(t, storage.NewFolder(generated(t, afero.FromIOFS{FS: snapshot}, site.Config{})), server.Options{})
		for _, r := range naive.Requests(rand.New(rand.NewPCG(seed, 0)), graph, 2000) {
			if !inSpec.MatchString(r.Path) || r.Method == "POST" {
				continue
			}
			asked++
			status, _, want := graph.Answer(r.Method, r.Path, r.RawQuery, r.Body)
			if strings.Contains(r.Path, "/searchFollowing") {
				want = addressOfEntry.ReplaceAll(want, []byte(`,"tags":`))
			}
			got := httptest.NewRecorder()
			handler.ServeHTTP(got, httptest.NewRequest(r.Method, r.URL(), nil))
			body := got.Body.Bytes()
			if got.Code != status || status == 200 && r.Method == "GET" && !bytes.Equal(body, want) {
				t.Errorf("seed %d, %s: got %d and %.500s, want %d and %.500s", seed, r, got.Code, body, status, want)
			}
		}
		handler.Close()
	}
	if asked < 200 {
		t.Errorf("requests: got %d, want many", asked)
	}
}

var (
	inSpec         = regexp.MustCompile(`/leaderboard/follow|^/api/v1/lists/[^/]*/(records|details|badges|searchFollowing)$|^/api/v1/users/[^/]*/searchFollowing$`)
	addressOfEntry = regexp.MustCompile(`,"address":"0x[0-9a-f]{40}","tags":`)
)
