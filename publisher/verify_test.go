package publisher

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/publisher/internal/lock"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// Every kind of damage is named and repaired; foreign objects are left alone.
func TestVerifyAndRepair(t *testing.T) {
	for _, c := range []struct {
		name                      string
		damage                    func(t *testing.T, folder string)
		missing, altered, unknown string
		refreshed, foreign        string
	}{
		{name: "nothing", damage: func(*testing.T, string) {}},
		{name: "missing", missing: "api/v1/lists/3/details",
			damage: func(t *testing.T, folder string) { remove(t, folder, listKey(3, site.Details)) }},
		{name: "altered, same size", altered: "api/v1/lists/3/records",
			damage: func(t *testing.T, folder string) { put(t, folder, listKey(3, site.Records), "xxxxxxxx") }},
		{name: "unknown", unknown: "api/v1/lists/999/records",
			damage: func(t *testing.T, folder string) { put(t, folder, listKey(999, site.Records), "x") }},
		{name: "somebody's", foreign: "pictures robots.txt",
			damage: func(t *testing.T, folder string) {
				put(t, folder, "robots.txt", "x")
				put(t, folder, "pictures", "not in the folder that is excluded")
			}},
		{name: "somebody's, excluded",
			damage: func(t *testing.T, folder string) {
				put(t, folder, "excluded.txt", "x")
				put(t, folder, "excluded/deep/in/a.png", "x")
			}},
		{name: "excluded by a pattern, but the site's", missing: "api/v1/lists/4/details", altered: "api/v1/lists/3/details", unknown: "api/v1/lists/777/details",
			damage: func(t *testing.T, folder string) {
				remove(t, folder, listKey(4, site.Details))
				put(t, folder, listKey(3, site.Details), "x")
				put(t, folder, listKey(777, site.Details), "x")
			}},
		{name: "shard missing", missing: "_manifest/3",
			damage: func(t *testing.T, folder string) { remove(t, folder, site.ManifestKey("3")) }},
		{name: "shard altered", altered: "_manifest/3",
			damage: func(t *testing.T, folder string) { put(t, folder, site.ManifestKey("3"), "{}") }},
		{name: "refreshed", refreshed: "api/v1/lists/3/badges",
			damage: func(t *testing.T, folder string) {
				put(t, folder, listKey(3, site.Badges), "fresh")
				put(t, folder, site.RefreshKey(site.Badges, "3"), keptFor("badges3"))
			}},
		{name: "altered after a refresh", altered: "api/v1/lists/3/badges",
			damage: func(t *testing.T, folder string) {
				put(t, folder, listKey(3, site.Badges), "fresh, and damaged")
				put(t, folder, site.RefreshKey(site.Badges, "3"), keptFor("badges3"))
			}},
		{name: "refreshed before the site had other bytes", altered: "api/v1/lists/3/badges",
			damage: func(t *testing.T, folder string) {
				put(t, folder, listKey(3, site.Badges), "fresh")
				put(t, folder, site.RefreshKey(site.Badges, "3"), keptFor("badges of an earlier site"))
			}},
		{name: "altered, and the refreshed data is unreadable", altered: "api/v1/lists/3/badges",
			damage: func(t *testing.T, folder string) {
				put(t, folder, listKey(3, site.Badges), "fresh")
				put(t, folder, site.RefreshKey(site.Badges, "3"), "upstream")
			}},
		{name: "altered next to a refresh of another kind", altered: "api/v1/lists/3/details",
			damage: func(t *testing.T, folder string) {
				put(t, folder, listKey(3, site.Details), "fresh")
				put(t, folder, site.RefreshKey(site.Badges, "3"), keptFor("badges3"))
			}},
		{name: "lock", damage: func(t *testing.T, folder string) { put(t, folder, site.LockKey, `{"lease_seconds":0}`) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := t.TempDir()
			want := siteOf(t, objectsOf(10, ""))
			bucket := openLocal(folder)
			publish(t, want, bucket, Options{})
			c.damage(t, folder)
			check := func(v *Verification, missing, altered, unknown string) {
				t.Helper()
				for _, kind := range []struct {
					name, want string
					found      Found
				}{{"missing", missing, v.Missing}, {"altered", altered, v.Altered}, {"unknown", unknown, v.Unknown}, {"foreign", c.foreign, v.Foreign}, {"refreshed", c.refreshed, v.Refreshed}} {
					var keys []string
					for _, key := range kind.found.Keys {
						keys = append(keys, string(key))
					}
					if got := strings.Join(keys, " "); got != kind.want || kind.found.Count != len(keys) {
						t.Errorf("%s: got %q (%d), want %q", kind.name, got, kind.found.Count, kind.want)
					}
				}
			}
			ctx := context.Background()
			exclude := []string{"*.xml", "excluded*", "pictures/*", "api/*/*/*/details"}
			v, err := Verify(ctx, bucket, Options{Exclude: exclude})
			if err != nil {
				t.Fatal(err)
			}
			check(v, c.missing, c.altered, c.unknown)
			if v.Good() != (c.missing+c.altered+c.unknown+c.foreign == "") {
				t.Errorf("good: got %v, want the opposite", v.Good())
			}
			v, err = Repair(ctx, want, bucket, Options{BreakLock: true, drain: dead, Exclude: exclude})
			if err != nil {
				t.Fatal(err)
			}
			check(v, c.missing, c.altered, c.unknown)
			if v, err = Verify(ctx, bucket, Options{Exclude: exclude}); err != nil {
				t.Fatal(err)
			}
			check(v, "", "", "")
		})
	}
}

// oddKeys lists foreign keys that no folder can have.
type oddKeys struct{ Bucket }

func (b oddKeys) List(ctx context.Context, prefix, after site.Key, found func(storage.Info) error) error {
	for _, key := range []site.Key{"/", "/robots.txt", "//", "../x", "a//b", "excluded//b"} {
		if err := found(storage.Info{Key: key}); err != nil {
			return err
		}
	}
	return b.Bucket.List(ctx, prefix, after, found)
}

// A survey ends whatever the names of foreign objects.
func TestForeignKeysThatAreOdd(t *testing.T) {
	bucket := openLocal(t.TempDir())
	publish(t, siteOf(t, objectsOf(2, "")), bucket, Options{})
	v, err := Verify(t.Context(), oddKeys{bucket}, Options{Exclude: []string{"excluded/", "/robots.*"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(v.Foreign.Keys); got != "[../x / // a//b]" {
		t.Errorf("foreign: got %s, want four", got)
	}
}

// Reports stay in the bucket, whatever is published or repaired, with or without the explorer: they
// do not belong to a site and are not unknown objects.
func TestReportsAreKept(t *testing.T) {
	with := objectsOf(5, "")
	with[site.ExplorerPageKey], with[site.IndexKey], with[site.ExplorerKey("app-ABCD1234.js")] = "page", "index", "script"
	explored, plain := siteOf(t, with, withExplorer), siteOf(t, objectsOf(5, " plain"))
	reports := []site.Key{site.ReportsKey, site.ReportKey("2026-01-31", "html"), site.ReportKey("2026-01-31", "json")}
	folder := t.TempDir()
	bucket := openLocal(folder)
	publish(t, plain, bucket, Options{})
	for _, key := range reports {
		put(t, folder, key, "report")
	}
	for _, next := range []memorySite{explored, plain, explored} {
		for _, cutOff := range []bool{false, true} {
			if cutOff {
				put(t, folder, site.MarkKey, `{"runs":[]}`)
				put(t, folder, site.ExplorerKey("old-ABCD1234.js"), "left behind")
			}
			publish(t, next, bucket, Options{drain: dead})
			want := memorySite{}
			maps.Copy(want, next)
			for _, key := range reports {
				want[key] = "report"
			}
			if cutOff && next[site.ExplorerPageKey] == "" {
				remove(t, folder, site.ExplorerKey("old-ABCD1234.js")) // a key of neither site
			}
			equalSites(t, inBucket(t, folder), want)
			v, err := Verify(t.Context(), bucket, Options{})
			if err != nil || !v.Good() {
				t.Errorf("got %v, %v, want no difference", v, err)
			}
			if _, err := Repair(t.Context(), next, bucket, Options{BreakLock: true, drain: dead}); err != nil {
				t.Error(err)
			}
			equalSites(t, inBucket(t, folder), want)
		}
	}
}

// keptFor returns the entry below _refresh/ of a refresh that replaced a body with "fresh".
func keptFor(replaced string) string {
	return fmt.Sprintf(`{"stored":[{"md5":%q,"from":%q}]}`, site.Sum([]byte("fresh")), site.Sum([]byte(replaced)))
}

// A site that is not the bucket's repairs nothing.
func TestRepairFromAnotherSite(t *testing.T) {
	folder := t.TempDir()
	publish(t, siteOf(t, objectsOf(3, "")), openLocal(folder), Options{})
	_, err := Repair(context.Background(), siteOf(t, objectsOf(4, "")), openLocal(folder), Options{})
	if err == nil || !strings.Contains(err.Error(), "run followpress publish instead") {
		t.Error(err)
	}
}

// Publishing repairs a bucket with a damaged root or manifest.
func TestPublishOverADamagedBucket(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, folder string){
		"root":                 func(t *testing.T, folder string) { put(t, folder, site.RootKey, "{}") },
		"no root":              func(t *testing.T, folder string) { remove(t, folder, site.RootKey) },
		"shard":                func(t *testing.T, folder string) { put(t, folder, site.ManifestKey("0"), "{}") },
		"shard of another one": func(t *testing.T, folder string) { put(t, folder, site.ManifestKey("0"), `{"shard":"0","objects":[]}`) },
		"no shard":             func(t *testing.T, folder string) { remove(t, folder, site.ManifestKey("0")) },
		"mark":                 func(t *testing.T, folder string) { put(t, folder, site.MarkKey, "?") },
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			publish(t, siteOf(t, objectsOf(20, "")), openLocal(folder), Options{})
			damage(t, folder)
			next := siteOf(t, objectsOf(20, " next"))
			publish(t, next, openLocal(folder), Options{})
			equalSites(t, inBucket(t, folder), next)
		})
	}
}

// A site with a file that differs from its manifest is not published: one error names the remedy,
// and readers keep the old site.
func TestDamagedSite(t *testing.T) {
	for name, damage := range map[string]func(memorySite){
		"altered":       func(m memorySite) { m[listKey(3, site.Details)] = "XXXXXXXX next" },
		"other size":    func(m memorySite) { m[listKey(3, site.Details)] = "x" },
		"missing":       func(m memorySite) { delete(m, listKey(3, site.Details)) },
		"shard altered": func(m memorySite) { m[site.ManifestKey("0")] = "{}" },
		"no shard":      func(m memorySite) { delete(m, site.ManifestKey("0")) },
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			old := siteOf(t, objectsOf(20, ""))
			publish(t, old, openLocal(folder), Options{})
			next := siteOf(t, objectsOf(20, " next"))
			damage(next)
			_, err := Publish(context.Background(), next, openLocal(folder), Options{})
			if err == nil || !strings.Contains(err.Error(), "--rebuild") || strings.Contains(err.Error(), "\n") {
				t.Errorf("error: got %v, want one line with --rebuild", err)
			}
			if readAll(t, folder)[site.RootKey] != old[site.RootKey] {
				t.Error("root: got another one, want it unchanged")
			}
		})
	}
}

// Objects refreshed since the last publish stay, unless the site's object differs from the bucket's
// manifest, even after a run that was cut off.
func TestRefreshedObjects(t *testing.T) {
	refreshed := []site.Key{listKey(3, site.Details), listKey(4, site.Details)}
	for _, cutOff := range []bool{false, true} {
		folder := t.TempDir()
		bucket := openLocal(folder)
		publish(t, siteOf(t, objectsOf(20, "")), bucket, Options{})
		for i, key := range refreshed {
			put(t, folder, key, "fresh")
			put(t, folder, site.RefreshKey(site.Details, []string{"3", "4"}[i]), keptFor("details"+[]string{"3", "4"}[i]))
		}
		objects := objectsOf(20, "")
		objects[listKey(4, site.Details)] = "newer than the refresh"
		objects[listKey(5, site.Details)] = "other"
		next := siteOf(t, objects)
		if cutOff {
			dying := &mortal{Bucket: bucket, left: 4}
			if _, err := Publish(context.Background(), next, dying, Options{Concurrency: 1}); err == nil {
				t.Fatal("run: got no error, want it cut off")
			}
		}
		publish(t, next, bucket, Options{BreakLock: true, drain: dead})
		found := inBucket(t, folder)
		next[refreshed[0]] = "fresh"
		for _, token := range []string{"3", "4"} {
			key := site.RefreshKey(site.Details, token)
			if found[key] != keptFor("details"+token) {
				t.Errorf("%s: got it changed, want it unchanged", key)
			}
			delete(found, key)
		}
		equalSites(t, found, next)
	}
}

// A publishing bucket replaces a manifest shard after it was listed.
type publishing struct {
	*storage.Local
	after func()
}

func (p publishing) List(ctx context.Context, prefix, after site.Key, found func(storage.Info) error) error {
	err := p.Local.List(ctx, prefix, after, found)
	p.after()
	return err
}

// A manifest replaced during a verification does not count as good.
func TestVerifyWhileAManifestIsReplaced(t *testing.T) {
	folder := t.TempDir()
	publish(t, siteOf(t, objectsOf(10, "")), openLocal(folder), Options{})
	v, err := Verify(t.Context(), publishing{openLocal(folder), func() { put(t, folder, site.ManifestKey("3"), "{}") }}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if v.Good() || len(v.Altered.Keys) != 1 || v.Altered.Keys[0] != site.ManifestKey("3") || v.Unknown.Count > 0 {
		t.Errorf("got %v, want the shard altered", v)
	}
}

// A crowded bucket has many objects of others, and lists everything twice.
type crowded struct {
	*storage.Local
	foreign int
	used    int64 // maximum bytes, sampled while it was listed
}

func (c *crowded) List(ctx context.Context, prefix, after site.Key, found func(storage.Info) error) error {
	err := c.Local.List(ctx, prefix, after, func(info storage.Info) error { return errors.Join(found(info), found(info)) })
	for i := range c.foreign {
		if i%50_000 == 0 {
			c.used = max(c.used, inUse())
		}
		key := site.Key(fmt.Sprintf("somebody-elses/%040d", i))
		if key > after && strings.HasPrefix(string(key), string(prefix)) {
			err = errors.Join(err, found(storage.Info{Key: key}), found(storage.Info{Key: key}))
		}
	}
	return err
}

// A survey finds missing and altered objects, regardless of the number of shards, in constant memory
// even among many foreign objects.
func TestSurveyAmongForeignObjects(t *testing.T) {
	for _, digits := range []int{1, 3} {
		folder := t.TempDir()
		bucket := &crowded{Local: openLocal(folder), foreign: 60_000}
		publish(t, siteOf(t, objectsOf(300, ""), func(r *site.Root) { r.ShardDigits = digits }), bucket.Local, Options{})
		for i := range 30 {
			remove(t, folder, listKey(10*i, site.Badges))
			put(t, folder, listKey(10*i, site.Details), "other")
		}
		before := inUse()
		v, err := Verify(t.Context(), bucket, Options{memory: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if v.Missing.Count != 30 || v.Altered.Count != 30 || v.Foreign.Count != bucket.foreign {
			t.Errorf("%d digits: got %d missing, %d altered, %d foreign objects, want 30, 30, %d", digits,
				v.Missing.Count, v.Altered.Count, v.Foreign.Count, bucket.foreign)
		}
		if most, limit := bucket.used-before, int64(7<<20); most > limit {
			t.Errorf("%d digits: got %d bytes of memory in use, want at most %d", digits, most, limit)
		}
	}
}

// inUse returns the live bytes, after a collection, because the amount of garbage depends on the
// load of the machine.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// While requests may arrive late, a dry run compares with a listing, like the run itself.
func TestDryRunInDoubt(t *testing.T) {
	calmly(t, conditional, func(t *testing.T, w *world) {
		first := simulatedSites()[0]
		w.publishCalmly(t, first, w.calm("first", nil), Options{})
		body := w.lock(t)
		body.Doubt = &lock.Doubt{Run: "before", Since: time.Now().UTC()}
		w.setLock(t, body)
		w.arriveLate(first)
		report := w.publishCalmly(t, first, w.calm("dry", nil), Options{DryRun: true})
		if report.Outcome != Planned || report.Plan.Put != 1 || !report.Resumed {
			t.Errorf("dry run: got %s of %+v, resumed %v, want to put the object that arrived late", report.Outcome, report.Plan, report.Resumed)
		}
	})
}
