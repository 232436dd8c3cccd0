package publisher

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/followpress/followpress/publisher/internal/spool"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/site/shards"
	"github.com/followpress/followpress/storage"
)

// A counting bucket counts requests by kind, and what was put in which order.
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

func planOf(t *testing.T, live, next memorySite) *plan {
	t.Helper()
	ctx := context.Background()
	source, err := openSource(ctx, next)
	if err != nil {
		t.Fatal(err)
	}
	root, err := site.ParseRoot([]byte(live[site.RootKey]))
	if err != nil {
		t.Fatal(err)
	}
	bucket := retrying(siteBucket{memorySite: live}, time.Second)
	p, err := (&planner{source: source, bucket: bucket, live: &root, maxDelta: shards.MaxDelta, memory: 300}).plan(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A siteBucket can be read.
type siteBucket struct {
	memorySite
	Bucket
}

func (s siteBucket) Read(ctx context.Context, key site.Key) ([]byte, storage.Info, error) {
	body, err := s.Get(ctx, key)
	return body, storage.Info{}, err
}

// planned returns the entries of a stage.
func planned(t *testing.T, stage *spool.Spool) (entries []site.Entry) {
	t.Helper()
	for part := range stage.Parts {
		for e, err := range stage.Entries(part) {
			if err != nil {
				t.Fatal(err)
			}
			entries = append(entries, e)
		}
	}
	return entries
}

// The explorer's page and worker are put after the scripts that they name.
func TestPagesComeAfterTheirScripts(t *testing.T) {
	objects := objectsOf(3, "")
	scripts := []site.Key{site.ExplorerKey("app-ABCD1234.js"), site.ExplorerKey("app-ABCD1234.css")}
	pages := []site.Key{site.IndexKey, site.ExplorerPageKey, site.ExplorerKey("sw.js")}
	for _, key := range slices.Concat(scripts, pages) {
		objects[key] = string(key)
	}
	p := planOf(t, siteOf(t, objectsOf(3, "")), siteOf(t, objects, func(r *site.Root) { r.Config.Explorer = true }))
	for _, stage := range []struct {
		name string
		got  []site.Entry
		want []site.Key
	}{{"objects", planned(t, p.objects), scripts}, {"entry points", planned(t, p.boards), pages}} {
		for _, key := range stage.want {
			if !slices.ContainsFunc(stage.got, func(e site.Entry) bool { return e.Key == key }) {
				t.Errorf("%s: got %v, want %s among them", stage.name, stage.got, key)
			}
		}
	}
}

// The plan between any two sites equals a comparison of all their objects.
func TestPlanEqualsAPlainComparison(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		live, next := randomSite(t, random), randomSite(t, random)
		p := planOf(t, live, next)
		put, gone := map[site.Key]bool{}, map[site.Key]bool{}
		for _, s := range p.shards {
			if s.manifest {
				put[site.ManifestKey(s.shard)] = true
			}
		}
		for _, d := range p.deltas {
			delta, err := shards.ParseDelta(strings.TrimPrefix(string(d.key), string(site.DeltaKey(""))), d.body)
			if err != nil {
				t.Fatal(err)
			}
			for _, patch := range delta.Shards {
				put[site.ManifestKey(patch.Shard)] = true
			}
		}
		for _, stage := range []*spool.Spool{p.objects, p.searches, p.buckets, p.boards} {
			for _, e := range planned(t, stage) {
				put[e.Key] = true
			}
		}
		for key, err := range p.deletes.Keys(0) {
			if err != nil {
				t.Fatal(err)
			}
			gone[key] = true
		}
		for key, body := range next {
			if key != site.RootKey && put[key] != (live[key] != body) {
				t.Errorf("seed %d: %s, differs %v: got put %v, want equal", seed, key, !put[key], put[key])
			}
		}
		for key := range live {
			if _, stays := next[key]; stays == gone[key] {
				t.Errorf("seed %d: %s, stays %v: got deleted %v, want the opposite", seed, key, stays, gone[key])
			}
		}
	}
}

// If only the headers of a route changed, its objects are put again, and no others.
func TestPlanOfOtherHeaders(t *testing.T) {
	next := siteOf(t, objectsOf(50, ""))
	for _, route := range []routes.ID{routes.Details, routes.Leaderboard, routes.Manifest, routes.Root} {
		live := siteOf(t, objectsOf(50, ""), func(r *site.Root) {
			r.HeaderRules = site.Config{}.HeaderRules()
			r.HeaderRules[site.RouteBy(route).Pattern] = site.Sum(nil)
		})
		p := planOf(t, live, next)
		want := map[routes.ID]int{routes.Details: 50, routes.Leaderboard: 2}[route]
		if p.put != want || p.manifests != map[routes.ID]int{routes.Manifest: 16}[route] || p.deletes.Records > 0 {
			t.Errorf("%s: got %d objects, %d manifest shards, %d deletes, want those of the route", site.RouteBy(route).Pattern, p.put, p.manifests, p.deletes.Records)
		}
	}
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

// Batches hold every object once, in order, within their bounds. Each names the shards of its objects,
// which end once, in order, after their batches have begun.
func TestBatches(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for round := range 100 {
		p := newPlan(spool.New(slog.New(slog.DiscardHandler), spool.Memory), true)
		var all []site.Key
		shards := random.IntN(20)
		for i := range shards {
			name := string(rune('a' + i))
			p.shard(name)
			for j := range random.IntN(800) * random.IntN(3) {
				key := site.Key(fmt.Sprintf("%s/%d", name, j))
				p.add(site.Config{}, name, site.Change{Entry: site.Entry{Key: key, Size: int64(random.IntN(20_000))}, Reason: site.Altered})
				all = append(all, key)
			}
		}
		transfer := &transfer{packs: round%2 == 0}
		begun, ended := make([]int, shards), 0
		var got []site.Key
		batches := transfer.batches(p, func(i int) {
			if begun[i]++; i < ended {
				t.Fatalf("shard %d: got a batch after its end", i)
			}
		}, func(i int) {
			if i != ended {
				t.Fatalf("shards: got the end of %d, want that of %d", i, ended)
			}
			ended++
		})
		named := make([]int, shards)
		for batch, err := range batches {
			if err != nil {
				t.Fatal(err)
			}
			holds := map[int]bool{}
			for _, e := range batch.entries {
				holds[int(rune(e.Key[0])-'a')] = true
				got = append(got, e.Key)
			}
			if n := len(batch.entries); n > packObjects || n > 1 && (!transfer.packs || sizeOf(batch.entries) > packBytes) {
				t.Fatalf("batch: got %d entries, %d bytes, want what fits into one", n, sizeOf(batch.entries))
			}
			for _, i := range batch.shards {
				named[i]++
				delete(holds, i)
			}
			if len(holds) > 0 {
				t.Fatalf("shards of a batch: got others, want %v as its entries", holds)
			}
		}
		if !slices.Equal(got, all) || !slices.Equal(named, begun) || ended != shards {
			t.Fatal("entries or shards got lost")
		}
	}
}

// Under the API efp too, what refers to other objects is put after them.
func TestStages(t *testing.T) {
	c, err := site.AllFeatures().WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	address := site.UnknownAddress
	for want, keys := range map[string][]site.Key{
		"objects": {c.UserObjectKey(address, site.Details), c.ListKey("1", site.PageFollowing), c.StatsKey(), site.UnknownKey(site.Badges), site.OpenAPIKey},
		"searches": {site.SearchShardKey("1", 0), site.ListHeadKey("1"), site.FollowerShardKey(address, 3), site.FollowerHeadKey(address),
			site.RankedShardKey(0), site.RecommendedShardKey(0), site.NotificationsKey(address, 1), site.ActivityKey("1", 1)},
		"buckets": {site.UserBucketKey("0"), site.TokenBucketKey("0"), site.RankedOrderKey("top8", 0), site.NotificationsKey(address, 0), site.ActivityKey("1", 0)},
		"boards":  {c.LeaderboardKey(site.Mutes), site.LeaderboardLimitKey(site.Blocks, 3), c.RankedKey(), c.DiscoverKey(), site.DiscoverShardKey, site.RecentKey},
	} {
		for _, key := range keys {
			p := newPlan(spool.New(slog.New(slog.DiscardHandler), spool.Memory), true)
			p.add(c, "0", site.Change{Entry: site.Entry{Key: key}, Reason: site.Added})
			s := p.shards[0]
			got := map[string]int{"objects": p.objects.Records, "searches": p.searches.Records, "buckets": p.buckets.Records, "boards": p.boards.Records}
			if got[want] != 1 || s.newEntryPoint != (want != "objects") {
				t.Errorf("%s: got %v, an entry point %v, want it among %s", key, got, s.newEntryPoint, want)
			}
		}
	}
	lists := searchLists([]site.Entry{{Key: site.SearchShardKey("7", 0)}, {Key: site.ListHeadKey("7")}, {Key: site.SearchShardKey("7", 10)}, {Key: site.SearchShardKey("7", 2)}})
	if len(lists) != 1 || lists[0][3].Key != site.SearchShardKey("7", 0) {
		t.Errorf("shards and head of a list: got %v, want the first shard last", lists)
	}
}

// Sites whose manifests have different numbers of shards are compared shard by shard, too.
func TestPlanBetweenNumbersOfShards(t *testing.T) {
	for _, digits := range [][2]int{{1, 3}, {3, 1}, {2, 3}, {3, 2}} {
		with := func(digits int) func(*site.Root) { return func(r *site.Root) { r.ShardDigits = digits } }
		before, after := objectsOf(400, ""), objectsOf(400, "")
		for i := range 40 {
			delete(after, listKey(i*3, site.Badges))
			delete(before, listKey(i*5, site.Details))
			after[listKey(i*7, site.Records)] = "other"
		}
		live, next := siteOf(t, before, with(digits[0])), siteOf(t, after, with(digits[1]))
		p := planOf(t, live, next)
		want, gone := 0, 0
		was, is := live.Root(t), next.Root(t)
		for _, name := range shards.Names(&was) {
			if !shards.Has(&is, name) { // an index may have the name of an old shard
				gone++
			}
		}
		for key, body := range after {
			if before[key] != body {
				want++
			}
		}
		for key := range before {
			if _, stays := after[key]; !stays {
				gone++
			}
		}
		if p.put != want || p.deletes.Records != gone || p.manifests != len(shards.Names(&is)) || len(planned(t, p.objects)) != p.objects.Records {
			t.Errorf("%v digits: got %d objects, %d deletes, %d manifest shards and indexes, want %d, %d and all", digits, p.put, p.deletes.Records, p.manifests, want, gone)
		}
		if !slices.IsSortedFunc(p.shards, func(a, b shardPlan) int { return strings.Compare(a.shard, b.shard) }) {
			t.Error("shards: got another order, want that of their names")
		}
	}
}
