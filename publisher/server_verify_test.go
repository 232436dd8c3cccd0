package publisher_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
)

// Verify names all damage of a bucket and writes nothing. Repair fixes it, and leaves refreshed and
// foreign objects alone.
func TestVerifyAndRepairABucket(t *testing.T) {
	first := demo(t)
	config := first.Root(t).Config
	// The objects of unreadable shards are unknown, so the damaged objects are in other shards.
	readable := func(key site.Key) bool { return !slices.Contains([]string{"3", "5"}, site.ManifestShard(key, 1)) }
	records := slices.DeleteFunc(first.Keys(t, routes.Records), func(key site.Key) bool { return !readable(key) })
	details := slices.DeleteFunc(first.Keys(t, routes.Details), func(key site.Key) bool { return !readable(key) })
	missing, altered, refreshed, unknown := records[0], records[1], details[0], config.ListKey("999999", site.Badges)
	for n := 999998; !readable(unknown); n-- {
		unknown = config.ListKey(fmt.Sprint(n), site.Badges)
	}
	refresh := config.RefreshesOf(refreshed)[0]

	onServers(t, func(t *testing.T, server *servers.Server) {
		p := newPlace(t, server, "site/")
		publish(t, first, p.open(t, nil), publisher.Options{})
		p.remove(t, missing)
		p.put(t, altered, strings.Repeat("x", len(first[altered])), minio.PutObjectOptions{})
		p.put(t, refreshed, "fresh", minio.PutObjectOptions{})
		p.put(t, refresh, keptFor(first[refreshed]), minio.PutObjectOptions{})
		p.put(t, unknown, "left over", minio.PutObjectOptions{})
		p.put(t, "robots.txt", "somebody's", minio.PutObjectOptions{})
		p.remove(t, site.ManifestKey("3"))
		p.put(t, site.ManifestKey("5"), "{}", minio.PutObjectOptions{})

		want := found{[]site.Key{site.ManifestKey("3"), missing}, []site.Key{site.ManifestKey("5"), altered},
			[]site.Key{unknown}, []site.Key{"robots.txt"}, []site.Key{refreshed}}
		r := newRecorder(p.at)
		v, err := publisher.Verify(t.Context(), p.open(t, r), publisher.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want.check(t, v)
		if n := r.all() - r.of(http.MethodGet, http.MethodHead) - r.lists(); n > 0 || v.Good() {
			t.Errorf("verify: got %d writes, good %v, want 0 and false", n, v.Good())
		}

		r = newRecorder(p.at)
		if v, err = publisher.Repair(t.Context(), first, p.open(t, r), publisher.Options{DryRun: true}); err != nil {
			t.Fatal(err)
		}
		want.check(t, v)
		if n := r.all() - r.of(http.MethodGet, http.MethodHead) - r.lists(); n > 0 || v.Repaired.Outcome != publisher.Planned {
			t.Errorf("dry run: got %d writes, %s, want 0 and %s", n, v.Repaired.Outcome, publisher.Planned)
		}
		if p := v.Repaired.Plan; p.Put != 2 || p.Manifests != 2 || p.Delete != 1 {
			t.Errorf("dry run: got %d objects and %d shards to put and %d to delete, want 2, 2 and 1", p.Put, p.Manifests, p.Delete)
		}

		r = newRecorder(p.at)
		v, err = publisher.Repair(t.Context(), first, p.open(t, r), publisher.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want.check(t, v)
		put := slices.Sorted(maps.Keys(r.objectsPut()))
		if mended := []site.Key{site.ManifestKey("3"), site.ManifestKey("5"), missing, altered, site.RootKey}; !slices.Equal(put, slices.Sorted(slices.Values(mended))) {
			t.Errorf("puts of repair: got %v, want %v", put, mended)
		}
		if v.Repaired.Done.Deleted != 1 {
			t.Errorf("repair: got %d deleted, want only ours deleted", v.Repaired.Done.Deleted)
		}
		repaired := maps.Clone(first)
		repaired[refreshed] = "fresh"
		p.lists(t, repaired, "robots.txt", refresh)
		if v, err = publisher.Verify(t.Context(), p.open(t, nil), publisher.Options{}); err != nil {
			t.Fatal(err)
		}
		found{foreign: []site.Key{"robots.txt"}, refreshed: []site.Key{refreshed}}.check(t, v)
	})
}

// keptFor returns the entry below _refresh/ of a refresh that replaced a body with "fresh".
func keptFor(replaced string) string {
	return fmt.Sprintf(`{"stored":[{"md5":%q,"from":%q}]}`, site.Sum([]byte("fresh")), site.Sum([]byte(replaced)))
}

type found struct{ missing, altered, unknown, foreign, refreshed []site.Key }

func (f found) check(t *testing.T, v *publisher.Verification) {
	t.Helper()
	for _, kind := range []struct {
		name string
		want []site.Key
		got  publisher.Found
	}{{"missing", f.missing, v.Missing}, {"altered", f.altered, v.Altered}, {"unknown", f.unknown, v.Unknown}, {"foreign", f.foreign, v.Foreign}, {"refreshed", f.refreshed, v.Refreshed}} {
		want := slices.Sorted(slices.Values(kind.want))
		if !slices.Equal(kind.got.Keys, want) || kind.got.Count != len(want) {
			t.Errorf("%s: got %v (%d), want %v", kind.name, kind.got.Keys, kind.got.Count, want)
		}
	}
}

// A refreshed object stays if the new site has the same bytes as the old one, even after a killed
// run; if the new site has other bytes, they win.
func TestRefreshedObjectsSurviveAKilledRun(t *testing.T) {
	first := demo(t)
	details := first.Keys(t, routes.Details)
	kept, replaced := details[0], details[len(details)/2]
	second := first.With(t, func(objects memory, _ *site.Root) {
		for i, key := range first.Keys(t) {
			if key != kept && (i%2 == 0 || key == replaced) {
				objects[key] += " "
			}
		}
	})
	config := first.Root(t).Config
	onServers(t, func(t *testing.T, server *servers.Server) {
		path := second.Write(t, filepath.Join(t.TempDir(), "site"))
		for _, delay := range []time.Duration{0, 100 * time.Millisecond} {
			p := newPlace(t, server, "")
			publish(t, first, p.open(t, nil), publisher.Options{})
			var refreshes []site.Key
			for _, key := range []site.Key{kept, replaced} {
				refresh := config.RefreshesOf(key)[0]
				refreshes = append(refreshes, refresh)
				p.put(t, key, "fresh", minio.PutObjectOptions{})
				p.put(t, refresh, keptFor(first[key]), minio.PutObjectOptions{})
			}
			c := p.start(t, job{Site: path, Bulk: publisher.BulkOff, Workers: 1})
			c.WaitFor("upload")
			time.Sleep(delay)
			c.Signal(syscall.SIGKILL)
			if _, killed := c.Wait(); !killed {
				t.Fatal("run: got its end, want it killed before")
			}
			quiet(t, p)
			p.remove(t, site.LockKey)
			report := publish(t, second, p.open(t, nil), publisher.Options{})
			want := maps.Clone(second)
			want[kept] = "fresh"
			p.lists(t, want, refreshes...)
			if !report.Resumed {
				t.Error("outcome: got nothing to resume, want a run that was cut off")
			}
		}
	})
}

// A site with a manually changed file is not published. One line names the remedy, and the bucket's
// root stays.
func TestADamagedSiteIsNotPublished(t *testing.T) {
	first := demo(t)
	second := first.Changed(t, 1, " ")
	victim := second.Keys(t, routes.Details)[3]
	onServers(t, func(t *testing.T, server *servers.Server) {
		p := newPlace(t, server, "")
		publish(t, first, p.open(t, nil), publisher.Options{})
		for _, bulk := range []publisher.Bulk{publisher.BulkOff, publisher.BulkAuto} {
			for _, damage := range []string{strings.Repeat("x", len(second[victim])), "shorter", ""} {
				folder := second.Write(t, filepath.Join(t.TempDir(), "site"))
				if err := os.WriteFile(filepath.Join(folder, filepath.FromSlash(string(victim))), []byte(damage), 0o644); err != nil {
					t.Fatal(err)
				}
				_, err := publisher.Publish(t.Context(), openSite(t, folder), p.open(t, nil), publisher.Options{Bulk: bulk})
				if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "--rebuild") || !strings.Contains(err.Error(), string(victim)) {
					t.Errorf("bulk %s, %d bytes: got %v, want one line with the key and --rebuild", bulk, len(damage), err)
				}
				if body, _ := p.get(t, site.RootKey); body != first[site.RootKey] {
					t.Fatal("root: got another one, want it unchanged")
				}
			}
		}
		publish(t, second, p.open(t, nil), publisher.Options{})
		p.holds(t, second)
	})
}
