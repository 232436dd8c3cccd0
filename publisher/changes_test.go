package publisher

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/site/tags"
	"github.com/followpress/followpress/storage"
)

// A counting bucket counts requests by kind, and records puts and deletes in order.
type counting struct {
	Bucket
	reads, puts, deletes, lists atomic.Int32
	mu                          sync.Mutex
	order                       []site.Key // A - precedes the key of a deleted object.
}

func count(b Bucket) *counting { return &counting{Bucket: b} }

func (c *counting) note(keys ...site.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.order = append(c.order, keys...)
}

func (c *counting) Read(ctx context.Context, key site.Key) ([]byte, storage.Info, error) {
	c.reads.Add(1)
	return c.Bucket.Read(ctx, key)
}

func (c *counting) Put(ctx context.Context, o storage.Object, condition storage.Condition) (string, error) {
	c.puts.Add(1)
	etag, err := c.Bucket.Put(ctx, o, condition)
	c.note(o.Key)
	return etag, err
}

func (c *counting) Delete(ctx context.Context, keys []site.Key) error {
	c.deletes.Add(1)
	for _, key := range keys {
		c.note("-" + key)
	}
	return c.Bucket.Delete(ctx, keys)
}

func (c *counting) List(ctx context.Context, prefix, after site.Key, found func(storage.Info) error) error {
	c.lists.Add(1)
	return c.Bucket.List(ctx, prefix, after, found)
}

// An unchanged site takes three requests; k changes in s shards at most k + 2s + 10.
func TestRequests(t *testing.T) {
	folder := t.TempDir()
	objects := objectsOf(500, "")
	publish(t, siteOf(t, objects), openLocal(folder), Options{})

	same := count(openLocal(folder))
	publish(t, siteOf(t, objects), same, Options{})
	if n := same.reads.Load() + same.puts.Load() + same.deletes.Load(); n > 3 || same.lists.Load() > 0 {
		t.Errorf("requests of an unchanged site: got %d, want at most 3 and no listing", n)
	}
	shards := map[string]bool{}
	for i := range 5 {
		key := listKey(i*7, site.Details)
		objects[key] += " changed"
		shards[site.ManifestShard(key, 1)] = true
	}
	gone := listKey(100, site.Badges)
	delete(objects, gone)
	shards[site.ManifestShard(gone, 1)] = true
	changed := count(openLocal(folder))
	publish(t, siteOf(t, objects), changed, Options{})
	n := int(changed.reads.Load() + changed.puts.Load() + changed.deletes.Load())
	if most := 6 + 2*len(shards) + 10; n > most || changed.lists.Load() > 0 {
		t.Errorf("6 changes in %d shards: got %d requests, want at most %d", len(shards), n, most)
	}
}

// A publish puts what the bucket lacks or has with other bytes or headers, and deletes what the
// site lacks. It writes nothing else, except the manifest and the objects next to the site.
func TestWhatAPublishChanges(t *testing.T) {
	digits := func(n int) func(*site.Root) { return func(r *site.Root) { r.ShardDigits = n } }
	otherHeaders := func(route routes.ID) func(*site.Root) {
		return func(r *site.Root) {
			r.HeaderRules = site.Config{}.HeaderRules()
			r.HeaderRules[site.RouteBy(route).Pattern] = site.Sum(nil)
		}
	}
	some := objectsOf(50, "")
	changed := objectsOf(50, "")
	changed[listKey(7, site.Details)] += " anew"
	fewer := objectsOf(49, "")
	before, after := objectsOf(400, ""), objectsOf(400, "")
	for i := range 40 {
		delete(after, listKey(i*3, site.Badges))
		delete(before, listKey(i*5, site.Details))
		after[listKey(i*7, site.Records)] = "other"
	}
	type aCase struct {
		live, next memorySite
		again      []routes.ID // routes whose objects are put although their bytes are right
	}
	cases := map[string]aCase{}
	add := func(name string, live, next memorySite, again ...routes.ID) { cases[name] = aCase{live, next, again} }
	add("one object is another", siteOf(t, some), siteOf(t, changed))
	add("a list is gone", siteOf(t, some), siteOf(t, fewer))
	for _, route := range []routes.ID{routes.Details, routes.Leaderboard, routes.Root, routes.Manifest} {
		add("the headers differ of "+site.RouteBy(route).Pattern, siteOf(t, some, otherHeaders(route)), siteOf(t, some), route)
	}
	for _, n := range [][2]int{{1, 3}, {3, 2}} {
		add(fmt.Sprintf("the manifest has %d digits instead of %d", n[1], n[0]), siteOf(t, before, digits(n[0])), siteOf(t, after, digits(n[1])))
	}
	for seed := range uint64(servers.Rounds(4, 10)) {
		random := rand.New(rand.NewPCG(seed, 1))
		add(fmt.Sprintf("random sites %d", seed), randomSite(t, random), randomSite(t, random))
	}
	for name, c := range cases {
		folder := t.TempDir()
		publish(t, c.live, openLocal(folder), Options{anyRules: true})
		bucket := count(openLocal(folder))
		publish(t, c.next, bucket, Options{memory: 300})
		equalSites(t, inBucket(t, folder), c.next)
		put, gone := map[site.Key]bool{}, map[site.Key]bool{}
		for _, key := range bucket.order {
			if was, ok := strings.CutPrefix(string(key), "-"); ok {
				gone[site.Key(was)] = true
			} else {
				put[key] = true
			}
		}
		isManifest := func(key site.Key) bool { return strings.HasPrefix(string(key), string(site.ManifestKey(""))) }
		root := c.next.Root(t)
		for key, body := range c.next {
			if key == site.RootKey || isManifest(key) {
				continue
			}
			route, _ := root.Config.RouteOf(key)
			if want := c.live[key] != body || route != nil && slices.Contains(c.again, route.ID); put[key] != want {
				t.Errorf("%s: %s: got put %v, want %v", name, key, put[key], want)
			}
		}
		for key := range c.live {
			if _, stays := c.next[key]; !isManifest(key) && gone[key] == stays {
				t.Errorf("%s: %s, which the site has: %v, got deleted %v", name, key, stays, gone[key])
			}
		}
		for key := range put {
			if _, ours := c.next[key]; !ours && !isManifest(key) && key != site.LockKey && key != site.MarkKey {
				t.Errorf("%s: got put %s, which the site does not have", name, key)
			}
		}
		if slices.Contains(c.again, routes.Manifest) && !put[site.ManifestKey("0")] {
			t.Errorf("%s: got the manifest not put again", name)
		}
	}
}

// Objects that refer to others are put after them, and the explorer's pages after their scripts, so
// that no reader follows a reference to a missing object.
func TestEntryPointsComeLast(t *testing.T) {
	c, err := site.AllFeatures().WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	address := site.UnknownAddress
	stages := [][]site.Key{
		{c.UserObjectKey(address, site.Details), c.ListKey("1", site.PageFollowing), c.StatsKey(), site.UnknownKey(site.Badges), site.OpenAPIKey,
			site.ExplorerKey("app-ABCD1234.js"), site.ExplorerKey("app-ABCD1234.css")},
		{site.SearchShardKey("1", 0), site.ListHeadKey("1"), site.FollowerShardKey(address, 3), site.FollowerHeadKey(address),
			site.RankedShardKey(0), site.RecommendedShardKey(0), site.NotificationsKey(address, 1), site.ActivityKey("1", 1)},
		{site.UserBucketKey("0"), site.TokenBucketKey("0"), site.RankedOrderKey("top8", 0), site.NotificationsKey(address, 0), site.ActivityKey("1", 0)},
		{c.LeaderboardKey(site.Mutes), site.LeaderboardLimitKey(site.Blocks, 3), c.RankedKey(), c.DiscoverKey(), site.DiscoverShardKey, site.RecentKey,
			site.IndexKey, site.ExplorerPageKey, site.ExplorerKey("sw.js")},
	}
	objects := map[site.Key]string{}
	for _, keys := range stages {
		for _, key := range keys {
			objects[key] = string(key)
		}
	}
	bucket := count(openLocal(t.TempDir()))
	publish(t, siteOf(t, objects, func(r *site.Root) { r.Config, r.HeaderRules, r.TokenDigits = c, c.HeaderRules(), 1 }), bucket, Options{Concurrency: 8})
	at := map[site.Key]int{}
	for i, key := range bucket.order {
		at[key] = i + 1
	}
	latest := 0
	for _, keys := range stages {
		last := 0
		for _, key := range keys {
			if at[key] <= latest {
				t.Errorf("%s: got it before what it refers to, want it after", key)
			}
			last = max(last, at[key])
		}
		latest = last
	}
}

// Reports, also of a dry run, name exactly the objects that were put and deleted, except the root.
func TestReportNamesWhatChanged(t *testing.T) {
	folder := t.TempDir()
	first, objects := objectsOf(5, ""), objectsOf(5, "")
	objects[listKey(3, site.Details)] = "another"
	objects[listKey(7, site.Records)] = "new"
	delete(objects, listKey(4, site.Badges))
	publish(t, siteOf(t, first), openLocal(folder), Options{})

	planned := publish(t, siteOf(t, objects), openLocal(folder), Options{DryRun: true, MaxChanged: 100})
	bucket := count(openLocal(folder))
	done := publish(t, siteOf(t, objects), bucket, Options{MaxChanged: 100})
	var written []site.Key
	for _, key := range bucket.order {
		if key = site.Key(strings.TrimPrefix(string(key), "-")); key != site.RootKey && key != site.MarkKey && key != site.LockKey {
			written = append(written, key)
		}
	}
	slices.Sort(written)
	for name, changed := range map[string]Changed{"the report": done.Changed, "the dry run": planned.Changed} {
		if keys := slices.Sorted(slices.Values(changed.Keys)); changed.Unknown || len(written) < 4 || !slices.Equal(keys, written) {
			t.Errorf("changed keys of %s: got %q, want %q", name, keys, written)
		}
	}
	if again := publish(t, siteOf(t, objects), openLocal(folder), Options{MaxChanged: 100}); len(again.Changed.Keys) > 0 || again.Changed.Unknown {
		t.Errorf("an unchanged site: got %+v, want no keys", again.Changed)
	}
}

// Changes are not named if there are too many, if the old state is unknown, or if headers changed.
func TestReportSaysThatChangesAreUnknown(t *testing.T) {
	folder := t.TempDir()
	unknown := func(when, text string, most int) {
		t.Helper()
		if r := publish(t, siteOf(t, objectsOf(5, text)), openLocal(folder), Options{MaxChanged: most}); !r.Changed.Unknown || r.Changed.Keys != nil {
			t.Errorf("%s: got %+v, want Unknown", when, r.Changed)
		}
	}
	unknown("the first publish", "", 1000)
	unknown("more than MaxChanged", "x", 16)
	older := siteOf(t, objectsOf(5, ""), func(r *site.Root) { r.HeaderRules[site.RouteBy(routes.UserSearch).Pattern] = site.MD5{1} })
	put(t, folder, site.RootKey, older[site.RootKey])
	unknown("other headers of answers", "", 1000)
	put(t, folder, site.MarkKey, "{}")
	unknown("after a run that was cut off", "", 1000)
}

// A publisher that dies after all changes may not have purged them: the next run reports unknown
// changes.
func TestReportAfterARunThatDiedLast(t *testing.T) {
	from := siteOf(t, objectsOf(5, ""))
	for left := 20; ; left++ {
		folder := t.TempDir()
		_, err := Publish(t.Context(), from, &mortal{Bucket: openLocal(folder), left: left}, Options{drain: dead})
		if err != nil {
			continue
		}
		if !isDoubted(t, folder) {
			t.Fatal("got a run that released its lock, want one that died before")
		}
		r := publish(t, from, openLocal(folder), Options{BreakLock: true, drain: dead, MaxChanged: 1000})
		if r.Outcome != Unchanged || !r.Resumed || !r.Changed.Unknown {
			t.Errorf("got %s, resumed %v, changed %+v, want a resumed run that does not know what changed", r.Outcome, r.Resumed, r.Changed)
		}
		return
	}
}

// The report has the configuration before and after, because answers may be computed from it.
func TestReportSaysWhichSettingsChanged(t *testing.T) {
	folder := t.TempDir()
	publish(t, siteOf(t, objectsOf(5, "")), openLocal(folder), Options{})
	next := siteOf(t, objectsOf(5, ""), func(r *site.Root) { r.Config.BadgesField = "b" })
	for _, dryRun := range []bool{true, false} {
		r := publish(t, next, openLocal(folder), Options{MaxChanged: 1000, DryRun: dryRun})
		if r.Before.BadgesField != "badges" || r.Config.BadgesField != "b" {
			t.Errorf("dry run %v: got %+v before and %+v after, want those of the two sites", dryRun, r.Before, r.Config)
		}
	}
}

// A repair names what it repaired.
func TestRepairNamesWhatChanged(t *testing.T) {
	folder, from := t.TempDir(), siteOf(t, objectsOf(5, ""))
	publish(t, from, openLocal(folder), Options{})
	remove(t, folder, listKey(2, site.Badges))
	v, err := Repair(t.Context(), from, openLocal(folder), Options{MaxChanged: 10})
	if err != nil {
		t.Fatal(err)
	}
	if c := v.Repaired.Changed; c.Unknown || !slices.Equal(c.Keys, []site.Key{listKey(2, site.Badges)}) {
		t.Errorf("changed by repair: got %+v, want only the key that was put back", c)
	}
}

// A metadataBucket records the metadata of the last put of each object.
type metadataBucket struct {
	*storage.Local
	mu  sync.Mutex
	put map[site.Key]map[string]string
}

func (b *metadataBucket) Put(ctx context.Context, o storage.Object, condition storage.Condition) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.put[o.Key] = o.Metadata
	return b.Local.Put(ctx, o, condition)
}

// A publish with other tags puts all objects again, with those tags, once. A repair keeps the tags,
// also on what it puts back.
func TestPublishWithTags(t *testing.T) {
	next := siteOf(t, objectsOf(50, ""))
	b := &metadataBucket{openLocal(t.TempDir()), sync.Mutex{}, map[site.Key]map[string]string{}}
	for _, services := range []string{"", "fastly", "cloudfront fastly", "cloudfront", ""} {
		clear(b.put)
		report := publish(t, next, b, Options{Tags: services})
		if want := len(next) - 17; report.Plan.Put != want || report.Done.Put != want || report.Plan.Manifests != 16 || report.Config.Tags != services {
			t.Errorf("%q: got %+v, want all %d objects put", services, report.Plan, want)
		}
		config := site.Config{BasePath: "api/v1", LeaderboardMax: 100, Tags: services}
		for key := range next {
			if got, want := b.put[key], tags.Metadata(config, key); !maps.Equal(got, want) {
				t.Errorf("%q: %s: got %v, want %v", services, key, got, want)
			}
		}
		if again := publish(t, next, b, Options{Tags: services}); again.Outcome != Unchanged {
			t.Errorf("%q: again: got %s, want nothing to do", services, again.Outcome)
		}
		lost := listKey(3, site.Details)
		if err := b.Delete(t.Context(), []site.Key{lost}); err != nil {
			t.Fatal(err)
		}
		clear(b.put)
		v, err := Repair(t.Context(), next, b, Options{})
		if err != nil || v.Missing.Count != 1 || !maps.Equal(b.put[lost], tags.Metadata(config, lost)) {
			t.Errorf("%q: repair: got %v, %+v, and %v, want the object with its tags", services, err, v, b.put[lost])
		}
	}
	if _, err := Publish(t.Context(), next, b, Options{Tags: "akamai"}); err == nil {
		t.Error("tags for an unknown service: got no error, want one")
	}
}
