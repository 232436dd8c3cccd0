package render

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/snapshot"
)

// An exploreRenderer renders the explorer and the objects that only it reads. Like Site, it is
// immutable.
type exploreRenderer struct {
	graph *Graph
	ranks *Ranks
	texts []text // objects that do not depend on the snapshot
}

// kind returns the units: the network, the most followed with the start, and each text.
func (e *exploreRenderer) kind() UnitKind { return UnitKind{2 + len(e.texts), nil, e.render} }

func (e *exploreRenderer) render(unit int, _ *Scratch, emit Emitter) {
	switch unit {
	case 0:
		emit(objectBytes, func(b []byte) []byte { return e.network().Append(b) }, site.NetworkKey)
	case 1:
		top := e.top()
		emit(objectBytes+2*userBytes*e.leaders(), top.Append, site.TopKey)
		emit(objectBytes+startBytes, top.start().Append, StartKey)
	default:
		t := e.texts[unit-2]
		emitText(emit, t.body, t.key)
	}
}

func (e *exploreRenderer) find(key site.Key) foundUnit {
	switch key {
	case site.NetworkKey:
		return foundUnit{e.render, 0}
	case site.TopKey, StartKey:
		return foundUnit{e.render, 1}
	}
	i := slices.IndexFunc(e.texts, func(t text) bool { return t.key == key })
	if i < 0 {
		return foundUnit{}
	}
	return foundUnit{e.render, 2 + i}
}

// leaders returns the number of accounts in site.Top.
func (e *exploreRenderer) leaders() int { return min(TopAccounts, len(e.ranks.First[rules.Followers])) }

func (e *exploreRenderer) top() topObject {
	t := topObject{Total: e.ranks.Followed}
	for _, account := range e.ranks.First[rules.Followers][:e.leaders()] {
		a := e.graph.shown(e.ranks, nil, account)
		t.Accounts = append(t.Accounts, a.topAccount())
	}
	return t
}

func (e *exploreRenderer) network() Network {
	g := e.graph
	n := Network{
		AsOf: g.AsOf, Counts: g.Counts(),
		Followers: degrees(e.ranks.Count[rules.Followers]), Following: degrees(e.ranks.Count[rules.Following]),
	}
	n.Counts.Accounts = g.CountAddresses() // accounts that only have a badge are not worth a view
	sets := make([]int, len(g.TagSets))    // number of records of primary lists, by tag set
	var growth monthCounter
	for _, list := range g.Primary {
		if list == None {
			continue
		}
		for _, r := range g.RecordsOf(list).All() {
			sets[r.Tags]++
		}
		if len(g.Added) > 0 {
			for _, added := range g.AddedOf(list) {
				growth.add(added)
			}
		}
	}
	n.Tags, n.Growth = g.mostUsedTags(sets), growth.counts()
	return n
}

// degrees returns the number of accounts for each nonzero count, in ascending order.
func degrees(counts []uint32) []DegreeCount {
	most := uint32(0)
	for _, n := range counts {
		most = max(most, n)
	}
	accounts := make([]int, most+1)
	for _, n := range counts {
		accounts[n]++
	}
	var all []DegreeCount
	for degree, n := range accounts {
		if degree > 0 && n > 0 {
			all = append(all, DegreeCount{Degree: degree, Accounts: n})
		}
	}
	return all
}

// mostUsedTags returns the most used tags. sets has the number of records by tag set.
func (g *Graph) mostUsedTags(sets []int) []LabelledCount {
	byTag := map[string]int{}
	for set, n := range sets {
		for _, tag := range g.TagSets[set].Tags {
			byTag[tag] += n
		}
	}
	var all []LabelledCount
	for tag, n := range byTag {
		if n > 0 {
			all = append(all, LabelledCount{Label: tag, Records: n})
		}
	}
	slices.SortFunc(all, func(a, b LabelledCount) int {
		return cmp.Or(cmp.Compare(b.Records, a.Records), cmp.Compare(a.Label, b.Label))
	})
	return all[:min(NetworkTags, len(all))]
}

// A monthCounter counts times by month (UTC). Successive times are often in the same month, so it
// does not compute the calendar for each.
type monthCounter struct {
	from, to int64         // month of the last time, in milliseconds
	n        int           // times of this month since the last change of month
	before   map[int64]int // earlier times, by beginning of the month
}

func (c *monthCounter) add(ms int64) {
	if ms == snapshot.NoTime {
		return
	}
	if ms < c.from || ms >= c.to {
		c.flush()
		year, month, _ := time.UnixMilli(ms).UTC().Date()
		c.from = time.Date(year, month, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
		c.to = time.Date(year, month+1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	}
	c.n++
}

func (c *monthCounter) flush() {
	if c.n == 0 {
		return
	}
	if c.before == nil {
		c.before = map[int64]int{}
	}
	c.before[c.from] += c.n
	c.n = 0
}

// counts returns the months with a time, in order.
func (c *monthCounter) counts() []LabelledCount {
	c.flush()
	var all []LabelledCount
	for _, from := range slices.Sorted(maps.Keys(c.before)) {
		all = append(all, LabelledCount{Label: time.UnixMilli(from).UTC().Format("2006-01"), Records: c.before[from]})
	}
	return all
}
