package publisher

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/site/shards"
	"github.com/followpress/followpress/storage"
)

// A counting bucket counts requests by kind, and records puts and deletes in order.
type counting struct {
	Bucket
	reads, puts, deletes, lists atomic.Int32
	order                       orderOf
}

type orderOf struct{ keys chan site.Key }

func count(b Bucket) *counting {
	return &counting{Bucket: b, order: orderOf{make(chan site.Key, 100_000)}}
}

func (c *counting) Read(ctx context.Context, key site.Key) ([]byte, storage.Info, error) {
	c.reads.Add(1)
	return c.Bucket.Read(ctx, key)
}

func (c *counting) Put(ctx context.Context, o storage.Object, condition storage.Condition) (string, error) {
	c.puts.Add(1)
	etag, err := c.Bucket.Put(ctx, o, condition)
	c.order.keys <- o.Key
	return etag, err
}

func (c *counting) Delete(ctx context.Context, keys []site.Key) error {
	c.deletes.Add(1)
	for _, key := range keys {
		c.order.keys <- "-" + key
	}
	return c.Bucket.Delete(ctx, keys)
}

func (c *counting) List(ctx context.Context, prefix, after site.Key, found func(storage.Info) error) error {
	c.lists.Add(1)
	return c.Bucket.List(ctx, prefix, after, found)
}

func (c *counting) log() []site.Key {
	close(c.order.keys)
	var keys []site.Key
	for key := range c.order.keys {
		keys = append(keys, key)
	}
	return keys
}

// Objects come shard by shard, each shard of the manifest after its objects. Search shards, buckets and
// leaderboards come after all of them, in this order, the root after everything; deletes follow.
func TestOrder(t *testing.T) {
	t.Run("shards", func(t *testing.T) { testOrder(t, 1, Options{maxDelta: 1}) })
	t.Run("delta", func(t *testing.T) { testOrder(t, 1, Options{}) })
	t.Run("deltas and indexes", func(t *testing.T) { testOrder(t, 3, Options{}) })
	t.Run("shards and indexes", func(t *testing.T) { testOrder(t, 3, Options{maxDelta: 1}) })
}

func testOrder(t *testing.T, digits int, o Options) {
	o.Concurrency = 8
	cut := func(r *site.Root) { r.ShardDigits = digits }
	folder := t.TempDir()
	buckets := func(text string) map[site.Key]string {
		return map[site.Key]string{site.UserBucketKey("0"): "0" + text, site.UserBucketKey("1"): "1" + text}
	}
	publish(t, siteOf(t, merge(objectsOf(60, ""), searchesOf(9, 3, 0), buckets("")), cut), openLocal(folder), Options{})
	next := merge(objectsOf(40, " anew"), searchesOf(9, 3, 60), buckets(" anew"))
	bucket := count(openLocal(folder))
	publish(t, siteOf(t, next, cut), bucket, o)

	log := bucket.log()
	at := map[site.Key]int{}
	for i, key := range log {
		at[key] = i
	}
	root := at[site.RootKey]
	stages := []string{"_search/lists/", "_search/users/", "leaderboard"}
	stageOf := func(key site.Key) int {
		return slices.IndexFunc(stages, func(part string) bool { return strings.Contains(string(key), part) })
	}
	var first, last [3]int
	for key := range next {
		shard := site.ManifestShard(key, digits)
		manifest := cmp.Or(at[site.ManifestKey(shard)], at[site.DeltaKey(shards.Group(shard))])
		if index := site.ManifestKey(shard[:site.RootDigits(digits)]); digits > 2 && (at[index] < manifest || manifest == 0 || at[index] > root) {
			t.Errorf("%s: got it before what it names, or after the root", index)
		}
		stage := stageOf(key)
		if stage >= 0 {
			last[stage] = max(last[stage], at[key])
			first[stage] = min(cmp.Or(first[stage], at[key]), at[key])
		}
		switch {
		case stage >= 0:
			for _, shard := range site.HashPrefixes(digits) {
				if at[site.ManifestKey(shard)] > at[key] {
					t.Errorf("%s: got it before shard %s, want it after", key, shard)
				}
			}
		case at[key] > manifest:
			t.Errorf("%s: got it after its manifest shard, want it before", key)
		}
		if at[key] > root {
			t.Errorf("%s: got it after the root, want it before", key)
		}
	}
	if last[0] == 0 || last[0] > first[1] || last[1] == 0 || last[1] > first[2] {
		t.Errorf("%s: got them from %v to %v, want them one after the other", stages, first, last)
	}
	for key, i := range at {
		if key[0] == '-' && i < root {
			t.Errorf("%s: got it before the root, want it after", key)
		}
	}
	if first, last := log[0], log[len(log)-1]; first != site.LockKey || last != site.LockKey || log[len(log)-2] != "-"+site.MarkKey {
		t.Errorf("the lock is taken first and released last, after the mark is gone; got %s … %s", first, last)
	}
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
	type sites struct{ live, next memorySite }
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
	cases := map[string]struct {
		sites
		again []routes.ID // routes whose objects are put although their bytes are right
	}{
		"one object is another":            {sites{siteOf(t, some), siteOf(t, changed)}, nil},
		"a list is gone":                   {sites{siteOf(t, some), siteOf(t, fewer)}, nil},
		"the headers of details differ":    {sites{siteOf(t, some, otherHeaders(routes.Details)), siteOf(t, some)}, []routes.ID{routes.Details}},
		"the headers of boards differ":     {sites{siteOf(t, some, otherHeaders(routes.Leaderboard)), siteOf(t, some)}, []routes.ID{routes.Leaderboard}},
		"the headers of the root differ":   {sites{siteOf(t, some, otherHeaders(routes.Root)), siteOf(t, some)}, []routes.ID{routes.Root}},
		"the headers of a manifest differ": {sites{siteOf(t, some, otherHeaders(routes.Manifest)), siteOf(t, some)}, []routes.ID{routes.Manifest}},
	}
	for _, n := range [][2]int{{1, 3}, {3, 2}} {
		cases[fmt.Sprintf("the manifest has %d digits instead of %d", n[1], n[0])] = struct {
			sites
			again []routes.ID
		}{sites{siteOf(t, before, digits(n[0])), siteOf(t, after, digits(n[1]))}, nil}
	}
	for seed := range uint64(servers.Rounds(4, 10)) {
		random := rand.New(rand.NewPCG(seed, 1))
		cases[fmt.Sprintf("random sites %d", seed)] = struct {
			sites
			again []routes.ID
		}{sites{randomSite(t, random), randomSite(t, random)}, nil}
	}
	for name, c := range cases {
		folder := t.TempDir()
		publish(t, c.live, openLocal(folder), Options{anyRules: true})
		bucket := count(openLocal(folder))
		publish(t, c.next, bucket, Options{memory: 300})
		equalSites(t, inBucket(t, folder), c.next)
		put, gone := map[site.Key]bool{}, map[site.Key]bool{}
		for _, key := range bucket.log() {
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
	for i, key := range bucket.log() {
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
