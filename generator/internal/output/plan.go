package output

import (
	"hash/maphash"

	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/site"
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
