package graph

import (
	"slices"

	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// A View builds views of a graph, one after the other in the same memory.
type View struct {
	render.View
	of   render.Account
	List shownRecords // records of the view
}

// shownRecords are the records of a list, with what objects show of their subjects.
type shownRecords struct {
	*Graph
	ranks *Ranks
	ends  []render.TextEnds // by account; nil for site.APISpec
	All   RecordList
	read  uint32 // see Graph.Touch
}

func (r *shownRecords) Len() int { return r.All.Len() }

func (r *shownRecords) Form(i int) render.RecordForm {
	packed := r.All.At(i)
	return render.RecordForm{Kind: r.kinds[packed.Kind], TagSet: &r.TagSets[packed.Tags], Holds: r.holds[packed.Kind]}
}

func (r *shownRecords) State(i int) rules.State { return r.StateOf(r.All.At(i)) }

func (r *shownRecords) Address(i int) site.Address { return r.Accounts[r.All.data[i]] }

func (r *shownRecords) Text(i int) string {
	if data := r.All.data[i]; data&OtherData != 0 {
		return r.Other[data&^OtherData]
	}
	return ""
}

func (r *shownRecords) Shown(i int) render.Shown {
	account := r.All.data[i]
	p := r.Profile(account)
	s := render.Shown{ENS: p.ENS, SearchLen: p.SearchLen, Followers: r.ranks.Count[rules.Followers][account]}
	if r.ends != nil {
		s.Ends = r.ends[account]
	}
	return s
}

func (r *shownRecords) Followers(i int) uint32 { return r.ranks.Count[rules.Followers][r.All.data[i]] }

// Show makes a view of lists of a graph, without a current list.
func (v *View) Show(g *Graph, ranks *Ranks, ends []render.TextEnds) {
	v.List = shownRecords{Graph: g, ranks: ranks, ends: ends}
}

// SetAccount makes a view of an account with the selected lists, without a current list.
func (v *View) SetAccount(g *Graph, ranks *Ranks, ends []render.TextEnds, account uint32, lists []uint32) {
	v.Show(g, ranks, ends)
	v.of = g.Shown(ranks, ends, account)
	v.of.Profile.Name = string(g.Profiles.Name(account))
	v.View = render.View{
		Account: &v.of, User: v.of.Address.String(), Name: v.of.Profile.Name,
		Badges: v.Badges[:0], Tokens: v.Tokens[:0], Page: v.Page[:0], Tagged: v.Tagged[:0],
	}
	v.Records = &v.List
	for _, b := range g.BadgesOf(account) {
		v.Badges = append(v.Badges, b.Badge)
	}
	for _, list := range lists {
		v.Tokens = append(v.Tokens, g.Tokens[list])
	}
}

// SetList replaces the current list of the view; None removes it.
func (v *View) SetList(list uint32) {
	v.Token, v.List.All = "", RecordList{}
	if list != None {
		v.Token, v.List.All = v.List.Tokens[list], v.List.RecordsOf(list)
	}
}

// Shown returns what objects show of an account. ends is nil for site.APISpec.
func (g *Graph) Shown(ranks *Ranks, ends []render.TextEnds, account uint32) render.Account {
	a := render.Account{Address: g.Accounts[account], Profile: g.Profile(account)}
	if primary := g.Primary[account]; primary != None {
		a.Primary = g.Tokens[primary]
	}
	if ends != nil {
		a.Ends = ends[account]
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

// Ahead reads the data that rows show of the accounts [from, to).
func (r *shownRecords) Ahead(from, to int) {
	for accounts := range slices.Chunk(r.All.data[from:min(to, len(r.All.data))], render.AheadRows) {
		r.read += r.Touch(r.ranks, r.ends, false, accounts)
	}
}

// The accounts in a list, and the holders of an account, are scattered in memory. Rendered one by
// one, each row would wait several times: for an address, for counts, for the place of a profile,
// and for its texts. So the data of the next rows are read in advance, and the processor waits for
// many places at a time. BenchmarkReadAhead measures the difference.

// Limits for reading a profile ahead: the processor prefetches the rest of a longer text by itself.
const (
	cacheLine     = 64
	mostTextAhead = 16 * cacheLine
)

// Touch reads the data that rows show of at most AheadRows accounts, with or without the header of
// the profile. It skips data that is not an address. The returned sum only keeps the compiler from
// dropping the reads.
func (g *Graph) Touch(ranks *Ranks, ends []render.TextEnds, headers bool, accounts []uint32) (sum uint32) {
	var texts [render.AheadRows][]byte
	followers := ranks.Count[rules.Followers]
	for i, account := range accounts {
		if account&OtherData != 0 {
			continue
		}
		sum += uint32(g.Accounts[account][0])
		p := g.Profile(account)
		end := p.SearchLen
		if ends != nil { // else no row has numbers
			sum += followers[account] + ends[account].Name
			if headers {
				end = ends[account].Header
			}
		}
		texts[i] = p.ENS[:min(end, mostTextAhead)]
	}
	for _, text := range texts[:len(accounts)] {
		for at := 0; at < len(text); at += cacheLine {
			sum += uint32(text[at])
		}
	}
	return sum
}
