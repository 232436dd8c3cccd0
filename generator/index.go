package generator

import (
	"context"
	"strings"

	"github.com/followpress/followpress/inorder"
	"github.com/followpress/followpress/site"
)

// An index is the manifest and the root of a site.
type index struct {
	entries *entryTable
	root    site.Root
	workers int
}

// newIndex makes the manifest and the root for the rendered objects.
func newIndex(ctx context.Context, s *renderer, entries *entryTable, workers int) (index, error) {
	g := s.graph
	digits := site.ShardDigits(len(entries.all))
	x := index{entries: entries, workers: workers, root: site.Root{
		Format: site.Format, AsOf: g.asOf, Config: s.config, BucketDigits: s.bucketDigits, TokenDigits: s.tokenDigits, ShardDigits: digits,
		HeaderRules: s.config.HeaderRules(), Manifest: map[string]site.MD5{},
		Counts: site.Counts{
			Accounts: len(g.accounts), Lists: len(g.tokens), Records: len(g.records), Names: len(g.names),
			Events: len(g.events), Objects: len(entries.all), Bytes: entries.bytes(),
		},
	}}
	for list := range g.tokens {
		x.root.Counts.Follows += g.countFollows(uint32(list))
		if g.isPrimary(uint32(list)) {
			x.root.Counts.Primary++
		}
	}
	if err := entries.divide(ctx, digits, workers); err != nil {
		return index{}, err
	}
	digests := func(entry site.Entry) {
		x.root.Manifest[strings.TrimPrefix(string(entry.Key), string(site.ManifestKey("")))] = entry.MD5
	}
	return x, x.render(ctx, discard{}, digests)
}

// render renders the manifest into out and tells each of its shards.
func (x index) render(ctx context.Context, out output, rendered func(site.Entry)) error {
	type shards struct {
		batch   batch
		entries []site.Entry
	}
	const perBatch = 16
	firsts := func(yield func(int, error) bool) {
		for first := 0; first < len(x.entries.shardNames); first += perBatch {
			if !yield(first, nil) {
				return
			}
		}
	}
	return inorder.Do(ctx, x.workers, firsts,
		func(first int, _ *inorder.Ticket[shards]) (shards, error) {
			s := shards{batch: out.begin()}
			var body []byte
			for n := first; n < min(first+perBatch, len(x.entries.shardNames)); n++ {
				m := x.entries.shard(n)
				body = m.Append(body[:0])
				entry := entryOf(site.ManifestKey(m.Shard), body)
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
func (x index) objects() int { return x.root.Counts.Objects + len(x.entries.shardNames) + 1 }

// write puts the manifest and, last, the root into out.
func (x index) write(ctx context.Context, out output) error {
	if err := x.render(ctx, out, func(site.Entry) {}); err != nil {
		return err
	}
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
	old := newEntryTable(0)
	if resharded {
		// The number of shards has changed: sort the live entries into the new shards.
		for shard := range live.root.Manifest {
			m, err := live.manifest(ctx, shard)
			if err != nil {
				return nil, err
			}
			p.changed[site.ManifestKey(shard)] = site.Gone
			old.add(m.Objects)
		}
		if err := old.divide(ctx, x.root.ShardDigits, x.workers); err != nil {
			return nil, err
		}
	}
	for i, shard := range x.entries.shardNames {
		if !resharded && live.root.Manifest[shard] == x.root.Manifest[shard] {
			continue
		}
		var was site.Manifest
		if resharded {
			was = old.shard(i)
			p.changed[site.ManifestKey(shard)] = site.Added
		} else if was, err = live.manifest(ctx, shard); err != nil {
			return nil, err
		} else {
			p.changed[site.ManifestKey(shard)] = site.Altered
		}
		for _, c := range site.Diff(was.Objects, x.entries.shard(i).Objects) {
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
