package generator

import (
	"math"
	"slices"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

// A graph is a snapshot in memory. Accounts and lists are numbered from 0, in the order in which the
// snapshot first names them, and their attributes are in slices with that index. A record takes
// 5 bytes, as many again while records are grouped, and 4 more for ranking if it is a follow of a
// primary list. For the API efp it takes 8 more, and 9 more if a primary list holds an account by it.
type graph struct {
	asOf string

	accounts []site.Address
	numbers  numbering[site.Address] // of accounts
	profiles profiles                // by account
	primary  []uint32                // by account; its primary list or none

	tokens  []string // by list
	lists   numbering[string]
	owners  []uint32   // by list; its account
	offsets []uint64   // by list; index of its first record; the last element is the number of records
	records recordList // of all lists, in the order of lists
	forms              // of records

	names  []lookupName // names of accounts that can be looked up, sorted
	events []site.Event // in the order of the snapshot
	badges []badge      // sorted by account and event; the smallest token of each
	known  int          // accounts of rows and of lists, which are the first ones

	// What only the API efp shows.
	added       []int64                // by record; milliseconds since the Unix epoch, noTime for none
	recommended []snapshot.Recommended // in order, each address once; the graph need not know it
	addresses   int                    // rows of accounts, accounts of lists, and addresses that a list holds
	listOps     uint64                 // operations on lists that made the graph
}

// none is an index that no account or list has.
const none = ^uint32(0)

// noTime is the time of a record of which it is not known.
const noTime = math.MinInt64

// otherData marks record.data as an index into graph.other instead of an account.
const otherData = uint32(1) << 31

// A lookupName is a name with its account.
type lookupName struct {
	name    string
	account uint32
}

// A badge is an account's token of an event.
type badge struct {
	account uint32
	event   uint32 // index into graph.events
	tokenID string
}

func newGraph(asOf string) *graph {
	g := &graph{asOf: asOf}
	g.numbers, g.lists = newNumbering(&g.accounts), newNumbering(&g.tokens)
	g.initForms()
	return g
}

// account returns the number of an address, a new one for a new address.
func (g *graph) account(address site.Address) uint32 {
	n, _ := g.numbers.add(address)
	return n
}

// fillAccounts gives accounts without a row no primary list.
func (g *graph) fillAccounts() {
	g.primary = slices.Grow(g.primary, len(g.accounts)-len(g.primary))
	for len(g.primary) < len(g.accounts) {
		g.primary = append(g.primary, none)
	}
}

// countAddresses counts the addresses of rows of accounts, of lists, and those that a list holds.
func (g *graph) countAddresses() int {
	held, n := make([]bool, len(g.accounts)-g.known), g.known
	for _, r := range g.records.all() {
		if g.holds(r) && int(r.data) >= g.known && !held[int(r.data)-g.known] {
			held[int(r.data)-g.known] = true
			n++
		}
	}
	return n
}

// recordsOf returns the records of a list in its order.
func (g *graph) recordsOf(list uint32) recordList {
	return g.records.part(g.offsets[list], g.offsets[list+1])
}

// length is the number of records of a list.
func (g *graph) length(list uint32) int { return int(g.offsets[list+1] - g.offsets[list]) }

// addedOf returns when the records of a list were added, in its order. It is for the API efp only.
func (g *graph) addedOf(list uint32) []int64 {
	return g.added[g.offsets[list]:g.offsets[list+1]]
}

// isFollow reports whether the list's account follows the record's address.
func (g *graph) isFollow(r record) bool {
	tags := &g.tagSets[r.tags]
	return g.holds(r) && !tags.block && !tags.mute
}

// isBlock reports whether the list's account blocks the record's address.
func (g *graph) isBlock(r record) bool {
	return g.holds(r) && g.tagSets[r.tags].block
}

// holds reports whether a record is about an address, whatever its tags.
func (g *graph) holds(r record) bool {
	return r.data&otherData == 0 && g.kinds[r.kind].followable()
}

// profile returns the profile of an account, or an empty one.
func (g *graph) profile(account uint32) profile {
	if p, ok := g.profiles.of(account); ok {
		return p
	}
	return emptyProfile
}

// isPrimary reports whether a list is the primary list of its account.
func (g *graph) isPrimary(list uint32) bool { return g.primary[g.owners[list]] == list }

// badgesOf returns the badges of an account, by event.
func (g *graph) badgesOf(account uint32) []badge {
	begin, _ := slices.BinarySearchFunc(g.badges, account, func(b badge, a uint32) int {
		return int(int64(b.account) - int64(a))
	})
	end := begin
	for end < len(g.badges) && g.badges[end].account == account {
		end++
	}
	return g.badges[begin:end]
}

// counts are the sizes of the graph.
func (g *graph) counts() site.Counts {
	c := site.Counts{Accounts: len(g.accounts), Lists: len(g.tokens), Records: g.records.len(), Names: len(g.names), Events: len(g.events)}
	for list := range g.tokens {
		c.Follows += g.countFollows(uint32(list))
		if g.isPrimary(uint32(list)) {
			c.Primary++
		}
	}
	return c
}

// countFollows is the number of follows of a list.
func (g *graph) countFollows(list uint32) int {
	n := 0
	for _, r := range g.recordsOf(list).all() {
		if g.isFollow(r) {
			n++
		}
	}
	return n
}
