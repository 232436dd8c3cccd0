package output

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/followpress/followpress/internal/inorder"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/shards"
)

// Diff compares the site with the live one, and with the missing files found by a Look.
func (x *Index) Diff(ctx context.Context, live *Live, files *Look) (*Plan, error) {
	body, err := x.Root.Encode()
	if err != nil {
		return nil, err
	}
	p := &Plan{Same: string(body) == string(live.rootBody), seed: files.seed, changed: map[uint64]struct{}{}}
	if !p.Same {
		p.add(site.Change{Entry: entryOf(site.RootKey, body), Reason: site.Altered})
		if err := x.changes(ctx, live, p.add); err != nil {
			return nil, err
		}
	}
	for key := range files.missing {
		if _, ok := p.changed[key]; !ok {
			p.Same = false
			p.restored++
			p.changed[key] = struct{}{}
		}
	}
	return p, nil
}

// changes calls tell with each object that differs from the live site, one after the other,
// including the manifest but not the root. It reads only the manifest shards that differ.
func (x *Index) changes(ctx context.Context, live *Live, tell func(site.Change)) error {
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

// changedIndexes returns the changed indexes of both manifests.
func (x *Index) changedIndexes(live *Live) (changes []site.Change) {
	resharded := live.isResharded(&x.Root)
	for _, i := range x.indexes {
		switch {
		case resharded:
			changes = append(changes, x.changedShard(i.Name, live.addedOrAltered(i.Name)))
		case live.root.Manifest[i.Name] != x.Root.Manifest[i.Name]:
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

// names reports whether the manifest has a shard or an index with this name.
func (x *Index) names(name string) bool { return shards.Has(&x.Root, name) }

func (x *Index) diffPartition(ctx context.Context, live *Live, partition int) ([]site.Change, error) {
	per := x.entries.shardsPerPartition()
	names := x.entries.shardNames[partition*per : (partition+1)*per]
	resharded := live.isResharded(&x.Root)
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

func (x *Index) changedShard(name string, reason site.Reason) site.Change {
	return site.Change{Entry: site.Entry{Key: site.ManifestKey(name)}, Reason: reason}
}

// diffResharded returns the changes of some successive shards if the live site has another number
// of shards. Then the names of live shards begin with the new names, or the new with the live
// names.
func (x *Index) diffResharded(ctx context.Context, live *Live, shards []shardEntries) ([]site.Change, error) {
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
		if strings.Trim(prefix[common:], "0") == "" && !x.names(name) { // else an earlier partition reported it, or it is replaced
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
