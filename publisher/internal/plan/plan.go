// Package plan computes the changes that make a bucket equal to a site, and their order, from the
// manifests of both or from a survey. It changes nothing.
package plan

import (
	"context"
	"errors"
	"hash/fnv"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/followpress/followpress/internal/inorder"
	"github.com/followpress/followpress/publisher/internal/lock"
	"github.com/followpress/followpress/publisher/internal/origin"
	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/publisher/internal/spool"
	"github.com/followpress/followpress/publisher/internal/survey"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/site/shards"
	"github.com/followpress/followpress/storage"
)

// A Plan lists the changes that make the bucket equal to the site. Entry points are the objects
// that refer to others: search shards, buckets of users and lists, and leaderboards. They are put
// after what they refer to. Per-object entries live in scratch, which spills to disk.
type Plan struct {
	scratch       *spool.Scratch
	Shards        []shardPlan // ordered by name; only those with something to put
	Deltas        []deltaPlan
	Indexes       []string     // ordered by name
	Objects       *spool.Spool // entries to put, without entry points, in the order of shards
	Searches      *spool.Spool // shards of long lists and their heads, each with the number of entries; see searchPart
	Buckets       *spool.Spool // buckets, which refer to lists and shards; newest operations, which refer to older ones; orders of ranked accounts, which refer to shards
	Boards        *spool.Spool // leaderboards and the explorer's page; they refer to everything
	Deletes       *spool.Spool // keys, deleted once nothing refers to them any more
	manifestsLast bool         // put manifest shards with a new entry point last, because the live root leads readers to them
	Announced     bool         // put the whole manifest last: until then, readers check objects not yet replaced against the live one

	Put       int   // number of objects to put, without manifest and root
	Bytes     int64 // bytes of these objects
	Added     int   // how many of these the bucket lacks
	Manifests int   // number of manifest shards, deltas and indexes to put

	Fixed []site.Entry // new objects of routes with one object: the bucket may have a foreign object with that key
}

// A shardPlan summarizes the changes of one manifest shard.
type shardPlan struct {
	Shard         string
	Objects       int  // number to put, without entry points
	Manifest      bool // whether to put the manifest shard itself
	newEntryPoint bool // whether the shard names an entry point that the bucket lacks
}

type deltaPlan struct {
	Key  site.Key
	Body []byte
}

// New returns an empty plan that keeps its entries in s. With manifestsLast, manifest shards with
// new entry points are put last.
func New(s *spool.Scratch, manifestsLast bool) *Plan {
	return &Plan{scratch: s, Objects: s.List(1), Searches: s.List(SearchParts), Buckets: s.List(1), Boards: s.List(1),
		Deletes: s.List(1), manifestsLast: manifestsLast}
}

// SearchParts is the number of parts of Plan.Searches. The shards of one list are in one part, so
// that a few parts at a time can be sorted.
const SearchParts = 64

func searchPart(key site.Key) int {
	list := fnv.New32a()
	_, _ = list.Write([]byte(path.Dir(string(key)))) // never fails
	return int(list.Sum32() % SearchParts)
}

// Close frees the plan's disk space.
func (p *Plan) Close() { p.scratch.Close() }

// IsEmpty reports whether the plan puts and deletes nothing.
func (p *Plan) IsEmpty() bool { return p.Put+p.Manifests+p.Deletes.Records == 0 }

// Changed returns the keys that the plan puts and deletes, or complete = false and no keys if there
// are more than most.
func (p *Plan) Changed(most int) (keys []site.Key, complete bool, err error) {
	if p.Put+p.Manifests+p.Deletes.Records > most {
		return nil, false, nil
	}
	for _, s := range []*spool.Spool{p.Objects, p.Searches, p.Buckets, p.Boards} {
		for part := range s.Parts {
			for e, err := range s.Entries(part) {
				if err != nil {
					return nil, false, err
				}
				keys = append(keys, e.Key)
			}
		}
	}
	for key, err := range p.Deletes.Keys(0) {
		if err != nil {
			return nil, false, err
		}
		keys = append(keys, key)
	}
	for _, d := range p.Deltas {
		keys = append(keys, d.Key)
	}
	for _, name := range p.ManifestNames() {
		keys = append(keys, site.ManifestKey(name))
	}
	return keys, true, nil
}

// Shard returns the plan of a manifest shard. Callers ask for shards in order.
func (p *Plan) Shard(name string) *shardPlan {
	if n := len(p.Shards); n == 0 || p.Shards[n-1].Shard != name {
		p.Shards = append(p.Shards, shardPlan{Shard: name})
	}
	return &p.Shards[len(p.Shards)-1]
}

func (p *Plan) addManifest(shard string) {
	p.Shard(shard).Manifest = true
	p.Manifests++
}

func (p *Plan) addDelta(key site.Key, body []byte) {
	p.Deltas = append(p.Deltas, deltaPlan{key, body})
	p.Manifests++
}

func (p *Plan) addIndex(name string) {
	p.Indexes = append(p.Indexes, name)
	p.Manifests++
}

func (p *Plan) addDelete(key site.Key) { p.Deletes.Add(0, []byte(key)) }

// Add files a change under its stage: the objects of the shard, an entry point, or the deletes.
// Changes come in the order of shards.
func (p *Plan) Add(c site.Config, shard string, change site.Change) {
	if change.Reason == site.Gone {
		p.addDelete(change.Key)
		return
	}
	s := p.Shard(shard)
	p.Put++
	p.Bytes += change.Size
	if change.Reason == site.Added {
		p.Added++
		if route, ok := c.RouteOf(change.Key); ok && !strings.Contains(route.Pattern, "{") {
			p.Fixed = append(p.Fixed, change.Entry)
		}
	}
	stage, part := p.stageOf(c, change.Key)
	stage.AddEntry(part, change.Entry)
	if stage == p.Objects {
		s.Objects++
	} else if change.Reason == site.Added {
		s.newEntryPoint = true
	}
}

// stageOf returns the spool, and its part, for an object to put.
func (p *Plan) stageOf(c site.Config, key site.Key) (stage *spool.Spool, part int) {
	if route, _ := c.RouteOf(key); route != nil {
		switch route.ID {
		case routes.SearchShard, routes.ListHead, routes.FollowersShard, routes.FollowersHead,
			routes.RankedShard, routes.RecommendedShard, routes.OlderNotifications, routes.OlderActivity:
			return p.Searches, searchPart(key)
		case routes.UserBucket, routes.TokenBucket, routes.RankedOrder, routes.NotificationsShard, routes.ActivityShard:
			return p.Buckets, 0
		case routes.Leaderboard, routes.LeaderboardLimit, routes.Ranked, routes.RankedCount,
			routes.Discover, routes.DiscoverShard,
			routes.Index, routes.Explorer, routes.ExplorerWorker, routes.Top, routes.Start, routes.PageTop, routes.Recent, routes.Active:
			return p.Boards, 0
		}
	}
	return p.Objects, 0
}

// ManifestNames returns the names of the shards and indexes that the plan puts.
func (p *Plan) ManifestNames() (names []string) {
	for _, s := range p.Shards {
		if s.Manifest {
			names = append(names, s.Shard)
		}
	}
	return append(names, p.Indexes...)
}

// IsLast reports whether a manifest shard is put after everything else.
func (p *Plan) IsLast(shard int) bool {
	return p.Announced || p.manifestsLast && p.Shards[shard].newEntryPoint
}

// ErrInconsistent means that the bucket's manifest does not belong to its root.
var ErrInconsistent = errors.New("the bucket's manifest does not match its root")

// A Planner makes plans, from manifests or from a survey.
type Planner struct {
	Source *origin.Site
	Bucket *requests.Bucket
	Live   *site.Root // nil if the bucket has no site yet

	MaxDelta   int       // bytes of an encoded delta
	Memory     int       // bytes that a scratch keeps in memory
	Refreshers note.Keys // see publisher.Options

	next, was *shards.Reader // readers of both manifests; was is nil if the bucket has no site yet
	stale     map[routes.ID]bool

	mu     sync.Mutex
	deltas map[string]bool // first shards of groups with a delta in the bucket, as found so far; guarded by mu
}

// Compare compares the manifests of site and bucket, shard by shard. It returns ErrInconsistent if
// the bucket's manifest cannot be trusted.
func (p *Planner) Compare(ctx context.Context) (result *Plan, err error) {
	if p.next, err = p.Source.Manifest(ctx); err != nil {
		return nil, err
	}
	if p.Live != nil {
		if p.was, err = survey.OpenManifest(ctx, p.Bucket, p.Live); err != nil {
			return nil, err
		}
	}
	p.stale, p.deltas = p.staleRoutes(), map[string]bool{}
	result = New(spool.New(p.Bucket.Log, p.Memory), p.Live != nil)
	if p.isResharded() {
		err = p.planResharded(ctx, result)
	} else {
		err = p.planShards(ctx, result)
	}
	if err == nil {
		err = p.planIndexes(result)
	}
	if err != nil {
		result.Close()
		return nil, err
	}
	return result, nil
}

// isResharded reports whether the bucket's manifest has another number of shards.
func (p *Planner) isResharded() bool {
	return p.Live != nil && p.Live.ShardDigits != p.Source.Root.ShardDigits
}

func (p *Planner) planIndexes(result *Plan) error {
	for _, name := range shards.Indexes(&p.Source.Root) {
		differs := p.Live == nil || p.isResharded() || p.Live.Manifest[name] != p.Source.Root.Manifest[name]
		if !differs {
			if _, err := p.was.Index(name); err != nil {
				return ErrInconsistent
			}
		}
		if differs || p.stale[routes.Manifest] {
			result.addIndex(name)
		}
	}
	return nil
}

// shardChanges describes how a shard of the manifest differs.
type shardChanges struct {
	shard   string
	differs bool // whether the shard itself differs, apart from its objects
	changes []site.Change
	patch   shards.Patch  // from the shard stored in the bucket
	delta   *shards.Delta // delta in the bucket; nil if there is none
}

// planShards compares manifests with equally many shards, or plans a first publish.
func (p *Planner) planShards(ctx context.Context, result *Plan) error {
	names := site.HashPrefixes(p.Source.Root.ShardDigits)
	var group []shardChanges
	return inorder.Each(ctx, min(p.Bucket.Concurrency, survey.MaxShards), len(names), func(ctx context.Context, i int) (shardChanges, error) {
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

func (p *Planner) compareShard(ctx context.Context, name string) (shardChanges, error) {
	c := shardChanges{shard: name}
	c.differs = p.was == nil || p.was.Digest(name) != p.next.Digest(name) || p.stale[routes.Manifest]
	if !c.differs && len(p.stale) == 0 {
		return c, nil
	}
	next, err := p.Source.Shard(ctx, name)
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
			return c, ErrInconsistent
		} else if err != nil {
			return c, err
		}
		c.patch = shards.NewPatch(name, was.Put, next.Objects, p.next.Digest(name))
	}
	c.changes = site.Diff(was.Objects, next.Objects)
	if len(p.stale) > 0 {
		c.changes = p.withStaleHeaders(c.changes, next.Objects)
	}
	return c, nil
}

// planGroup plans the changed objects of a group of shards, and puts either the shards that differ
// or a delta.
func (p *Planner) planGroup(group []shardChanges, result *Plan) {
	first := shards.Group(group[0].shard)
	var was *shards.Delta
	differs := false
	for _, c := range group {
		differs = differs || c.differs
		if c.delta != nil {
			was = c.delta
		}
	}
	var text []byte // encoded delta to put
	if differs && p.mayHaveDeltas() {
		text = p.deltaText(group, was)
	}
	putShards := differs && text == nil // whether to put shards
	for _, c := range group {
		for _, change := range c.changes {
			result.Add(p.Source.Root.Config, c.shard, change)
		}
		if putShards && (c.differs || p.isPatched(c.shard, was)) {
			result.addManifest(c.shard)
		}
	}
	switch {
	case putShards && was != nil:
		result.addDelete(site.DeltaKey(first))
	case text != nil:
		result.addDelta(site.DeltaKey(first), shards.Pack(text))
	}
}

// mayHaveDeltas reports whether deltas may be put. They are not if all shards are put anyway.
func (p *Planner) mayHaveDeltas() bool {
	return p.was != nil && !p.stale[routes.Manifest] && !p.stale[routes.ManifestDelta]
}

// isPatched reports whether the bucket's delta turns a stored shard into the one that the live root
// names.
func (p *Planner) isPatched(shard string, was *shards.Delta) bool {
	old := was.Patch(shard)
	return old != nil && old.SHA256 == p.was.Digest(shard)
}

// deltaText encodes the delta of a group. It returns nil if the delta is empty or too large.
func (p *Planner) deltaText(group []shardChanges, was *shards.Delta) []byte {
	delta := p.delta(group, was)
	if len(delta.Shards) == 0 {
		return nil
	}
	if text := delta.Append(nil); len(text) <= p.MaxDelta {
		return text
	}
	return nil
}

// delta returns the delta of a group, relative to the shards stored in the bucket. Patches of other
// shards in the previous delta stay if the root still names their results.
func (p *Planner) delta(group []shardChanges, was *shards.Delta) shards.Delta {
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

// planResharded compares manifests with different numbers of shards.
func (p *Planner) planResharded(ctx context.Context, result *Plan) error {
	digits := p.Source.Root.ShardDigits
	next := shards.NewSplit(digits, func(ctx context.Context, shard string) ([]site.Entry, error) {
		s, err := p.Source.Shard(ctx, shard)
		return s.Objects, err
	})
	live := shards.NewSplit(p.Live.ShardDigits, func(ctx context.Context, shard string) ([]site.Entry, error) {
		s, err := p.was.Shard(ctx, shard)
		if errors.Is(err, shards.ErrDamaged) {
			return nil, ErrInconsistent
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
	err := inorder.Each(ctx, min(p.Bucket.Concurrency, survey.MaxShards), len(parts), func(ctx context.Context, i int) (partChanges, error) {
		changes, err := p.changes(ctx, parts[i], live, next)
		return partChanges{parts[i], changes}, err
	}, func(c partChanges) error {
		shard := c.part[:digits]
		for _, change := range c.changes {
			result.Add(p.Source.Root.Config, shard, change)
		}
		if strings.Trim(c.part[digits:], "f") == "" { // the last part of the shard
			result.addManifest(shard)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range shards.Names(p.Live) {
		if !shards.Has(&p.Source.Root, name) {
			result.addDelete(site.ManifestKey(name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.deltas)) {
		result.addDelete(site.DeltaKey(name))
	}
	return nil
}

// changes returns the changes of the objects whose hashed keys begin with part. An object that only
// gets other headers counts as altered.
func (p *Planner) changes(ctx context.Context, part string, live, next *shards.Split) ([]site.Change, error) {
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
		changes = p.withStaleHeaders(changes, after)
	}
	return changes, nil
}

// withStaleHeaders adds the objects of routes whose headers have changed.
func (p *Planner) withStaleHeaders(changes []site.Change, next []site.Entry) []site.Change {
	changed := make(map[site.Key]bool, len(changes))
	for _, c := range changes {
		changed[c.Key] = true
	}
	for _, e := range next {
		if route, ok := p.Source.Root.Config.RouteOf(e.Key); ok && p.stale[route.ID] && !changed[e.Key] {
			changes = append(changes, site.Change{Entry: e, Reason: site.Altered})
		}
	}
	return changes
}

// staleRoutes returns the routes whose objects have other headers in the bucket.
func (p *Planner) staleRoutes() map[routes.ID]bool {
	stale := map[routes.ID]bool{}
	if p.Live == nil {
		return stale
	}
	for _, route := range p.Source.Root.Config.Routes() {
		if p.Live.HeaderRules[route.Pattern] != p.Source.Root.HeaderRules[route.Pattern] {
			stale[route.ID] = true
		}
	}
	return stale
}

// FromListing makes a plan from a listing. It skips objects that a run put before it was cut off,
// and deletes leftovers that do not belong to the site.
func (p *Planner) FromListing(ctx context.Context, found *lock.Mark, progress requests.Progress) (*Plan, error) {
	if found == nil {
		found = &lock.Mark{}
	}
	next := &p.Source.Root
	result := New(spool.New(p.Bucket.Log, p.Memory), p.Live != nil)
	configs := found.Configs(p.Live, next)
	manifest, err := p.Source.Manifest(ctx)
	if err != nil {
		result.Close()
		return nil, err
	}
	s := &survey.Survey{Bucket: p.Bucket, Root: next, Manifest: manifest, Own: manifest, Ours: true, Progress: progress, Configs: configs, Refreshers: p.Refreshers, Memory: p.Memory,
		Found: p.Findings(result),
		UpToDate: func(info storage.Info) bool {
			route, ok := next.Config.RouteOf(info.Key)
			if !ok {
				return false
			}
			rules, known := found.RulesAt(info.Modified, route.Pattern, p.Live)
			return known && rules == next.HeaderRules[route.Pattern]
		}}
	if err := s.Take(ctx); err != nil {
		result.Close()
		return nil, p.Source.Damaged(err)
	}
	return result, nil
}

// Findings returns a function that adds a survey's findings to a plan. Foreign objects stay.
func (p *Planner) Findings(to *Plan) func(survey.Finding) {
	return func(f survey.Finding) {
		switch f.State {
		case survey.Unknown, survey.Announced:
			to.addDelete(f.Key)
		case survey.Missing, survey.Altered, survey.Stale:
			if name, ok := strings.CutPrefix(string(f.Key), string(site.ManifestKey(""))); ok {
				if name == f.Shard {
					to.addManifest(name)
				} else {
					to.addIndex(name)
				}
				return
			}
			reason := site.Altered
			if f.State == survey.Missing {
				reason = site.Added
			}
			to.Add(p.Source.Root.Config, f.Shard, site.Change{Entry: f.Entry, Reason: reason})
		}
	}
}
