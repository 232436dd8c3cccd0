// Package graph keeps a follow graph in memory, in columns: accounts, lists, records, forms, profiles,
// operations, ranks, and the holders of each account. Package render renders its views.
package graph

import (
	"slices"
	"strings"

	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/snapshot"
)

// A Graph is a snapshot in memory. Accounts and lists are numbered from 0, in the order in which
// the snapshot first names them, and their attributes are in slices with that index. A record takes
// 5 bytes, twice that while records are grouped, and 4 more for ranking if it is a follow of a
// primary list. For the API efp it takes 8 more, and 9 more if a primary list holds an account by
// it.
type Graph struct {
	AsOf string

	Accounts []site.Address
	Numbers  Numbering[site.Address] // numbers of accounts
	Profiles profiles                // by account
	Primary  []uint32                // by account: its primary list or None

	Tokens  []string // by list
	Lists   Numbering[string]
	Owners  []uint32   // by list: its account
	Offsets []uint64   // by list: index of its first record; the last element is the number of records
	Records RecordList // records of all lists, in the order of lists
	Forms              // forms of records

	Names  []LookupName   // lookup names of accounts, sorted
	Events []site.Event   // in the order of the snapshot
	Badges []AccountBadge // sorted by account and event; smallest token of each
	Known  int            // number of accounts of rows and of lists, which come first

	// Only for the API efp.
	Added       []int64                // by record: milliseconds since the Unix epoch, snapshot.NoTime for none
	Recommended []snapshot.Recommended // in order, without duplicates; perhaps unknown to the graph
	Addresses   int                    // rows of accounts, accounts of lists, and addresses that a list holds
	ListOps     uint64                 // operations on lists that made the graph
	History     *History               // nil if the site shows none
}

// A LookupName is a name with its account.
type LookupName struct {
	Name    string
	Account uint32
}

// An AccountBadge is the badge of an account.
type AccountBadge struct {
	Account uint32
	render.Badge
}

// NewGraph returns an empty graph for a time in RFC 3339.
func NewGraph(asOf string) *Graph {
	g := &Graph{AsOf: asOf}
	g.Numbers, g.Lists = NewNumbering(&g.Accounts), NewNumbering(&g.Tokens)
	g.initForms()
	return g
}

// NewHistory returns an empty history of a graph with all accounts and lists.
func NewHistory(g *Graph) (*History, error) {
	growth, err := render.NewGrowth(g.AsOf)
	h := &History{Growth: growth, tokens: g.Tokens, known: uint32(len(g.Accounts)), tagOf: map[string]uint32{}}
	h.numbers = NewNumbering(&h.Others)
	h.Tag(nil)
	return h, err
}

// Account returns the number of an address, and numbers a new one.
func (g *Graph) Account(address site.Address) uint32 {
	n, _ := g.Numbers.Add(address)
	return n
}

// FillAccounts sets no primary list for accounts without a row.
func (g *Graph) FillAccounts() {
	g.Primary = slices.Grow(g.Primary, len(g.Accounts)-len(g.Primary))
	for len(g.Primary) < len(g.Accounts) {
		g.Primary = append(g.Primary, None)
	}
}

// CountAddresses counts the addresses of account rows, of lists, and of accounts held by a list.
func (g *Graph) CountAddresses() int {
	held, n := make([]bool, len(g.Accounts)-g.Known), g.Known
	for _, r := range g.Records.All() {
		if g.Holds(r) && int(r.Data) >= g.Known && !held[int(r.Data)-g.Known] {
			held[int(r.Data)-g.Known] = true
			n++
		}
	}
	return n
}

// RecordsOf returns the records of a list in its order.
func (g *Graph) RecordsOf(list uint32) RecordList {
	return g.Records.Part(g.Offsets[list], g.Offsets[list+1])
}

// Length returns the number of records of a list.
func (g *Graph) Length(list uint32) int { return int(g.Offsets[list+1] - g.Offsets[list]) }

// AddedOf returns the times when the records of a list were added, in order. It is for the API efp
// only.
func (g *Graph) AddedOf(list uint32) []int64 {
	return g.Added[g.Offsets[list]:g.Offsets[list+1]]
}

// IsFollow reports whether the list's account follows the record's address.
func (g *Graph) IsFollow(r PackedRecord) bool { return g.StateOf(r) == rules.Follow }

// StateOf returns the state that a record gives its address; 0 if the list does not hold an address
// by it.
func (g *Graph) StateOf(r PackedRecord) rules.State {
	if !g.Holds(r) {
		return 0
	}
	return g.TagSets[r.Tags].State
}

// Holds reports whether the list holds the record's address, regardless of its tags.
func (g *Graph) Holds(r PackedRecord) bool {
	return r.Data&OtherData == 0 && g.holds[r.Kind]
}

// Profile returns the profile of an account, or an empty one.
func (g *Graph) Profile(account uint32) render.Profile {
	if p, ok := g.Profiles.Of(account); ok {
		return p
	}
	return render.Profile{}.OrEmpty()
}

// IsPrimary reports whether a list is the primary one of its account.
func (g *Graph) IsPrimary(list uint32) bool { return g.Primary[g.Owners[list]] == list }

// BadgesOf returns the badges of an account, by event.
func (g *Graph) BadgesOf(account uint32) []AccountBadge {
	begin, _ := slices.BinarySearchFunc(g.Badges, account, func(b AccountBadge, a uint32) int {
		return int(int64(b.Account) - int64(a))
	})
	end := begin
	for end < len(g.Badges) && g.Badges[end].Account == account {
		end++
	}
	return g.Badges[begin:end]
}

// Counts returns the sizes of the graph.
func (g *Graph) Counts() site.Counts {
	c := site.Counts{Accounts: len(g.Accounts), Lists: len(g.Tokens), Records: g.Records.Len(), Names: len(g.Names), Events: len(g.Events)}
	for list := range g.Tokens {
		c.Follows += g.CountFollows(uint32(list))
		if g.IsPrimary(uint32(list)) {
			c.Primary++
		}
	}
	return c
}

// CountFollows counts the accounts that a list follows.
func (g *Graph) CountFollows(list uint32) int {
	n := 0
	for _, r := range g.RecordsOf(list).All() {
		if g.IsFollow(r) {
			n++
		}
	}
	return n
}

// AccountOfUser returns the account with an address or a lookup name.
func (g *Graph) AccountOfUser(user string) (account uint32, ok bool) {
	if address, err := site.ParseAddress(user); err == nil {
		account, ok = g.Numbers.Find(address)
		return account, ok
	}
	i, ok := slices.BinarySearchFunc(g.Names, user, func(n LookupName, name string) int { return strings.Compare(n.Name, name) })
	if !ok {
		return 0, false
	}
	return g.Names[i].Account, true
}
