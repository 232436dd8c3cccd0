package publisher

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

func percent(t testing.TB, text string) *Percent {
	t.Helper()
	var p Percent
	if err := p.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return &p
}

func withCounts(c site.Counts) func(*site.Root) { return func(r *site.Root) { r.Counts = c } }

// A site that lacks too much changes nothing in the bucket: no object, mark or lock.
func TestGuard(t *testing.T) {
	was := siteOf(t, objectsOf(20, "was"), withCounts(site.Counts{Lists: 20, Names: 9}))
	less := siteOf(t, objectsOf(10, "less"), withCounts(site.Counts{Lists: 10, Names: 9}))
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T, bucket string)
		most    string
		says    string
	}{
		{"a smaller site", nil, "49.9999%", "10 lists instead of 20"},
		{"a smaller site that is meant", nil, "100%", ""},
		{"within the limit", nil, "50%", ""},
		{"a damaged root", func(t *testing.T, bucket string) { put(t, bucket, site.RootKey, "{") }, "5%", "cannot tell what the live site has"},
		{"an empty root", func(t *testing.T, bucket string) { put(t, bucket, site.RootKey, "") }, "5%", "cannot tell what the live site has"},
		{"a damaged root that is given up", func(t *testing.T, bucket string) { put(t, bucket, site.RootKey, "{") }, "100%", ""},
		{"a removed root", func(t *testing.T, bucket string) { remove(t, bucket, site.RootKey) }, "5%", "no _site"},
		{"an older root", func(t *testing.T, bucket string) { put(t, bucket, site.RootKey, `{"format":1}`) }, "5%", "with this version); if this site is complete, publish it with --max-loss 100%"},
		{"an older root that is given up", func(t *testing.T, bucket string) { put(t, bucket, site.RootKey, `{"format":1}`) }, "100%", ""},
		{"a newer root", func(t *testing.T, bucket string) { put(t, bucket, site.RootKey, `{"format":99}`) }, "5%", "update followpress"},
		{"a publish that was cut off", func(t *testing.T, bucket string) { put(t, bucket, site.MarkKey, "{}") }, "5%", "10 lists instead of 20"},
		{"a first publish that was cut off", func(t *testing.T, bucket string) {
			remove(t, bucket, site.RootKey)
			put(t, bucket, site.MarkKey, "{}")
		}, "5%", ""},
	} {
		for _, dryRun := range []bool{true, false} {
			t.Run(c.name, func(t *testing.T) {
				folder := t.TempDir()
				publish(t, was, openLocal(folder), Options{MaxLoss: percent(t, "0%")}) // first publish
				if c.prepare != nil {
					c.prepare(t, folder)
				}
				before := readAll(t, folder)
				report, err := Publish(context.Background(), less, openLocal(folder), Options{MaxLoss: percent(t, c.most), DryRun: dryRun})
				if c.says == "" {
					if err != nil {
						t.Fatal(err)
					}
					if !dryRun {
						equalSites(t, inBucket(t, folder), less)
					}
					return
				}
				if err == nil || !strings.Contains(err.Error(), c.says) || report.Outcome != Failed {
					t.Errorf("got %v, %v", report.Outcome, err)
				}
				equalSites(t, readAll(t, folder), before)
			})
		}
	}
}

// The loss is measured against the site that is live once the run has the lock.
func TestGuardUnderTheLock(t *testing.T) {
	small, large := siteOf(t, objectsOf(2, "small"), withCounts(site.Counts{Lists: 2})), siteOf(t, objectsOf(20, "large"), withCounts(site.Counts{Lists: 20}))
	next := siteOf(t, objectsOf(3, "next"), withCounts(site.Counts{Lists: 3}))
	folder := t.TempDir()
	publish(t, small, openLocal(folder), Options{})
	bucket := &meanwhile{Local: openLocal(folder), do: sync.OnceFunc(func() { publish(t, large, openLocal(folder), Options{}) })}
	_, err := Publish(context.Background(), next, bucket, Options{MaxLoss: percent(t, "5%")})
	if err == nil || !strings.Contains(err.Error(), "3 lists instead of 20") {
		t.Errorf("got %v", err)
	}
	equalSites(t, inBucket(t, folder), large)
}

// An older site changes nothing in the bucket, not even a lock, unless allowed; then it may lack
// anything. It is compared with the site that is live once the run has the lock.
func TestRollback(t *testing.T) {
	lists := func(n int) func(*site.Root) { return func(r *site.Root) { r.Counts = site.Counts{Lists: n} } }
	at := func(asOf string) func(*site.Root) { return func(r *site.Root) { r.AsOf = asOf } }
	live := siteOf(t, objectsOf(20, "live"), at("2026-11-20T12:00:00Z"), lists(20))
	for _, tt := range []struct {
		name, asOf string
		lists      int
		damage     string // the live root; "" leaves it
		options    Options
		want       string // "" if published
	}{
		{"newer", "2026-11-20T12:00:01Z", 20, "", Options{}, ""},
		{"of the same time", "2026-11-20T12:00:00Z", 20, "", Options{}, ""},
		{"of the same time elsewhere", "2026-11-20T13:00:00+01:00", 20, "", Options{}, ""},
		{"older by a second", "2026-11-20T11:59:59Z", 20, "", Options{}, "as of 2026-11-20T11:59:59Z, and 2026-11-20T12:00:00Z was published"},
		{"older, and later as text", "2026-11-20T13:00:00+03:00", 20, "", Options{}, "--allow-rollback"},
		{"of two years ago, without a bound for losses", "2024-01-01T00:00:00Z", 20, "", Options{MaxLoss: percent(t, "100%")}, "--allow-rollback"},
		{"older, and lacks much", "2024-01-01T00:00:00Z", 1, "", Options{MaxLoss: percent(t, "5%")}, "--allow-rollback"},
		{"older and allowed, and lacks much", "2024-01-01T00:00:00Z", 1, "", Options{MaxLoss: percent(t, "5%"), AllowRollback: true}, ""},
		{"newer, and lacks much", "2026-11-21T00:00:00Z", 1, "", Options{MaxLoss: percent(t, "5%"), AllowRollback: true}, "1 lists instead of 20"},
		{"over a damaged root", "2024-01-01T00:00:00Z", 20, "{", Options{}, ""},
		{"over a damaged root, with a bound", "2024-01-01T00:00:00Z", 20, "{", Options{MaxLoss: percent(t, "5%"), AllowRollback: true}, "cannot tell what the live site has"},
	} {
		for _, dryRun := range []bool{true, false} {
			t.Run(tt.name, func(t *testing.T) {
				folder, next := t.TempDir(), siteOf(t, objectsOf(10, "next"), at(tt.asOf), lists(tt.lists))
				publish(t, live, openLocal(folder), Options{})
				if tt.damage != "" {
					put(t, folder, site.RootKey, tt.damage)
				}
				before, o := readAll(t, folder), tt.options
				o.DryRun = dryRun
				_, err := Publish(t.Context(), next, openLocal(folder), o)
				switch {
				case tt.want != "":
					if err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, ErrRollback) != strings.Contains(err.Error(), "--allow-rollback") {
						t.Errorf("got %v, want %s", err, tt.want)
					}
					equalSites(t, readAll(t, folder), before)
				case err != nil:
					t.Error(err)
				case !dryRun:
					equalSites(t, inBucket(t, folder), next)
				}
			})
		}
	}
	first, older := siteOf(t, objectsOf(2, "first"), at("2026-11-01T00:00:00Z")), siteOf(t, objectsOf(3, "older"), at("2026-11-02T00:00:00Z"))
	folder := t.TempDir()
	publish(t, first, openLocal(folder), Options{})
	bucket := &meanwhile{Local: openLocal(folder), do: sync.OnceFunc(func() { publish(t, live, openLocal(folder), Options{}) })}
	if _, err := Publish(t.Context(), older, bucket, Options{}); !errors.Is(err, ErrRollback) {
		t.Errorf("a newer site was published concurrently: got %v, want ErrRollback", err)
	}
	equalSites(t, inBucket(t, folder), live)
}

// A meanwhile bucket calls do once a run has read the root.
type meanwhile struct {
	*storage.Local
	do func()
}

func (m *meanwhile) Read(ctx context.Context, key site.Key) ([]byte, storage.Info, error) {
	body, info, err := m.Local.Read(ctx, key)
	if key == site.RootKey {
		m.do()
	}
	return body, info, err
}

// withExplorer adds routes with one object each.
func withExplorer(r *site.Root) {
	r.Config.Explorer = true
	r.HeaderRules = r.Config.HeaderRules()
}

// The first publish refuses to replace foreign objects, names them and writes nothing, unless told
// to overwrite. It ignores foreign objects with other keys, and resumes a run that was cut off.
func TestTheFirstPublishReplacesNoObjectsOfOthers(t *testing.T) {
	objects := objectsOf(5, "")
	objects["index.html"], objects["_explore/index.html"] = "ours", "ours"
	from, foreign := siteOf(t, objects, withExplorer), map[site.Key]string{"index.html": "theirs", "robots.txt": "theirs"}
	folder := t.TempDir()
	for key, body := range foreign {
		put(t, folder, key, body)
	}
	for _, dryRun := range []bool{true, false} {
		_, err := Publish(t.Context(), from, openLocal(folder), Options{DryRun: dryRun})
		if !errors.Is(err, errForeign) || !strings.Contains(err.Error(), "index.html") || strings.Contains(err.Error(), "robots.txt") {
			t.Errorf("dry run %v: got %v, want an error that names index.html", dryRun, err)
		}
		equalSites(t, inBucket(t, folder), foreign)
	}
	publish(t, from, openLocal(folder), Options{Overwrite: true})
	if body := readAll(t, folder)["index.html"]; body != "ours" {
		t.Errorf("told to overwrite: got %q, want ours", body)
	}
	if r := publish(t, from, openLocal(folder), Options{}); r.Outcome != Unchanged {
		t.Errorf("the same again: got %s, want unchanged", r.Outcome)
	}
	for left := range 40 { // a first publish that dies, leaving objects in the bucket
		folder := t.TempDir()
		if _, err := Publish(context.Background(), from, &mortal{Bucket: openLocal(folder), left: left}, Options{drain: dead}); err == nil {
			break
		}
		next := siteOf(t, objectsOf(5, "x"), withExplorer)
		publish(t, next, openLocal(folder), Options{BreakLock: true, drain: dead})
		equalSites(t, inBucket(t, folder), next)
	}
}

// An update that adds an object with a fixed name does not replace a foreign one either.
func TestAnUpdateReplacesNoObjectsOfOthers(t *testing.T) {
	folder, objects := t.TempDir(), objectsOf(5, "")
	publish(t, siteOf(t, objects, withExplorer), openLocal(folder), Options{})
	put(t, folder, "_explore/index.html", "theirs")
	objects["_explore/index.html"] = "ours"
	resharded := func(r *site.Root) { r.ShardDigits++ }
	for name, next := range map[string]memorySite{"": siteOf(t, objects, withExplorer), "with more shards": siteOf(t, objects, withExplorer, resharded)} {
		if _, err := Publish(t.Context(), next, openLocal(folder), Options{}); !errors.Is(err, errForeign) || !strings.Contains(err.Error(), "_explore/index.html") {
			t.Errorf("an update %s: got %v, want an error that names _explore/index.html", name, err)
		}
	}
	put(t, folder, "_explore/index.html", "ours")
	publish(t, siteOf(t, objects, withExplorer), openLocal(folder), Options{})
}
