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
	"github.com/followpress/followpress/site/shards"
)

// An index is the manifest and the root of a site.
type index struct {
	entries *entryStore
	root    site.Root
	digests shards.Digests // of the shards of the manifest
	indexes []shards.Index // of the shards
	workers int
}

// newIndex makes the root for the rendered objects, and renders the manifest into out. Inputs may be nil.
func newIndex(ctx context.Context, s *render.Site, inputs *site.Inputs, entries *entryStore, workers int, out output) (*index, error) {
	x := &index{entries: entries, workers: workers, digests: shards.NewDigests(entries.digits), root: newRoot(s, entries.digits)}
	x.root.Inputs = inputs
	x.root.Counts.Objects, x.root.Counts.Bytes = int(entries.objects.Load()), entries.bytes.Load()
	if err := x.renderShards(ctx, out, x.digests.Set); err != nil {
		return x, err
	}
	x.root.Manifest, x.indexes = x.digests.Tree()
	return x, x.writeIndexes(out)
}

// newRoot is the root of a site without its inputs and what only rendering tells: the manifest, and the numbers of objects
// and bytes.
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

// render renders the manifest into out.
func (x *index) render(ctx context.Context, out output) error {
	if err := x.renderShards(ctx, out, func(string, site.SHA256) error { return nil }); err != nil {
		return err
	}
	return x.writeIndexes(out)
}

// renderShards renders the shards of the manifest into out and tells the digest of each, in their order.
func (x *index) renderShards(ctx context.Context, out output, rendered func(shard string, digest site.SHA256) error) error {
	type renderedShards struct {
		batch   batch
		names   []string
		digests []site.SHA256
	}
	return inorder.Do(ctx, x.workers, x.partitions,
		func(partition int, _ *inorder.Ticket[renderedShards]) (renderedShards, error) {
			s := renderedShards{batch: out.begin()}
			all, err := x.entries.shards(partition)
			if err != nil {
				return s, err
			}
			var text []byte
			var m site.Manifest
			for _, shard := range all {
				m = shard.manifest(m.Objects)
				text = m.Append(text[:0])
				s.names, s.digests = append(s.names, shard.name), append(s.digests, site.Sum256(text))
				if _, ok := out.(discard); ok { // what only counts digests need not be compressed
					continue
				}
				body := shards.Pack(text)
				if err := s.batch.put(entryOf(site.ManifestKey(shard.name), body), body); err != nil {
					return s, err
				}
			}
			return s, nil
		},
		func(s renderedShards) error {
			for i, name := range s.names {
				if err := rendered(name, s.digests[i]); err != nil {
					return err
				}
			}
			return out.finish(s.batch)
		})
}

// writeIndexes puts the indexes into out, which has the shards.
func (x *index) writeIndexes(out output) error {
	b := out.begin()
	for _, index := range x.indexes {
		if err := b.put(entryOf(site.ManifestKey(index.Name), index.Body), index.Body); err != nil {
			return err
		}
	}
	return out.finish(b)
}

// objects is the number of objects, including manifest and root.
func (x *index) objects() int {
	return x.root.Counts.Objects + len(x.entries.shardNames) + len(x.indexes) + 1
}

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

// entryOf describes an object that no shard of the manifest lists, so that its SHA-256 is not needed.
func entryOf(key site.Key, body []byte) site.Entry {
	return site.Entry{Key: key, Size: int64(len(body)), MD5: site.Sum(body)}
}

// A plan says how a site differs from the live one.
type plan struct {
	same                    bool // whether there is no difference
	added, altered, removed int  // objects
	restored                int  // objects that are the same, but that the live site has no file of

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

// diff compares the site with an older one, and with what a look at the files of that has found.
func (x *index) diff(ctx context.Context, live *liveSite, files *look) (*plan, error) {
	body, err := x.root.Encode()
	if err != nil {
		return nil, err
	}
	p := &plan{same: string(body) == string(live.rootBody), seed: files.seed, changed: map[uint64]struct{}{}}
	if !p.same {
		p.add(site.Change{Entry: entryOf(site.RootKey, body), Reason: site.Altered})
		if err := x.changes(ctx, live, p.add); err != nil {
			return nil, err
		}
	}
	for key := range files.missing {
		if _, ok := p.changed[key]; !ok {
			p.same = false
			p.restored++
			p.changed[key] = struct{}{}
		}
	}
	return p, nil
}

// changes tells each object that differs from that of an older site, one at a time, including the manifest but not the
// root. It reads only the manifest shards that differ.
func (x *index) changes(ctx context.Context, live *liveSite, tell func(site.Change)) error {
	if err := live.openManifest(ctx); err != nil {
		return err
	}
	tellAll := func(changes []site.Change) error {
		for _, c := range changes {
			tell(c)
		}
		return nil
	}
	err := inorder.Do(ctx, x.workers, x.partitions,
		func(partition int, _ *inorder.Ticket[[]site.Change]) ([]site.Change, error) {
			return x.diffPartition(ctx, live, partition)
		}, tellAll)
	if err != nil {
		return err
	}
	return tellAll(x.changedIndexes(live))
}

// changedIndexes lists the indexes of both manifests that differ.
func (x *index) changedIndexes(live *liveSite) (changes []site.Change) {
	resharded := live.isResharded(x)
	for _, i := range x.indexes {
		switch {
		case resharded:
			changes = append(changes, x.changedShard(i.Name, live.addedOrAltered(i.Name)))
		case live.root.Manifest[i.Name] != x.root.Manifest[i.Name]:
			changes = append(changes, x.changedShard(i.Name, site.Altered))
		}
	}
	if resharded {
		for _, name := range shards.Indexes(&live.root) {
			if !x.names(name) {
				changes = append(changes, x.changedShard(name, site.Gone))
			}
		}
	}
	return changes
}

// names reports whether the manifest has a shard or an index with the name.
func (x *index) names(name string) bool { return shards.Has(&x.root, name) }

func (x *index) diffPartition(ctx context.Context, live *liveSite, partition int) ([]site.Change, error) {
	per := x.entries.shardsPerPartition()
	names := x.entries.shardNames[partition*per : (partition+1)*per]
	resharded := live.isResharded(x)
	if !resharded && !slices.ContainsFunc(names, func(shard string) bool { return live.manifest.Digest(shard) != x.digests.Of(shard) }) {
		return nil, nil
	}
	shards, err := x.entries.shards(partition)
	if err != nil {
		return nil, err
	}
	if resharded {
		return x.diffResharded(ctx, live, shards)
	}
	var changes []site.Change
	for _, shard := range shards {
		if live.manifest.Digest(shard.name) == x.digests.Of(shard.name) {
			continue
		}
		was, err := live.shard(ctx, shard.name)
		if err != nil {
			return nil, err
		}
		changes = append(changes, x.changedShard(shard.name, site.Altered))
		changes = append(changes, site.Diff(was, slices.Collect(shard.all()))...)
	}
	return changes, nil
}

func (x *index) changedShard(name string, reason site.Reason) site.Change {
	return site.Change{Entry: site.Entry{Key: site.ManifestKey(name)}, Reason: reason}
}

// diffResharded lists what differs in some successive shards if the live site has another number of
// shards. The names of the live ones then begin as theirs do, or theirs begin with a name of those.
func (x *index) diffResharded(ctx context.Context, live *liveSite, shards []shardEntries) ([]site.Change, error) {
	digits := min(len(shards[0].name), partitionDigits)
	prefix := shards[0].name[:digits]
	var changes []site.Change
	var was, is []site.Entry
	for _, name := range site.HashPrefixes(live.root.ShardDigits) {
		common := min(digits, len(name))
		if name[:common] != prefix[:common] {
			continue
		}
		objects, err := live.shard(ctx, name)
		if err != nil {
			return nil, err
		}
		if strings.Trim(prefix[common:], "0") == "" && !x.names(name) { // else it was told with an earlier partition, or is replaced
			changes = append(changes, x.changedShard(name, site.Gone))
		}
		for _, e := range objects {
			if site.ManifestShard(e.Key, digits) == prefix {
				was = append(was, e)
			}
		}
	}
	for _, shard := range shards {
		changes = append(changes, x.changedShard(shard.name, live.addedOrAltered(shard.name)))
		is = slices.AppendSeq(is, shard.all())
	}
	slices.SortFunc(was, func(a, b site.Entry) int { return cmp.Compare(a.Key, b.Key) })
	slices.SortFunc(is, func(a, b site.Entry) int { return cmp.Compare(a.Key, b.Key) })
	return append(changes, site.Diff(was, is)...), nil
}

// report summarises the plan for a site with that many objects, including manifest and root.
func (p *plan) report(objects int) WriteReport {
	return WriteReport{Unchanged: p.same, Added: p.added, Altered: p.altered, Removed: p.removed, Restored: p.restored, Kept: objects - p.added - p.altered - p.restored}
}
