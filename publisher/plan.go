package publisher

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A plan lists the changes that make the bucket equal to the site. Entry points are the objects
// that refer to others: search shards, buckets of users and lists, and leaderboards. They are put
// after what they refer to.
type plan struct {
	shards        []shardPlan
	searches      []site.Entry // shards of long lists, and their heads; each contains the number of entries
	buckets       []site.Entry // buckets, which refer to lists and to shards; orders of ranked accounts, which refer to shards
	boards        []site.Entry // leaderboards; they refer to everything
	manifestsLast bool         // put manifest shards that name a new entry point last, because the live root leads readers to them
	deletes       []site.Key   // deleted once nothing refers to them any more
	added         int          // objects to put that the bucket does not have
}

// A shardPlan lists the changes of one manifest shard.
type shardPlan struct {
	shard         string
	put           []site.Entry // without entry points
	manifest      bool         // whether to put the manifest shard itself
	newEntryPoint bool         // whether the shard names an entry point that the bucket does not have
}

// entries returns all objects to put, in several parts, without manifest and root.
func (p *plan) entries() [][]site.Entry {
	parts := make([][]site.Entry, 0, len(p.shards)+3)
	for _, s := range p.shards {
		parts = append(parts, s.put)
	}
	return append(parts, p.searches, p.buckets, p.boards)
}

// objects returns the number and bytes of all objects to put, without manifest and root.
func (p *plan) objects() (n int, bytes int64) {
	for _, entries := range p.entries() {
		n += len(entries)
		for _, e := range entries {
			bytes += e.Size
		}
	}
	return n, bytes
}

// isEmpty reports whether there is nothing to do.
func (p *plan) isEmpty() bool {
	n, _ := p.objects()
	return n+p.manifests()+len(p.deletes) == 0
}

// manifests is the number of manifest shards to put.
func (p *plan) manifests() int {
	n := 0
	for _, s := range p.shards {
		if s.manifest {
			n++
		}
	}
	return n
}

// changed names the objects that the plan puts and deletes, if there are at most that many.
func (p *plan) changed(most int) Changed {
	objects, _ := p.objects()
	if objects+p.manifests()+len(p.deletes) > most {
		return Changed{Unknown: true}
	}
	keys := slices.Clone(p.deletes)
	for _, entries := range p.entries() {
		keys = append(keys, keysOf(entries)...)
	}
	for _, s := range p.shards {
		if s.manifest {
			keys = append(keys, site.ManifestKey(s.shard))
		}
	}
	return Changed{Keys: keys}
}

// errInconsistent says that the bucket differs from its root.
var errInconsistent = errors.New("the bucket's manifest is not the one that its root names")

// A planner makes plans, from manifests or from a survey.
type planner struct {
	source      *source
	bucket      *retryingBucket
	live        *site.Root // nil if the bucket has no site yet
	concurrency int
}

// plan compares the manifests of site and bucket. It returns errInconsistent if the bucket's
// cannot be trusted.
func (p *planner) plan(ctx context.Context) (*plan, error) {
	shards := site.HashPrefixes(p.source.root.ShardDigits)
	changes := make([][]site.Change, len(shards))
	before, gone, err := p.liveShards(ctx)
	if err != nil {
		return nil, err
	}
	stale := p.staleRoutes()
	err = parallel(ctx, min(p.concurrency, maxPlanners), len(shards), func(ctx context.Context, i int) (err error) {
		changes[i], err = p.shardChanges(ctx, shards[i], before, stale)
		return err
	})
	if err != nil {
		return nil, err
	}
	result := &plan{deletes: gone, manifestsLast: p.live != nil}
	for i, shard := range shards {
		s := shardPlan{shard: shard, manifest: p.live == nil || p.live.Manifest[shard] != p.source.root.Manifest[shard] ||
			stale[site.RouteManifest]}
		for _, c := range changes[i] {
			result.add(p.source.root.Config, &s, c)
		}
		if s.manifest || len(s.put) > 0 {
			result.shards = append(result.shards, s)
		}
	}
	return result, nil
}

// maxPlanners bounds the manifest shards in memory, each of some thousand entries.
const maxPlanners = 16

// add files a change under its stage: its shard, an entry point, or the deletes.
func (p *plan) add(c site.Config, s *shardPlan, change site.Change) {
	switch change.Reason {
	case site.Gone:
		p.deletes = append(p.deletes, change.Key)
		return
	case site.Added:
		p.added++
	}
	stage := &s.put
	if route, _ := c.RouteOf(change.Key); route != nil {
		switch route.ID {
		case site.RouteSearchShard, site.RouteListHead, site.RouteFollowersShard, site.RouteFollowersHead,
			site.RouteRankedShard, site.RouteRecommendedShard:
			stage = &p.searches
		case site.RouteUserBucket, site.RouteTokenBucket, site.RouteRankedOrder:
			stage = &p.buckets
		case site.RouteLeaderboard, site.RouteLeaderboardLimit, site.RouteRanked, site.RouteRankedCount,
			site.RouteDiscover, site.RouteDiscoverShard:
			stage = &p.boards
		}
	}
	*stage = append(*stage, change.Entry)
	s.newEntryPoint = s.newEntryPoint || stage != &s.put && change.Reason == site.Added
}

// liveShards is for sites whose manifests have different numbers of shards. It reads the whole
// manifest of the bucket and returns its entries by the shards of the next one, and the keys of
// the old manifest shards as gone. It returns nil if the numbers are equal: then shards are
// compared one by one.
func (p *planner) liveShards(ctx context.Context) (before map[string][]site.Entry, gone []site.Key, err error) {
	if p.live == nil || p.live.ShardDigits == p.source.root.ShardDigits {
		return nil, nil, nil
	}
	shards := slices.Sorted(maps.Keys(p.live.Manifest))
	entries := make([][]site.Entry, len(shards))
	err = parallel(ctx, min(p.concurrency, maxPlanners), len(shards), func(ctx context.Context, i int) (err error) {
		entries[i], err = readLiveShard(ctx, p.bucket, p.live, shards[i])
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	for _, shard := range shards {
		gone = append(gone, site.ManifestKey(shard))
	}
	before = map[string][]site.Entry{}
	for _, e := range slices.Concat(entries...) {
		shard := site.ManifestShard(e.Key, p.source.root.ShardDigits)
		before[shard] = append(before[shard], e)
	}
	for _, of := range before {
		slices.SortFunc(of, func(a, b site.Entry) int { return cmp.Compare(a.Key, b.Key) })
	}
	return before, gone, nil
}

// shardChanges returns the changes of one shard. An object that only gets other headers counts
// as altered.
func (p *planner) shardChanges(ctx context.Context, shard string, before map[string][]site.Entry, stale map[site.RouteID]bool) ([]site.Change, error) {
	same := p.live != nil && before == nil && p.live.Manifest[shard] == p.source.root.Manifest[shard]
	if same && len(stale) == 0 {
		return nil, nil
	}
	next, err := p.source.shard(ctx, shard)
	if err != nil {
		return nil, err
	}
	live := next
	switch {
	case p.live == nil:
		live = nil
	case before != nil:
		live = before[shard]
	case !same:
		if live, err = readLiveShard(ctx, p.bucket, p.live, shard); err != nil {
			return nil, err
		}
	}
	changes := site.Diff(live, next)
	if len(stale) > 0 {
		changes = p.withStaleHeaders(changes, next, stale)
	}
	return changes, nil
}

// withStaleHeaders adds the objects of routes whose headers have changed.
func (p *planner) withStaleHeaders(changes []site.Change, next []site.Entry, stale map[site.RouteID]bool) []site.Change {
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
func (p *planner) staleRoutes() map[site.RouteID]bool {
	stale := map[site.RouteID]bool{}
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
