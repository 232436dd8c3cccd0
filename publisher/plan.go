package publisher

import (
	"context"
	"errors"
	"hash/fnv"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/followpress/followpress/internal/inorder"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/storage"
)

// A plan lists the changes that make the bucket equal to the site. Entry points are the objects
// that refer to others: search shards, buckets of users and lists, and leaderboards. They are put
// after what they refer to. What it says of single objects is in a scratch.
type plan struct {
	scratch       *scratch
	shards        []shardPlan // by name; only those with something to put
	objects       *spool      // entries to put, without entry points, in the order of shards
	searches      *spool      // entries of shards of long lists, and their heads, each of which contains the number of entries; see searchPart
	buckets       *spool      // buckets, which refer to lists and to shards; orders of ranked accounts, which refer to shards
	boards        *spool      // leaderboards and the explorer's page; they refer to everything
	deletes       *spool      // keys, deleted once nothing refers to them any more
	manifestsLast bool        // put manifest shards that name a new entry point last, because the live root leads readers to them

	put       int   // number of objects to put, without manifest and root
	bytes     int64 // of those
	added     int   // of those, the ones that the bucket does not have
	manifests int   // number of manifest shards to put

	fixed []site.Entry // to put, and new, of routes with one object: others may have one with that key
}

// A shardPlan summarizes the changes of one manifest shard.
type shardPlan struct {
	shard         string
	objects       int  // to put, without entry points
	manifest      bool // whether to put the manifest shard itself
	newEntryPoint bool // whether the shard names an entry point that the bucket does not have
}

func newPlan(s *scratch, manifestsLast bool) *plan {
	return &plan{scratch: s, objects: s.spool(1), searches: s.spool(searchParts), buckets: s.spool(1), boards: s.spool(1),
		deletes: s.spool(1), manifestsLast: manifestsLast}
}

// searchParts is the number of parts of plan.searches. Shards of one list are in one part, so that a
// few parts at a time can be sorted.
const searchParts = 64

func searchPart(key site.Key) int {
	list := fnv.New32a()
	_, _ = list.Write([]byte(path.Dir(string(key)))) // never fails
	return int(list.Sum32() % searchParts)
}

// close frees what the plan keeps on disk.
func (p *plan) close() { p.scratch.close() }

func (p *plan) isEmpty() bool { return p.put+p.manifests+p.deletes.records == 0 }

// changed names the objects that the plan puts and deletes, if there are at most that many.
func (p *plan) changed(most int) (Changed, error) {
	if p.put+p.manifests+p.deletes.records > most {
		return Changed{Unknown: true}, nil
	}
	var keys []site.Key
	for _, s := range []*spool{p.objects, p.searches, p.buckets, p.boards} {
		for part := range s.parts {
			for e, err := range s.entries(part) {
				if err != nil {
					return Changed{}, err
				}
				keys = append(keys, e.Key)
			}
		}
	}
	for key, err := range p.deletes.keys(0) {
		if err != nil {
			return Changed{}, err
		}
		keys = append(keys, key)
	}
	for _, s := range p.shards {
		if s.manifest {
			keys = append(keys, site.ManifestKey(s.shard))
		}
	}
	return Changed{Keys: keys}, nil
}

// shard returns the plan of a manifest shard. Shards come in their order.
func (p *plan) shard(name string) *shardPlan {
	if n := len(p.shards); n == 0 || p.shards[n-1].shard != name {
		p.shards = append(p.shards, shardPlan{shard: name})
	}
	return &p.shards[len(p.shards)-1]
}

func (p *plan) addManifest(shard string) {
	p.shard(shard).manifest = true
	p.manifests++
}

func (p *plan) addDelete(key site.Key) { p.deletes.add(0, []byte(key)) }

// add files a change of a manifest shard under its stage: the objects of the shard, an entry point, or the
// deletes. Changes come in the order of shards.
func (p *plan) add(c site.Config, shard string, change site.Change) {
	if change.Reason == site.Gone {
		p.addDelete(change.Key)
		return
	}
	s := p.shard(shard)
	p.put++
	p.bytes += change.Size
	if change.Reason == site.Added {
		p.added++
		if route, ok := c.RouteOf(change.Key); ok && !strings.Contains(route.Pattern, "{") {
			p.fixed = append(p.fixed, change.Entry)
		}
	}
	stage, part := p.stageOf(c, change.Key)
	stage.addEntry(part, change.Entry)
	if stage == p.objects {
		s.objects++
	} else if change.Reason == site.Added {
		s.newEntryPoint = true
	}
}

// stageOf returns where an object to put belongs.
func (p *plan) stageOf(c site.Config, key site.Key) (stage *spool, part int) {
	if route, _ := c.RouteOf(key); route != nil {
		switch route.ID {
		case routes.SearchShard, routes.ListHead, routes.FollowersShard, routes.FollowersHead,
			routes.RankedShard, routes.RecommendedShard:
			return p.searches, searchPart(key)
		case routes.UserBucket, routes.TokenBucket, routes.RankedOrder:
			return p.buckets, 0
		case routes.Leaderboard, routes.LeaderboardLimit, routes.Ranked, routes.RankedCount,
			routes.Discover, routes.DiscoverShard,
			routes.Index, routes.Explorer, routes.ExplorerWorker, routes.Top:
			return p.boards, 0
		}
	}
	return p.objects, 0
}

var errInconsistent = errors.New("the bucket's manifest is not the one that its root names")

// A planner makes plans, from manifests or from a survey.
type planner struct {
	source *source
	bucket *retryingBucket
	live   *site.Root // nil if the bucket has no site yet
}

// plan compares the manifests of site and bucket, shard by shard. It returns errInconsistent if the
// bucket's cannot be trusted.
func (p *planner) plan(ctx context.Context) (*plan, error) {
	result := newPlan(newScratch(p.bucket.log, p.bucket.memory), p.live != nil)
	digits := p.source.root.ShardDigits
	next := storage.NewManifestReader(digits, p.source.shard)
	live := storage.NewManifestReader(digits, func(context.Context, string) ([]site.Entry, error) { return nil, nil })
	if p.live != nil {
		live = storage.NewManifestReader(p.live.ShardDigits, func(ctx context.Context, shard string) ([]site.Entry, error) {
			return readLiveShard(ctx, p.bucket, p.live, shard)
		})
		if live.Digits() != digits {
			for _, shard := range slices.Sorted(maps.Keys(p.live.Manifest)) {
				result.addDelete(site.ManifestKey(shard))
			}
		}
	}
	stale := p.staleRoutes()
	parts := site.HashPrefixes(max(live.Digits(), next.Digits()))
	type partChanges struct {
		part    string
		changes []site.Change
	}
	err := inorder.Each(ctx, min(p.bucket.concurrency, maxPlanners), len(parts), func(ctx context.Context, i int) (partChanges, error) {
		changes, err := p.changes(ctx, parts[i], live, next, stale)
		return partChanges{parts[i], changes}, err
	}, func(c partChanges) error {
		shard := c.part[:digits]
		for _, change := range c.changes {
			result.add(p.source.root.Config, shard, change)
		}
		differs := p.live == nil || p.live.Manifest[shard] != p.source.root.Manifest[shard] || stale[routes.Manifest]
		if last := strings.Trim(c.part[digits:], "f") == ""; last && differs {
			result.addManifest(shard)
		}
		return nil
	})
	if err != nil {
		result.close()
		return nil, err
	}
	return result, nil
}

// maxPlanners bounds the manifest shards in memory, each of some thousand entries.
const maxPlanners = 16

// changes returns the changes of a part of the manifest: of the objects whose keys have hashes with
// that prefix. An object that only gets other headers counts as altered.
func (p *planner) changes(ctx context.Context, part string, live, next *storage.ManifestReader, stale map[routes.ID]bool) ([]site.Change, error) {
	same := p.live != nil && live.Digits() == next.Digits() && p.live.Manifest[part] == p.source.root.Manifest[part]
	if same && len(stale) == 0 {
		return nil, nil
	}
	after, err := next.Entries(ctx, part)
	if err != nil {
		return nil, err
	}
	before := after
	if !same {
		if before, err = live.Entries(ctx, part); err != nil {
			return nil, err
		}
	}
	changes := site.Diff(before, after)
	if len(stale) > 0 {
		changes = p.withStaleHeaders(changes, after, stale)
	}
	return changes, nil
}

// withStaleHeaders adds the objects of routes whose headers have changed.
func (p *planner) withStaleHeaders(changes []site.Change, next []site.Entry, stale map[routes.ID]bool) []site.Change {
	changed := make(map[site.Key]bool, len(changes))
	for _, c := range changes {
		changed[c.Key] = true
	}
	for _, e := range next {
		if route, ok := p.source.root.Config.RouteOf(e.Key); ok && stale[route.ID] && !changed[e.Key] {
			changes = append(changes, site.Change{Entry: e, Reason: site.Altered})
		}
	}
	return changes
}

// staleRoutes returns the routes whose objects have other headers in the bucket.
func (p *planner) staleRoutes() map[routes.ID]bool {
	stale := map[routes.ID]bool{}
	if p.live == nil {
		return stale
	}
	for _, route := range p.source.root.Config.Routes() {
		if p.live.HeaderRules[route.Pattern] != p.source.root.HeaderRules[route.Pattern] {
			stale[route.ID] = true
		}
	}
	return stale
}

// readLiveShard reads a shard of the bucket's manifest. It returns errInconsistent if the shard
// is missing or not the one that the root names.
func readLiveShard(ctx context.Context, bucket *retryingBucket, live *site.Root, shard string) ([]site.Entry, error) {
	body, _, err := bucket.read(ctx, site.ManifestKey(shard))
	if errors.Is(err, storage.ErrNotFound) {
		return nil, errInconsistent
	} else if err != nil {
		return nil, err
	}
	if site.Sum(body) != live.Manifest[shard] {
		return nil, errInconsistent
	}
	m, err := site.ParseManifest(shard, body)
	if err != nil {
		return nil, errInconsistent
	}
	return m.Objects, nil
}
