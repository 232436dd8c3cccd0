package generator

import (
	"math"
	"slices"
	"strings"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

// A graph is a snapshot in memory. Accounts and lists are numbered from 0, in the order in which the
// snapshot first names them, and their attributes are in slices with that index. A record takes
// 12 bytes, 16 while it is loaded, and 4 more for ranking if it is a follow of a primary list. For
// the API efp it takes 8 more, and 9 more if a primary list holds an account by it.
type graph struct {
	asOf string

	accounts  []site.Address
	accountOf map[site.Address]uint32
	profiles  []profile // by account; ens is nil for accounts without a profile
	primary   []uint32  // by account; its primary list or none

	tokens   []string // by list
	listOf   map[string]uint32
	owners   []uint32 // by list; its account
	offsets  []uint64 // by list; index of its first record; the last element is the number of records
	records  []record // of all lists, in the order of lists
	kinds    []kind
	kindOf   map[kind]uint32
	otherOf  map[string]uint32
	other    []string // data that is not an address
	tagSets  []tagSet
	tagSetOf map[string]uint32

	names  []lookupName // names of accounts that can be looked up, sorted
	events []site.Event // in the order of the snapshot
	badges []badge      // sorted by account and event; the smallest token of each

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

// A record is an entry of a list.
type record struct {
	data uint32 // account, or otherData and an index
	kind uint32 // index into graph.kinds
	tags uint32 // index into graph.tagSets
}

// A kind is the version and type of a record; there are few.
type kind struct {
	version    uint32
	recordType string
}

// followable reports whether records of this kind can be follows or blocks.
func (k kind) followable() bool { return k.version == 1 && k.recordType == snapshot.TypeAddress }

// A tagSet is a set of tags of records; most records share a few.
type tagSet struct {
	tags              []string // sorted by bytes
	json              string   // the array as the API writes it
	block, mute, top8 bool
}

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
	g := &graph{
		asOf:      asOf,
		accountOf: map[site.Address]uint32{},
		listOf:    map[string]uint32{},
		kindOf:    map[kind]uint32{},
		otherOf:   map[string]uint32{},
		tagSetOf:  map[string]uint32{},
	}
	g.tagSet(nil)
	return g
}

// account returns the number of an address, a new one for a new address.
func (g *graph) account(address site.Address) uint32 {
	if id, ok := g.accountOf[address]; ok {
		return id
	}
	id := uint32(len(g.accounts))
	g.accountOf[address] = id
	g.accounts = append(g.accounts, address)
	return id
}

// fillAccounts gives accounts without a row no profile and no primary list.
func (g *graph) fillAccounts() {
	g.profiles = extend(g.profiles, len(g.accounts))
	for len(g.primary) < len(g.accounts) {
		g.primary = append(g.primary, none)
	}
}

// countHeld counts the accounts from a number on that a list holds.
func (g *graph) countHeld(from int) int {
	held, n := make([]bool, len(g.accounts)-from), 0
	for _, r := range g.records {
		if g.holds(r) && int(r.data) >= from && !held[int(r.data)-from] {
			held[int(r.data)-from] = true
			n++
		}
	}
	return n
}

func (g *graph) kind(version uint32, recordType string) uint32 {
	k := kind{version, recordType}
	if id, ok := g.kindOf[k]; ok {
		return id
	}
	id := uint32(len(g.kinds))
	k.recordType = strings.Clone(recordType) // do not keep the whole line in memory
	g.kindOf[k] = id
	g.kinds = append(g.kinds, k)
	return id
}

// tagSet returns the number of a sorted set of tags.
func (g *graph) tagSet(tags []string) uint32 {
	text := appendTags(nil, tags)
	if id, ok := g.tagSetOf[string(text)]; ok {
		return id
	}
	id := uint32(len(g.tagSets))
	set := tagSet{tags: slices.Clone(tags), json: string(text)}
	for i, tag := range set.tags {
		set.block = set.block || tag == "block"
		set.mute = set.mute || tag == "mute"
		set.top8 = set.top8 || tag == "top8"
		set.tags[i] = strings.Clone(tag) // do not keep the whole line in memory
	}
	g.tagSetOf[set.json] = id
	g.tagSets = append(g.tagSets, set)
	return id
}

// otherText returns the number of data that is not an address.
func (g *graph) otherText(data string) uint32 {
	if id, ok := g.otherOf[data]; ok {
		return id
	}
	id := uint32(len(g.other))
	data = strings.Clone(data) // do not keep the whole line in memory
	g.otherOf[data] = id
	g.other = append(g.other, data)
	return id
}

// recordsOf returns the records of a list in its order.
func (g *graph) recordsOf(list uint32) []record {
	return g.records[g.offsets[list]:g.offsets[list+1]]
}

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
	if p := g.profiles[account]; p.ens != nil {
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

// countFollows is the number of follows of a list.
func (g *graph) countFollows(list uint32) int {
	n := 0
	for _, r := range g.recordsOf(list) {
		if g.isFollow(r) {
			n++
		}
	}
	return n
}
