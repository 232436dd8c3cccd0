package whole

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/followpress/followpress/generator/internal/graph"
	"github.com/followpress/followpress/generator/internal/units"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/snapshot"
)

// An exploreRenderer renders the explorer and the objects that only it reads. Like Site, it is
// immutable.
type exploreRenderer struct {
	graph *graph.Graph
	ranks *graph.Ranks
	texts units.Texts // objects that do not depend on the snapshot
}

func (e *exploreRenderer) kinds() []units.Kind {
	return []units.Kind{{Units: 1, Render: e.renderNetwork}, {Units: 1, Render: e.renderTop}, e.texts.Kind()}
}

func (e *exploreRenderer) renderNetwork(_ int, _ *units.Scratch, emit render.Emitter) {
	emit(render.ObjectBytes, func(b []byte) []byte { return e.network().Append(b) }, site.NetworkKey)
}

func (e *exploreRenderer) renderTop(_ int, _ *units.Scratch, emit render.Emitter) {
	first := e.ranks.First[rules.Followers]
	first = first[:min(render.TopAccounts, len(first))]
	accounts := make([]render.Account, len(first))
	for i, account := range first {
		accounts[i] = e.graph.Shown(e.ranks, nil, account)
	}
	top, start := render.Top(accounts, e.ranks.Followed)
	render.EmitText(emit, top, site.TopKey)
	render.EmitText(emit, start, render.StartKey)
}

func (e *exploreRenderer) find(key site.Key) units.Found {
	switch key {
	case site.NetworkKey:
		return units.Found{Render: e.renderNetwork}
	case site.TopKey, render.StartKey:
		return units.Found{Render: e.renderTop}
	}
	return e.texts.Find(key)
}

func (e *exploreRenderer) network() render.Network {
	g := e.graph
	n := render.Network{
		AsOf: g.AsOf, Counts: g.Counts(),
		Followers: degrees(e.ranks.Count[rules.Followers]), Following: degrees(e.ranks.Count[rules.Following]),
	}
	n.Counts.Accounts = g.CountAddresses() // accounts that only have a badge are not worth a view
	sets := make([]int, len(g.TagSets))    // number of records of primary lists, by tag set
	growth := monthCounter{}
	for _, list := range g.Primary {
		if list == graph.None {
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
	n.Tags, n.Growth = e.mostUsedTags(sets), growth.counts()
	return n
}

// degrees returns the number of accounts for each nonzero count, in ascending order.
func degrees(counts []uint32) []render.DegreeCount {
	most := uint32(0)
	for _, n := range counts {
		most = max(most, n)
	}
	accounts := make([]int, most+1)
	for _, n := range counts {
		accounts[n]++
	}
	var all []render.DegreeCount
	for degree, n := range accounts {
		if degree > 0 && n > 0 {
			all = append(all, render.DegreeCount{Degree: degree, Accounts: n})
		}
	}
	return all
}

// mostUsedTags returns the most used tags. sets has the number of records by tag set.
func (e *exploreRenderer) mostUsedTags(sets []int) []render.LabelledCount {
	byTag := map[string]int{}
	for set, n := range sets {
		for _, tag := range e.graph.TagSets[set].Tags {
			byTag[tag] += n
		}
	}
	var all []render.LabelledCount
	for tag, n := range byTag {
		if n > 0 {
			all = append(all, render.LabelledCount{Label: tag, Records: n})
		}
	}
	slices.SortFunc(all, func(a, b render.LabelledCount) int {
		return cmp.Or(cmp.Compare(b.Records, a.Records), cmp.Compare(a.Label, b.Label))
	})
	return all[:min(render.NetworkTags, len(all))]
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
func (c monthCounter) counts() []render.LabelledCount {
	var all []render.LabelledCount
	for _, month := range slices.Sorted(maps.Keys(c)) {
		all = append(all, render.LabelledCount{Label: fmt.Sprintf("%04d-%02d", month/12, month%12+1), Records: c[month]})
	}
	return all
}
