package publisher

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/followpress/followpress/internal/inorder"
	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/publisher/internal/spool"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/site/shards"
	"github.com/followpress/followpress/storage"
)

// A plan lists the changes that make the bucket equal to the site. Entry points are the objects
// that refer to others: search shards, buckets of users and lists, and leaderboards. They are put
// after what they refer to. What it says of single objects is in a scratch.
type plan struct {
	scratch       *spool.Scratch
	shards        []shardPlan // of the manifest, by name; only those with something to put
	deltas        []deltaPlan
	indexes       []string     // of the manifest, by name
	objects       *spool.Spool // entries to put, without entry points, in the order of shards
	searches      *spool.Spool // entries of shards of long lists, and their heads, each of which contains the number of entries; see searchPart
	buckets       *spool.Spool // buckets, which refer to lists and to shards; the newest operations, which refer to older ones; orders of ranked accounts, which refer to shards
	boards        *spool.Spool // leaderboards and the explorer's page; they refer to everything
	deletes       *spool.Spool // keys, deleted once nothing refers to them any more
	manifestsLast bool         // put manifest shards that name a new entry point last, because the live root leads readers to them
	announced     bool         // put all of the manifest last: until then, readers check by the live one what was not replaced yet

	put       int   // number of objects to put, without manifest and root
	bytes     int64 // of those
	added     int   // of those, the ones that the bucket does not have
	manifests int   // number of manifest shards, deltas and indexes to put

	fixed []site.Entry // to put, and new, of routes with one object: others may have one with that key
}

// A shardPlan summarizes the changes of one manifest shard.
type shardPlan struct {
	shard         string
	objects       int  // to put, without entry points
	manifest      bool // whether to put the manifest shard itself
	newEntryPoint bool // whether the shard names an entry point that the bucket does not have
}

// A deltaPlan is a delta of the manifest to put.
type deltaPlan struct {
	key  site.Key
	body []byte
}

func newPlan(s *spool.Scratch, manifestsLast bool) *plan {
	return &plan{scratch: s, objects: s.List(1), searches: s.List(searchParts), buckets: s.List(1), boards: s.List(1),
		deletes: s.List(1), manifestsLast: manifestsLast}
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
func (p *plan) close() { p.scratch.Close() }

func (p *plan) isEmpty() bool { return p.put+p.manifests+p.deletes.Records == 0 }

// changed names the objects that the plan puts and deletes, if there are at most that many.
func (p *plan) changed(most int) (Changed, error) {
	if p.put+p.manifests+p.deletes.Records > most {
		return Changed{Unknown: true}, nil
	}
	var keys []site.Key
	for _, s := range []*spool.Spool{p.objects, p.searches, p.buckets, p.boards} {
		for part := range s.Parts {
			for e, err := range s.Entries(part) {
				if err != nil {
					return Changed{}, err
				}
				keys = append(keys, e.Key)
			}
		}
	}
	for key, err := range p.deletes.Keys(0) {
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
	for _, d := range p.deltas {
		keys = append(keys, d.key)
	}
	for _, name := range p.indexes {
		keys = append(keys, site.ManifestKey(name))
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

func (p *plan) addDelta(key site.Key, body []byte) {
	p.deltas = append(p.deltas, deltaPlan{key, body})
	p.manifests++
}

func (p *plan) addIndex(name string) {
	p.indexes = append(p.indexes, name)
	p.manifests++
}

func (p *plan) addDelete(key site.Key) { p.deletes.Add(0, []byte(key)) }

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
	stage.AddEntry(part, change.Entry)
	if stage == p.objects {
		s.objects++
	} else if change.Reason == site.Added {
		s.newEntryPoint = true
	}
}

// stageOf returns where an object to put belongs.
func (p *plan) stageOf(c site.Config, key site.Key) (stage *spool.Spool, part int) {
	if route, _ := c.RouteOf(key); route != nil {
		switch route.ID {
		case routes.SearchShard, routes.ListHead, routes.FollowersShard, routes.FollowersHead,
			routes.RankedShard, routes.RecommendedShard, routes.OlderNotifications, routes.OlderActivity:
			return p.searches, searchPart(key)
		case routes.UserBucket, routes.TokenBucket, routes.RankedOrder, routes.NotificationsShard, routes.ActivityShard:
			return p.buckets, 0
		case routes.Leaderboard, routes.LeaderboardLimit, routes.Ranked, routes.RankedCount,
			routes.Discover, routes.DiscoverShard,
			routes.Index, routes.Explorer, routes.ExplorerWorker, routes.Top, routes.Recent:
			return p.boards, 0
		}
	}
	return p.objects, 0
}

var errInconsistent = errors.New("the bucket's manifest is not the one that its root names")

// A planner makes plans, from manifests or from a survey.
type planner struct {
	source *source
	bucket *requests.Bucket
	live   *site.Root // nil if the bucket has no site yet

	maxDelta   int       // of the text of a delta, in bytes
	memory     int       // of a scratch
	refreshers note.Keys // see Options

	next, was *shards.Reader // of both manifests; was is nil if the bucket has no site yet
	stale     map[routes.ID]bool

	mu     sync.Mutex
	deltas map[string]bool // the first shards of groups with a delta in the bucket, as far as they were noticed; under mu
}

// plan compares the manifests of site and bucket, shard by shard. It returns errInconsistent if the
// bucket's cannot be trusted.
func (p *planner) plan(ctx context.Context) (result *plan, err error) {
	if p.next, err = p.source.manifest(ctx); err != nil {
		return nil, err
	}
	if p.live != nil {
		if p.was, err = openLiveManifest(ctx, p.bucket, p.live); err != nil {
			return nil, err
		}
	}
	p.stale, p.deltas = p.staleRoutes(), map[string]bool{}
	result = newPlan(spool.New(p.bucket.Log, p.memory), p.live != nil)
	if p.isResharded() {
		err = p.planResharded(ctx, result)
	} else {
		err = p.planShards(ctx, result)
	}
	if err == nil {
		err = p.planIndexes(result)
	}
	if err != nil {
		result.close()
		return nil, err
	}
	return result, nil
}

// isResharded reports whether the manifest in the bucket has other shards.
func (p *planner) isResharded() bool {
	return p.live != nil && p.live.ShardDigits != p.source.root.ShardDigits
}

// planIndexes plans the indexes that differ.
func (p *planner) planIndexes(result *plan) error {
	for _, name := range shards.Indexes(&p.source.root) {
		differs := p.live == nil || p.isResharded() || p.live.Manifest[name] != p.source.root.Manifest[name]
		if !differs {
			if _, err := p.was.Index(name); err != nil {
				return errInconsistent
			}
		}
		if differs || p.stale[routes.Manifest] {
			result.addIndex(name)
		}
	}
	return nil
}

// A shardChanges says how a shard of the manifest differs.
type shardChanges struct {
	shard   string
	differs bool // whether the shard does, besides its objects
	changes []site.Change
	patch   shards.Patch  // from what the bucket has stored as the shard
	delta   *shards.Delta // that the bucket has; nil if there is none
}

// planShards compares manifests with equally many shards, or makes the plan of a first publish.
func (p *planner) planShards(ctx context.Context, result *plan) error {
	names := site.HashPrefixes(p.source.root.ShardDigits)
	var group []shardChanges
	return inorder.Each(ctx, min(p.bucket.Concurrency, maxPlanners), len(names), func(ctx context.Context, i int) (shardChanges, error) {
		return p.compareShard(ctx, names[i])
	}, func(c shardChanges) error {
		if len(group) > 0 && shards.Group(group[0].shard) != shards.Group(c.shard) {
			p.planGroup(group, result)
			group = nil
		}
		if group = append(group, c); c.shard == names[len(names)-1] {
			p.planGroup(group, result)
		}
		return nil
	})
}

func (p *planner) compareShard(ctx context.Context, name string) (shardChanges, error) {
	c := shardChanges{shard: name}
	c.differs = p.was == nil || p.was.Digest(name) != p.next.Digest(name) || p.stale[routes.Manifest]
	if !c.differs && len(p.stale) == 0 {
		return c, nil
	}
	next, err := p.source.shard(ctx, name)
	if err != nil {
		return c, err
	}
	was := shards.Shard{Objects: next.Objects, Put: next.Objects}
	if p.was == nil {
		was = shards.Shard{}
	} else if c.differs {
		if was, err = p.was.Shard(ctx, name); err == nil {
			c.delta, _, err = p.was.Delta(ctx, name)
		}
		if errors.Is(err, shards.ErrDamaged) {
			return c, errInconsistent
		} else if err != nil {
			return c, err
		}
		c.patch = shards.NewPatch(name, was.Put, next.Objects, p.next.Digest(name))
	}
	c.changes = site.Diff(was.Objects, next.Objects)
	if len(p.stale) > 0 {
		c.changes = p.withStaleHeaders(c.changes, next.Objects, p.stale)
	}
	return c, nil
}

// planGroup plans the changes of the objects of a group of shards, and either the shards that differ or a delta.
func (p *planner) planGroup(group []shardChanges, result *plan) {
	first := shards.Group(group[0].shard)
	var was *shards.Delta
	differs := false
	for _, c := range group {
		differs = differs || c.differs
		if c.delta != nil {
			was = c.delta
		}
	}
	var text []byte // of the delta to put
	if differs && p.mayHaveDeltas() {
		text = p.deltaText(group, was)
	}
	again := differs && text == nil // whether shards are put
	for _, c := range group {
		for _, change := range c.changes {
			result.add(p.source.root.Config, c.shard, change)
		}
		if again && (c.differs || p.isPatched(c.shard, was)) {
			result.addManifest(c.shard)
		}
	}
	switch {
	case again && was != nil:
		result.addDelete(site.DeltaKey(first))
	case text != nil:
		result.addDelta(site.DeltaKey(first), shards.Pack(text))
	}
}

// mayHaveDeltas reports whether deltas may be put: not beside shards that are put anyway.
func (p *planner) mayHaveDeltas() bool {
	return p.was != nil && !p.stale[routes.Manifest] && !p.stale[routes.ManifestDelta]
}

// isPatched reports whether a delta that the bucket has changes a shard to what the live root names.
func (p *planner) isPatched(shard string, was *shards.Delta) bool {
	old := was.Patch(shard)
	return old != nil && old.SHA256 == p.was.Digest(shard)
}

// deltaText is the text of a delta of a group; nil if it would be empty, or larger than the shards should wait for.
func (p *planner) deltaText(group []shardChanges, was *shards.Delta) []byte {
	delta := p.delta(group, was)
	if len(delta.Shards) == 0 {
		return nil
	}
	if text := delta.Append(nil); len(text) <= p.maxDelta {
		return text
	}
	return nil
}

// delta is the delta of a group: what differs from the shards that the bucket has stored. The patches of other shards in
// its last delta stay, unless they are not those that the root names.
func (p *planner) delta(group []shardChanges, was *shards.Delta) shards.Delta {
	delta := shards.Delta{Name: shards.Group(group[0].shard)}
	for _, c := range group {
		if c.differs {
			if len(c.patch.Objects)+len(c.patch.Gone) > 0 {
				delta.Shards = append(delta.Shards, c.patch)
			}
		} else if p.isPatched(c.shard, was) {
			delta.Shards = append(delta.Shards, *was.Patch(c.shard))
		}
	}
	return delta
}

// planResharded compares manifests with differently many shards.
func (p *planner) planResharded(ctx context.Context, result *plan) error {
	digits := p.source.root.ShardDigits
	next := storage.NewManifestReader(digits, func(ctx context.Context, shard string) ([]site.Entry, error) {
		s, err := p.source.shard(ctx, shard)
		return s.Objects, err
	})
	live := storage.NewManifestReader(p.live.ShardDigits, func(ctx context.Context, shard string) ([]site.Entry, error) {
		s, err := p.was.Shard(ctx, shard)
		if errors.Is(err, shards.ErrDamaged) {
			return nil, errInconsistent
		}
		if s.Patched {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.deltas[shards.Group(shard)] = true
		}
		return s.Objects, err
	})
	parts := site.HashPrefixes(max(live.Digits(), next.Digits()))
	type partChanges struct {
		part    string
		changes []site.Change
	}
	err := inorder.Each(ctx, min(p.bucket.Concurrency, maxPlanners), len(parts), func(ctx context.Context, i int) (partChanges, error) {
		changes, err := p.changes(ctx, parts[i], live, next)
		return partChanges{parts[i], changes}, err
	}, func(c partChanges) error {
		shard := c.part[:digits]
		for _, change := range c.changes {
			result.add(p.source.root.Config, shard, change)
		}
		if strings.Trim(c.part[digits:], "f") == "" { // the last part of the shard
			result.addManifest(shard)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range shards.Names(p.live) {
		if !shards.Has(&p.source.root, name) {
			result.addDelete(site.ManifestKey(name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.deltas)) {
		result.addDelete(site.DeltaKey(name))
	}
	return nil
}

// maxPlanners bounds the manifest shards in memory, each of some thousand entries.
const maxPlanners = 16

// changes returns the changes of a part of the manifest: of the objects whose keys have hashes with
// that prefix. An object that only gets other headers counts as altered.
func (p *planner) changes(ctx context.Context, part string, live, next *storage.ManifestReader) ([]site.Change, error) {
	after, err := next.Entries(ctx, part)
	if err != nil {
		return nil, err
	}
	before, err := live.Entries(ctx, part)
	if err != nil {
		return nil, err
	}
	changes := site.Diff(before, after)
	if len(p.stale) > 0 {
		changes = p.withStaleHeaders(changes, after, p.stale)
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

// openLiveManifest opens the manifest of the site in the bucket.
func openLiveManifest(ctx context.Context, bucket *requests.Bucket, root *site.Root) (*shards.Reader, error) {
	return shards.Open(ctx, root, func(ctx context.Context, key site.Key) ([]byte, error) {
		body, _, err := bucket.Read(ctx, key)
		if errors.Is(err, storage.ErrTooLarge) {
			err = fmt.Errorf("%w: %w", err, shards.ErrDamaged)
		}
		return body, err
	})
}
