package server_test

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A place is where one of two sites is, and where the other can take its place.
type place struct {
	put   func(t *testing.T, site int)
	store func(t *testing.T) server.Store
}

// places returns a folder and a tar file that generate writes, and buckets.
func places(t *testing.T) map[string]func(t *testing.T) place {
	t.Helper()
	snapshots, sites := twoSnapshots(t), twoSites(t)
	output := func(name string) func(*testing.T) place {
		return func(t *testing.T) place {
			path := filepath.Join(t.TempDir(), name)
			return place{
				func(t *testing.T, n int) {
					t.Helper()
					o := generator.Options{Config: site.Config{LeaderboardMax: 10}}
					if _, err := generator.ToPath(context.Background(), snapshots[n], path, o); err != nil {
						t.Fatal(err)
					}
				},
				func(t *testing.T) server.Store { return open(t, path) },
			}
		}
	}
	published := func(to bucket) place {
		return place{
			func(t *testing.T, n int) {
				t.Helper()
				if _, err := publisher.Publish(context.Background(), sites[n], to, publisher.Options{AllowRollback: true}); err != nil {
					t.Fatal(err)
				}
			},
			func(*testing.T) server.Store { return to },
		}
	}
	all := map[string]func(*testing.T) place{
		"folder": output("site"), "tar": output("site.tar"),
		"bucket in a folder": func(t *testing.T) place { return published(openLocal(t.TempDir())) },
	}
	for _, kind := range servers.Kinds() {
		all[string(kind)] = func(t *testing.T) place {
			s := servers.Start(t, kind)
			return published(openS3(t, s, storage.Location{Bucket: s.Bucket(t)}, s.Endpoint))
		}
	}
	return all
}

// A site is replaced and restored between two polls. No answer comes from the other
// site afterwards.
func TestASiteThatIsRolledBack(t *testing.T) {
	t.Parallel()
	want := answersOf(t, twoSites(t))
	for name, at := range places(t) {
		t.Run(name, func(t *testing.T) {
			p := at(t)
			p.put(t, 0)
			handler := newHandler(t, p.store(t), server.Options{})
			front := httptest.NewServer(handler)
			defer front.Close()
			p.put(t, 1)
			for _, path := range questions() {
				answerOf(t, front.URL, path) // into the cache
			}
			p.put(t, 0)
			for _, path := range questions() {
				eventually(t, "the answer is the site's: "+path, func() bool {
					handler.PollRoot(t.Context())
					return answerOf(t, front.URL, path) == want[0][path]
				})
			}
		})
	}
}

// While generate replaces a tar file again and again, every answer is that of one site
// or the other, and old files are closed.
func TestGenerateOverATar(t *testing.T) {
	const turns = 8
	want := answersOf(t, twoSites(t))
	p := places(t)["tar"](t)
	p.put(t, 0)
	handler := newHandler(t, p.store(t), server.Options{Poll: 10 * time.Millisecond, CacheBytes: 1 << 20})
	front := httptest.NewServer(handler)
	defer front.Close()
	watching, end := context.WithCancel(t.Context())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		handler.Watch(watching)
	}()
	before := openFiles(t, ".tar")
	stop := load(t, front.URL, 4, want)
	for turn := range turns {
		p.put(t, (turn+1)%2)
		asOf := []string{"2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"}[turn%2]
		eventually(t, "the new site is noticed", func() bool { return handler.Root().AsOf == asOf })
	}
	stop()
	for _, path := range questions() {
		if got := answerOf(t, front.URL, path); got != want[turns%2][path] {
			t.Errorf("%s, at the end: got %.300s, want the answer of the last site", path, got)
		}
	}
	end()
	<-watched
	if after := openFiles(t, ".tar"); after > before {
		t.Errorf("open tar files: got %d at the end, want %d", after, before)
	}
}

// openFiles counts the files with an extension that this process has open, under
// whatever name they have now.
func openFiles(t *testing.T, extension string) (count int) {
	t.Helper()
	const open = "/proc/self/fd"
	files, err := os.ReadDir(open)
	if err != nil {
		t.Skip("counts open files by /proc, which is not here: run it on Linux")
	}
	for _, file := range files {
		name, _ := os.Readlink(filepath.Join(open, file.Name())) // it may be closed by now
		if ext := filepath.Ext(name); ext == extension || ext == extension+" (deleted)" {
			count++
		}
	}
	return count
}
