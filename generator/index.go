package generator

import (
	"slices"
	"strings"

	"github.com/followpress/followpress/site"
)

// An index is what the site says about itself: the manifest and the root.
type index struct {
	shards []site.Manifest // in the order of their names
	root   site.Root
}

// newIndex makes the manifest and the root of the objects that were rendered.
func newIndex(s *renderer, entries []site.Entry) index {
	g := s.graph
	digits := site.ShardDigits(len(entries))
	x := index{root: site.Root{
		Format: site.Format, AsOf: g.asOf, Config: s.config, BucketDigits: s.bucketDigits, ShardDigits: digits,
		HeaderRules: site.HeaderRules(), Manifest: map[string]site.MD5{},
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
	byShard := map[string][]site.Entry{}
	for _, e := range entries {
		x.root.Counts.Bytes += e.Size
		shard := site.ManifestShard(e.Key, digits)
		byShard[shard] = append(byShard[shard], e)
	}
	for _, shard := range site.HashPrefixes(digits) {
		m := site.Manifest{Shard: shard, Objects: byShard[shard]}
		slices.SortFunc(m.Objects, func(a, b site.Entry) int { return strings.Compare(string(a.Key), string(b.Key)) })
		x.shards = append(x.shards, m)
		x.root.Manifest[shard] = site.Sum(m.Append(nil))
	}
	return x
}

// write puts the manifest and, last, the root into out.
func (x index) write(out output) error {
	b := out.begin()
	var body []byte
	for _, m := range x.shards {
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

// A plan says how a site differs from the one that is there.
type plan struct {
	same    bool // in every byte
	changed map[site.Key]site.Reason
}

// keeps reports whether an object is there already, byte for byte.
func (p *plan) keeps(key site.Key) bool {
	_, changed := p.changed[key]
	return !changed
}

// diff compares with the site that is there, reading only the shards of its
// manifest that differ.
func (x index) diff(live *liveSite) (*plan, error) {
	body, err := x.root.Encode()
	if err != nil {
		return nil, err
	}
	p := &plan{same: string(body) == string(live.rootBody), changed: map[site.Key]site.Reason{}}
	if p.same {
		return p, nil
	}
	p.changed[site.RootKey] = site.Altered
	old := map[string][]site.Entry{}
	if live.root.ShardDigits != x.root.ShardDigits {
		// Every object is in another shard now: sort the old ones in like the new.
		for shard := range live.root.Manifest {
			m, err := live.manifest(shard)
			if err != nil {
				return nil, err
			}
			p.changed[site.ManifestKey(shard)] = site.Gone
			for _, e := range m.Objects {
				shard := site.ManifestShard(e.Key, x.root.ShardDigits)
				old[shard] = append(old[shard], e)
			}
		}
	}
	for _, m := range x.shards {
		key := site.ManifestKey(m.Shard)
		if live.root.ShardDigits == x.root.ShardDigits {
			if live.root.Manifest[m.Shard] == x.root.Manifest[m.Shard] {
				continue
			}
			was, err := live.manifest(m.Shard)
			if err != nil {
				return nil, err
			}
			old[m.Shard] = was.Objects
			p.changed[key] = site.Altered
		} else {
			slices.SortFunc(old[m.Shard], func(a, b site.Entry) int { return strings.Compare(string(a.Key), string(b.Key)) })
			p.changed[key] = site.Added
		}
		for _, c := range site.Diff(old[m.Shard], m.Objects) {
			p.changed[c.Key] = c.Reason
		}
	}
	return p, nil
}

// count adds up the plan for a site of that many objects, manifest and root included.
func (p *plan) count(objects int) WriteReport {
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
