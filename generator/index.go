package generator

import (
	"cmp"
	"context"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/internal/inorder"
	"github.com/followpress/followpress/site"
)

// An index is the manifest and the root of a site.
type index struct {
	entries *entryStore
	root    site.Root
	workers int
}

// newIndex makes the root for the rendered objects, and renders the manifest into out.
func newIndex(ctx context.Context, s *render.Site, entries *entryStore, workers int, out output) (*index, error) {
	x := &index{entries: entries, workers: workers, root: newRoot(s, entries.digits)}
	x.root.Manifest = make(map[string]site.MD5, len(entries.shardNames))
	x.root.Counts.Objects, x.root.Counts.Bytes = int(entries.objects.Load()), entries.bytes.Load()
	return x, x.render(ctx, out, func(entry site.Entry) {
		x.root.Manifest[strings.TrimPrefix(string(entry.Key), string(site.ManifestKey("")))] = entry.MD5
	})
}

// newRoot is the root of a site without what only rendering tells: the manifest, and the numbers of objects and bytes.
func newRoot(s *render.Site, shardDigits int) site.Root {
	g := s.Graph
	return site.Root{
		Format: site.Format, AsOf: g.AsOf, Config: s.Config, BucketDigits: s.BucketDigits, TokenDigits: s.TokenDigits, ShardDigits: shardDigits,
		HeaderRules: s.Config.HeaderRules(), Counts: g.Counts(),
	}
}

// partitions yields the partitions of the manifest, of which each has some successive shards.
func (x *index) partitions(yield func(int, error) bool) {
	for partition := range x.entries.partitions {
		if !yield(partition, nil) {
			return
		}
	}
}

// render renders the manifest into out and tells each of its shards, in their order.
func (x *index) render(ctx context.Context, out output, rendered func(site.Entry)) error {
	type shards struct {
		batch   batch
		entries []site.Entry
	}
	return inorder.Do(ctx, x.workers, x.partitions,
		func(partition int, _ *inorder.Ticket[shards]) (shards, error) {
			s := shards{batch: out.begin()}
			all, err := x.entries.shards(partition)
			if err != nil {
				return s, err
			}
			var body []byte
			for _, shard := range all {
				body = shard.manifest().Append(body[:0])
				entry := entryOf(site.ManifestKey(shard.name), body)
				if err := s.batch.put(entry, body); err != nil {
					return s, err
				}
				s.entries = append(s.entries, entry)
			}
			return s, nil
		},
		func(s shards) error {
			for _, entry := range s.entries {
				rendered(entry)
			}
			return out.finish(s.batch)
		})
}

// objects is the number of objects, including manifest and root.
func (x *index) objects() int { return x.root.Counts.Objects + len(x.entries.shardNames) + 1 }

// write puts the root into out, which has everything else.
func (x *index) write(out output) error {
	body, err := x.root.Encode()
	if err != nil {
		return err
	}
	b := out.begin()
	if err := b.put(entryOf(site.RootKey, body), body); err != nil {
		return err
	}
	return out.finish(b)
}

func entryOf(key site.Key, body []byte) site.Entry {
	return site.Entry{Key: key, Size: int64(len(body)), MD5: site.Sum(body)}
}

// A plan says how a site differs from the live one.
type plan struct {
	same                    bool // whether there is no difference
	added, altered, removed int  // objects

	// Hashes of the keys that differ. They may be tens of millions. Of two keys with the same hash, one
	// may be taken for changed although it is not, which costs nothing but the work.
	seed    maphash.Seed
	changed map[uint64]struct{}
}

// isUnchanged reports whether the live site has the same object.
func (p *plan) isUnchanged(key site.Key) bool {
	_, changed := p.changed[maphash.String(p.seed, string(key))]
	return !changed
}

func (p *plan) add(c site.Change) {
	switch c.Reason {
	case site.Added:
		p.added++
	case site.Altered:
		p.altered++
	case site.Gone:
		p.removed++
		return
	}
	p.changed[maphash.String(p.seed, string(c.Key))] = struct{}{}
}

// A change is an object that differs from that of an older site.
type change struct {
	site.Change
	unit uint32 // that renders it; none if it is gone, or of the manifest or the root
}

// diff compares the site with an older one. It reads only the manifest shards that differ. It tells each
// object that differs, one at a time and including manifest and root, unless tell is nil.
func (x *index) diff(ctx context.Context, live *liveSite, tell func(change) error) (*plan, error) {
	body, err := x.root.Encode()
	if err != nil {
		return nil, err
	}
	p := &plan{same: string(body) == string(live.rootBody), seed: maphash.MakeSeed(), changed: map[uint64]struct{}{}}
	if p.same {
		return p, nil
	}
	add := func(changes []change) error {
		for _, c := range changes {
			p.add(c.Change)
			if tell == nil {
				continue
			}
			if err := tell(c); err != nil {
				return err
			}
		}
		return nil
	}
	err = inorder.Do(ctx, x.workers, x.partitions,
		func(partition int, _ *inorder.Ticket[[]change]) ([]change, error) {
			return x.diffPartition(ctx, live, partition)
		}, add)
	if err != nil {
		return nil, err
	}
	return p, add([]change{{site.Change{Entry: entryOf(site.RootKey, body), Reason: site.Altered}, render.None}})
}

func (x *index) diffPartition(ctx context.Context, live *liveSite, partition int) ([]change, error) {
	per := x.entries.shardsPerPartition()
	names := x.entries.shardNames[partition*per : (partition+1)*per]
	resharded := live.root.ShardDigits != x.root.ShardDigits
	if !resharded && !slices.ContainsFunc(names, func(shard string) bool { return live.root.Manifest[shard] != x.root.Manifest[shard] }) {
		return nil, nil
	}
	shards, err := x.entries.shards(partition)
	if err != nil {
		return nil, err
	}
	if resharded {
		return x.diffResharded(ctx, live, shards)
	}
	var changes []change
	for _, shard := range shards {
		if live.root.Manifest[shard.name] == x.root.Manifest[shard.name] {
			continue
		}
		was, err := live.manifest(ctx, shard.name)
		if err != nil {
			return nil, err
		}
		changes = append(changes, x.changedShard(shard.name, site.Altered))
		changes = appendDiff(changes, was.Objects, shard)
	}
	return changes, nil
}

// appendDiff appends what differs between old entries and new ones, which are sorted.
func appendDiff(to []change, was []site.Entry, is shardEntries) []change {
	next := is.entries
	for _, c := range site.Diff(was, is.manifest().Objects) {
		unit := render.None
		if c.Reason != site.Gone {
			for next[0].Key != c.Key {
				next = next[1:]
			}
			unit = next[0].unit
		}
		to = append(to, change{c, unit})
	}
	return to
}

func (x *index) changedShard(name string, reason site.Reason) change {
	return change{site.Change{Entry: site.Entry{Key: site.ManifestKey(name), MD5: x.root.Manifest[name]}, Reason: reason}, render.None}
}

// diffResharded lists what differs in some successive shards if the live site has another number of
// shards. The names of the live ones then begin as theirs do, or theirs begin with a name of those.
func (x *index) diffResharded(ctx context.Context, live *liveSite, shards []shardEntries) ([]change, error) {
	digits := min(len(shards[0].name), partitionDigits)
	prefix := shards[0].name[:digits]
	var changes []change
	var was []site.Entry
	var is shardEntries
	for _, name := range site.HashPrefixes(live.root.ShardDigits) {
		common := min(digits, len(name))
		if name[:common] != prefix[:common] {
			continue
		}
		m, err := live.manifest(ctx, name)
		if err != nil {
			return nil, err
		}
		if strings.Trim(prefix[common:], "0") == "" { // else it was told with an earlier partition
			changes = append(changes, x.changedShard(name, site.Gone))
		}
		for _, e := range m.Objects {
			if site.ManifestShard(e.Key, digits) == prefix {
				was = append(was, e)
			}
		}
	}
	for _, shard := range shards {
		changes = append(changes, x.changedShard(shard.name, site.Added))
		is.entries = append(is.entries, shard.entries...)
	}
	slices.SortFunc(was, func(a, b site.Entry) int { return cmp.Compare(a.Key, b.Key) })
	slices.SortFunc(is.entries, func(a, b entry) int { return cmp.Compare(a.Key, b.Key) })
	return appendDiff(changes, was, is), nil
}

// report summarises the plan for a site with that many objects, including manifest and root.
func (p *plan) report(objects int) WriteReport {
	return WriteReport{Unchanged: p.same, Added: p.added, Altered: p.altered, Removed: p.removed, Kept: objects - p.added - p.altered}
}
