package output

import (
	"context"
	"hash/maphash"

	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/internal/inorder"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/shards"
)

// A Plan describes how a site differs from the live one.
type Plan struct {
	Same                    bool // whether there is no difference
	added, altered, removed int  // numbers of objects
	restored                int  // unchanged objects without a file in the live site

	// Hashes of the keys that differ, perhaps tens of millions. A collision may make an object
	// count as changed, which only costs work.
	seed    maphash.Seed
	changed map[uint64]struct{}
}

// isUnchanged reports whether the live site has the same object.
func (p *Plan) isUnchanged(key site.Key) bool {
	_, changed := p.changed[maphash.String(p.seed, string(key))]
	return !changed
}

func (p *Plan) add(c site.Change) {
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

// Report summarizes the plan for a site with this number of objects, including manifest and root.
func (p *Plan) Report(objects int) summary.WriteReport {
	return summary.WriteReport{Unchanged: p.Same, Added: p.added, Altered: p.altered, Removed: p.removed, Restored: p.restored, Kept: objects - p.added - p.altered - p.restored}
}

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
	was, is := shards.NewSplit(live.root.ShardDigits, live.shard), shards.NewSplit(x.Root.ShardDigits, x.shard)
	parts := site.HashPrefixes(max(was.Digits(), is.Digits()))
	err := inorder.Each(ctx, x.workers, len(parts), func(ctx context.Context, i int) ([]site.Change, error) {
		if was.Digits() == is.Digits() && live.digest(parts[i]) == x.digest(parts[i]) {
			return nil, nil
		}
		before, err := was.Entries(ctx, parts[i])
		if err != nil {
			return nil, err
		}
		after, err := is.Entries(ctx, parts[i])
		return site.Diff(before, after), err
	}, func(changes []site.Change) error {
		for _, c := range changes {
			tell(c)
		}
		return nil
	})
	if err != nil {
		return err
	}
	tellManifest := func(name string, reason site.Reason) {
		tell(site.Change{Entry: site.Entry{Key: site.ManifestKey(name)}, Reason: reason})
	}
	for _, name := range shards.Names(&x.Root) {
		if !shards.Has(&live.root, name) {
			tellManifest(name, site.Added)
		} else if live.digest(name) != x.digest(name) {
			tellManifest(name, site.Altered)
		}
	}
	for _, name := range shards.Names(&live.root) {
		if !shards.Has(&x.Root, name) {
			tellManifest(name, site.Gone)
		}
	}
	return nil
}
