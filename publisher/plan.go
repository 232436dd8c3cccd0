package publisher

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A plan is what turns the bucket into the site.
type plan struct {
	shards        []shardPlan
	searches      []site.Entry // search shards: each says how many its list has
	users         []site.Entry // buckets of users: they lead to lists
	boards        []site.Entry // leaderboards: they lead to everything
	manifestsLast bool         // manifest shards with new ones of these wait for them: the live root leads readers there
	deletes       []site.Key   // to be deleted when nothing leads to them any more
	added         int          // of what is put
}

// A shardPlan is the part of a shard of the manifest.
type shardPlan struct {
	shard         string
	put           []site.Entry
	manifest      bool // whether the shard itself is put
	newEntryPoint bool // whether it names a search shard, bucket or leaderboard that was not there
}

// entries are all objects to be put, without manifest and root, in several parts.
func (p *plan) entries() [][]site.Entry {
	parts := make([][]site.Entry, 0, len(p.shards)+3)
	for _, s := range p.shards {
		parts = append(parts, s.put)
	}
	return append(parts, p.searches, p.users, p.boards)
}

// objects are their number and their bytes.
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

func (p *plan) manifests() int {
	n := 0
	for _, s := range p.shards {
		if s.manifest {
			n++
		}
	}
	return n
}

// changed names what the plan puts and deletes, if that is not more than a number.
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

// errInconsistent says that the bucket does not hold what its root says.
var errInconsistent = errors.New("the bucket's manifest is not the one that its root names")

// planner compares manifests: it reads no object.
type planner struct {
	source      *source
	bucket      *retryingBucket
	live        *site.Root // nil if there is no site yet
	concurrency int
}

// plan finds what differs by the manifests alone. It gives errInconsistent if they
// cannot be trusted.
func (p *planner) plan(ctx context.Context) (*plan, error) {
	shards := site.HashPrefixes(p.source.root.ShardDigits)
	changes := make([][]site.Change, len(shards))
	before, gone, err := p.liveShards(ctx)
	if err != nil {
		return nil, err
	}
	stale := p.staleRoutes()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(min(p.concurrency, maxPlanners))
	for i, shard := range shards {
		group.Go(func() (err error) {
			changes[i], err = p.shardChanges(ctx, shard, before, stale)
			return err
		})
	}
	if err := group.Wait(); err != nil {
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

// maxPlanners bounds the manifest shards in memory: a shard has some thousand entries.
const maxPlanners = 16

// add puts a change where it belongs.
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
		case site.RouteSearchShard:
			stage = &p.searches
		case site.RouteUserBucket:
			stage = &p.users
		case site.RouteLeaderboard, site.RouteLeaderboardLimit:
			stage = &p.boards
		}
	}
	*stage = append(*stage, change.Entry)
	s.newEntryPoint = s.newEntryPoint || stage != &s.put && change.Reason == site.Added
}

// liveShards reads the bucket's whole manifest where the two sites cut theirs into
// other numbers of shards; nil means that shards can be compared one by one. gone are
// the old shards then.
func (p *planner) liveShards(ctx context.Context) (before map[string][]site.Entry, gone []site.Key, err error) {
	if p.live == nil || p.live.ShardDigits == p.source.root.ShardDigits {
		return nil, nil, nil
	}
	shards := slices.Sorted(maps.Keys(p.live.Manifest))
	entries := make([][]site.Entry, len(shards))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(min(p.concurrency, maxPlanners))
	for i, shard := range shards {
		gone = append(gone, site.ManifestKey(shard))
		group.Go(func() (err error) {
			entries[i], err = readLiveShard(ctx, p.bucket, p.live, shard)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	before = map[string][]site.Entry{}
	for _, of := range entries {
		for _, e := range of {
			shard := site.ManifestShard(e.Key, p.source.root.ShardDigits)
			before[shard] = append(before[shard], e)
		}
	}
	for _, of := range before {
		slices.SortFunc(of, func(a, b site.Entry) int { return cmp.Compare(a.Key, b.Key) })
	}
	return before, gone, nil
}

// shardChanges are the changes of one shard; what only gets other headers is altered.
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

// staleRoutes are the routes whose objects have other headers in the bucket.
func (p *planner) staleRoutes() map[site.RouteID]bool {
	stale := map[site.RouteID]bool{}
	if p.live == nil {
		return stale
	}
	for _, route := range site.Routes() {
		if p.live.HeaderRules[route.Pattern] != p.source.root.HeaderRules[route.Pattern] {
			stale[route.ID] = true
		}
	}
	return stale
}

// readLiveShard reads a shard of the bucket's manifest; errInconsistent if it is not
// the one that the root names.
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
