package render

import (
	"cmp"
	"fmt"
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
	texts texts // objects that do not depend on the snapshot
}

func (e *exploreRenderer) kinds() []UnitKind {
	return []UnitKind{{1, nil, e.renderNetwork}, {1, nil, e.renderTop}, e.texts.kind()}
}

func (e *exploreRenderer) renderNetwork(_ int, _ *Scratch, emit Emitter) {
	emit(objectBytes, func(b []byte) []byte { return e.network().Append(b) }, site.NetworkKey)
}

func (e *exploreRenderer) renderTop(_ int, _ *Scratch, emit Emitter) {
	first := e.ranks.First[rules.Followers]
	first = first[:min(TopAccounts, len(first))]
	accounts := make([]Account, len(first))
	for i, account := range first {
		accounts[i] = e.graph.shown(e.ranks, nil, account)
	}
	top, start := Top(accounts, e.ranks.Followed)
	emitText(emit, top, site.TopKey)
	emitText(emit, start, StartKey)
}

func (e *exploreRenderer) find(key site.Key) foundUnit {
	switch key {
	case site.NetworkKey:
		return foundUnit{e.renderNetwork, 0}
	case site.TopKey, StartKey:
		return foundUnit{e.renderTop, 0}
	}
	return e.texts.find(key)
}

func (e *exploreRenderer) network() Network {
	g := e.graph
	n := Network{
		AsOf: g.AsOf, Counts: g.Counts(),
		Followers: degrees(e.ranks.Count[rules.Followers]), Following: degrees(e.ranks.Count[rules.Following]),
	}
	n.Counts.Accounts = g.CountAddresses() // accounts that only have a badge are not worth a view
	sets := make([]int, len(g.TagSets))    // number of records of primary lists, by tag set
	growth := monthCounter{}
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

// A monthCounter counts times by month (UTC), in months since year 0.
type monthCounter map[int]int

// add counts a time in milliseconds since the Unix epoch.
func (c monthCounter) add(ms int64) {
	if ms != snapshot.NoTime {
		year, month, _ := time.UnixMilli(ms).UTC().Date()
		c[12*year+int(month)-1]++
	}
}

// counts returns the months with a time, in order.
func (c monthCounter) counts() []LabelledCount {
	var all []LabelledCount
	for _, month := range slices.Sorted(maps.Keys(c)) {
		all = append(all, LabelledCount{Label: fmt.Sprintf("%04d-%02d", month/12, month%12+1), Records: c[month]})
	}
	return all
}
