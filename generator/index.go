package generator

import (
	"context"
	"slices"
	"strings"

	"github.com/followpress/followpress/site"
)

// An index is the manifest and the root of a site.
type index struct {
	shards []site.Manifest // sorted by name
	root   site.Root
}

// newIndex makes the manifest and the root for the rendered objects.
func newIndex(s *renderer, entries []site.Entry) index {
	g := s.graph
	digits := site.ShardDigits(len(entries))
	x := index{root: site.Root{
		Format: site.Format, AsOf: g.asOf, Config: s.config, BucketDigits: s.bucketDigits, TokenDigits: s.tokenDigits, ShardDigits: digits,
		HeaderRules: s.config.HeaderRules(), Manifest: map[string]site.MD5{},
		Counts: site.Counts{
			Accounts: len(g.accounts), Lists: len(g.tokens), Records: len(g.records), Names: len(g.names),
			Events: len(g.events), Objects: len(entries),
		},
	}}
	for list := range g.tokens {
		x.root.Counts.Follows += g.countFollows(uint32(list))
		if g.isPrimary(uint32(list)) {
			x.root.Counts.Primary++
		}
	}
	for _, e := range entries {
		x.root.Counts.Bytes += e.Size
	}
	x.shards = sharded(entries, digits)
	var body []byte
	for _, m := range x.shards {
		body = m.Append(body[:0])
		x.root.Manifest[m.Shard] = site.Sum(body)
	}
	return x
}

// sharded sorts entries into manifest shards. They share one allocation, because together with the
// entries it is the largest after the graph.
func sharded(entries []site.Entry, digits int) []site.Manifest {
	names := site.HashPrefixes(digits)
	number := make(map[string]int, len(names))
	for i, name := range names {
		number[name] = i
	}
	shardOf, sizes := make([]int32, len(entries)), make([]int, len(names))
	for i, e := range entries {
		n := number[site.ManifestShard(e.Key, digits)]
		shardOf[i] = int32(n)
		sizes[n]++
	}
	shards, rest := make([]site.Manifest, len(names)), make([]site.Entry, len(entries))
	for n, size := range sizes {
		shards[n] = site.Manifest{Shard: names[n], Objects: rest[:0:size]}
		rest = rest[size:]
	}
	for i, e := range entries {
		shards[shardOf[i]].Objects = append(shards[shardOf[i]].Objects, e)
	}
	for _, m := range shards {
		slices.SortFunc(m.Objects, func(a, b site.Entry) int { return strings.Compare(string(a.Key), string(b.Key)) })
	}
	return shards
}

// objects is the number of objects, including manifest and root.
func (x index) objects() int { return x.root.Counts.Objects + len(x.shards) + 1 }

// write puts the manifest and, last, the root into out.
func (x index) write(ctx context.Context, out output) error {
	b := out.begin()
	var body []byte
	for _, m := range x.shards {
		if err := ctx.Err(); err != nil {
			return err
		}
		body = m.Append(body[:0])
		if err := b.put(entryOf(site.ManifestKey(m.Shard), body), body); err != nil {
			return err
		}
	}
	body, err := x.root.Encode()
	if err != nil {
		return err
	}
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
	same    bool // whether there is no difference
	changed map[site.Key]site.Reason
}

// isUnchanged reports whether the live site has the same object.
func (p *plan) isUnchanged(key site.Key) bool {
	_, changed := p.changed[key]
	return !changed
}

// diff compares the site with the live one. It reads only the manifest shards that differ.
func (x index) diff(ctx context.Context, live *liveSite) (*plan, error) {
	body, err := x.root.Encode()
	if err != nil {
		return nil, err
	}
	p := &plan{same: string(body) == string(live.rootBody), changed: map[site.Key]site.Reason{}}
	if p.same {
		return p, nil
	}
	p.changed[site.RootKey] = site.Altered
	resharded := live.root.ShardDigits != x.root.ShardDigits
	var old []site.Manifest
	if resharded {
		// The number of shards has changed: sort the live entries into the new shards.
		var entries []site.Entry
		for shard := range live.root.Manifest {
			m, err := live.manifest(ctx, shard)
			if err != nil {
				return nil, err
			}
			p.changed[site.ManifestKey(shard)] = site.Gone
			entries = append(entries, m.Objects...)
		}
		old = sharded(entries, x.root.ShardDigits)
	}
	for i, m := range x.shards {
		if !resharded && live.root.Manifest[m.Shard] == x.root.Manifest[m.Shard] {
			continue
		}
		var was site.Manifest
		if resharded {
			was = old[i]
			p.changed[site.ManifestKey(m.Shard)] = site.Added
		} else if was, err = live.manifest(ctx, m.Shard); err != nil {
			return nil, err
		} else {
			p.changed[site.ManifestKey(m.Shard)] = site.Altered
		}
		for _, c := range site.Diff(was.Objects, m.Objects) {
			p.changed[c.Key] = c.Reason
		}
	}
	return p, nil
}

// report summarises the plan for a site with that many objects, including manifest and root.
func (p *plan) report(objects int) WriteReport {
	w := WriteReport{Unchanged: p.same}
	for _, reason := range p.changed {
		switch reason {
		case site.Added:
			w.Added++
		case site.Altered:
			w.Altered++
		case site.Gone:
			w.Removed++
		}
	}
	w.Kept = objects - w.Added - w.Altered
	return w
}
