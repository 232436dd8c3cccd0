package render

import (
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// A view is an account with one of its lists, or with none, as objects show it. A graph makes one for each
// of its units, and a Unit is made one. What renders views knows neither.
type view struct {
	account *Account
	user    string // the address, as keys have it
	name    string // for looking the account up; "" for none
	unknown bool   // whether it stands for all addresses that the graph does not know
	badges  []Badge
	tokens  []string // lists of the account, by token ID; those that are selected

	token   string // of the list; "" for none
	records records
	held    int // accounts that the list holds

	// Only for the API efp.
	page   []Follower // the latest follows of the account, at most site.DefaultLimit
	tagged []Follower // those with tags, by token ID
}

// isPrimary reports whether the view has the primary list, or none if there is none.
func (v *view) isPrimary() bool { return v.token == v.account.Primary }

// records are those of a list, in its order.
type records interface {
	Len() int
	form(i int) RecordForm
	state(i int) rules.State    // what the list says of the address; 0 if it does not hold one
	address(i int) site.Address // that the record is about, if text is ""
	text(i int) string          // data that is no address, as the API shows it
	shown(i int) Shown          // of the address
	followers(i int) uint32     // of the address, as in shown
	ahead(from, to int)         // reads what is shown from one index to another, so that rendering need not wait for it
}

// A RecordForm is what records have in common.
type RecordForm struct {
	rules.Kind
	*TagSet
	holds bool // whether a list holds an account by such a record
}

// NewRecordForm returns a form, for sorted tags without repetitions.
func NewRecordForm(version uint32, recordType string, tags []string) RecordForm {
	k := rules.Kind{Version: version, Type: recordType}
	return RecordForm{k, NewTagSet(tags), k.Holds()}
}

// Shown is what a record shows of the account that it is about.
type Shown struct {
	ENS       []byte // profile, which may end after the member header, or for site.APISpec at SearchLen; nil for none
	SearchLen uint32 // as in Profile
	Followers uint32

	ends profileEnds // zero if they were not looked for
}

// texts returns name and avatar as JSON strings.
func (s *Shown) texts() (name, avatar []byte) {
	a := Account{Profile: Profile{ENS: s.ENS, SearchLen: s.SearchLen}, ends: s.ends}
	name, avatar, _ = a.texts()
	return name, avatar
}

// searched returns the beginning of the profile that searches show.
func (s *Shown) searched() []byte {
	if len(s.ENS) == 0 {
		return emptyProfile.ENS[:emptyProfile.SearchLen]
	}
	return s.ENS[:s.SearchLen]
}

// A graphView makes the views of a graph, each in place of the one before.
type graphView struct {
	view
	of   Account
	list graphRecords // those of the view
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

// setAccount makes a view of an account with the lists that are selected, but without one of them.
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

// setList adds a list, or none, to the view in place of another one.
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
		if len(counts) > 0 { // some are for the API efp only
			a.Counts[m] = counts[account]
		}
	}
	for m, ranks := range ranks.Shown {
		a.Ranks[m] = ranks[account]
	}
	return a
}
