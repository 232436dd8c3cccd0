package render

import (
	"slices"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// A graphView builds views of a graph, one after the other in the same memory.
type graphView struct {
	view
	of   Account
	list graphRecords // records of the view
}

type graphRecords struct {
	*Graph
	ranks *Ranks
	ends  []profileEnds // by account; nil for site.APISpec
	all   RecordList
	read  uint32 // see touch
}

func (r *graphRecords) Len() int { return r.all.Len() }

func (r *graphRecords) form(i int) RecordForm {
	packed := r.all.At(i)
	return RecordForm{r.kinds[packed.Kind], &r.TagSets[packed.Tags], r.holds[packed.Kind]}
}

func (r *graphRecords) state(i int) rules.State { return r.StateOf(r.all.At(i)) }

func (r *graphRecords) address(i int) site.Address { return r.Accounts[r.all.data[i]] }

func (r *graphRecords) text(i int) string {
	if data := r.all.data[i]; data&OtherData != 0 {
		return r.Other[data&^OtherData]
	}
	return ""
}

func (r *graphRecords) shown(i int) Shown {
	account := r.all.data[i]
	p := r.profile(account)
	s := Shown{ENS: p.ENS, SearchLen: p.SearchLen, Followers: r.ranks.Count[rules.Followers][account]}
	if r.ends != nil {
		s.ends = r.ends[account]
	}
	return s
}

func (r *graphRecords) followers(i int) uint32 { return r.ranks.Count[rules.Followers][r.all.data[i]] }

// setAccount makes a view of an account with the selected lists, without a current list.
func (v *graphView) setAccount(g *Graph, ranks *Ranks, ends []profileEnds, account uint32, lists []uint32) {
	v.of = g.shown(ranks, ends, account)
	v.of.Profile.Name = string(g.Profiles.Name(account))
	v.list = graphRecords{Graph: g, ranks: ranks, ends: ends}
	v.view = view{
		account: &v.of, user: v.of.Address.String(), name: v.of.Profile.Name,
		badges: v.badges[:0], tokens: v.tokens[:0], page: v.page[:0], tagged: v.tagged[:0],
	}
	v.records = &v.list
	for _, b := range g.BadgesOf(account) {
		v.badges = append(v.badges, b.Badge)
	}
	for _, list := range lists {
		v.tokens = append(v.tokens, g.Tokens[list])
	}
}

// setList replaces the current list of the view; None removes it.
func (v *graphView) setList(list uint32) {
	v.token, v.list.all = "", RecordList{}
	if list != None {
		v.token, v.list.all = v.list.Tokens[list], v.list.RecordsOf(list)
	}
}

func (g *Graph) shown(ranks *Ranks, ends []profileEnds, account uint32) Account {
	a := Account{Address: g.Accounts[account], Profile: g.profile(account)}
	if primary := g.Primary[account]; primary != None {
		a.Primary = g.Tokens[primary]
	}
	if ends != nil {
		a.ends = ends[account]
	}
	for m, counts := range ranks.Count {
		if len(counts) > 0 { // some measures are for the API efp only
			a.Counts[m] = counts[account]
		}
	}
	for m, ranks := range ranks.Shown {
		a.Ranks[m] = ranks[account]
	}
	return a
}

// ahead reads the data that rows show of the accounts [from, to).
func (r *graphRecords) ahead(from, to int) {
	for accounts := range slices.Chunk(r.all.data[from:min(to, len(r.all.data))], aheadRows) {
		r.read += r.touch(r.ranks, r.ends, false, accounts)
	}
}
