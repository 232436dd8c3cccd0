// Package rules has the rules of the graph: what a record means, and which of several rows, lists, names,
// profiles and badges counts. Each rule is here once, as a pure function; whatever makes, serves, searches
// or compares sites calls it. The rules are those of sections 1 to 3 and 7 of the design, which follow the
// contracts and the indexer of the Ethereum Follow Protocol.
//
// JavaScript has copies of Kind.Holds and StateOf under the same names, in client/followpress.js and
// explorer/src/data/rules.ts. TestAnswersInNode and TestUnits hold them to these. internal/twin/naive and
// fixtures/history spell the rules again on purpose: tests compare what they compute with what these make.
//
// The API may change in any release.
package rules

import (
	"bytes"
	"cmp"
	"iter"
	"slices"
)

// TypeAddress is the type of a record whose data is an address.
const TypeAddress = "address"

// A Kind is the version and type of a record.
type Kind struct {
	Version uint32
	Type    string // TypeAddress, or the decimal of another type
}

// An Identity is what identifies a record within its list. A row that repeats it adds its tags to the first
// one, as MergeTags says, and has no other effect.
type Identity[Kind, Data comparable] struct {
	Kind Kind
	Data Data
}

// UsualVersion is that of most records by which lists hold accounts. Rows of objects name others only.
const UsualVersion = 1

// heldKinds are the kinds of records by which lists hold accounts.
var heldKinds = []Kind{{UsualVersion, TypeAddress}}

// HeldKinds returns the kinds for which Holds reports true, the usual one first.
func HeldKinds() []Kind { return slices.Clone(heldKinds) }

// Holds reports whether a list holds an account by a record of this kind, if its data is the address of
// that account. What the list says of it is StateOf its tags.
func (k Kind) Holds() bool { return slices.Contains(heldKinds, k) }

// IsFollow reports whether a list follows an account by a record of a kind with these tags, if its data is
// the address of that account.
func IsFollow(k Kind, tags []string) bool { return k.Holds() && StateOf(tags) == Follow }

// A State is what a list says of an account that it holds by a record; 0 if it does not hold it. Files of
// sites contain these numbers.
type State uint8

// The bits of a State. Blocking and muting exclude a follow, not each other.
const (
	Follow State = 1 << iota
	Block
	Mute
)

// StateOf returns the state that a record with these tags makes: a follow, unless a tag says otherwise.
func StateOf(tags []string) State {
	s := Follow
	for _, tag := range tags {
		s = Tagged(s, tag)
	}
	return s
}

// Tagged returns the state that one more tag makes of a state, which is Follow without any tags.
func Tagged[Tag ~string | ~[]byte](s State, tag Tag) State {
	switch string(tag) {
	case "block":
		return s&^Follow | Block
	case "mute":
		return s&^Follow | Mute
	}
	return s
}

// IsTop8 reports whether a record with these tags puts the account that it holds into the top 8: a follow
// with that tag.
func IsTop8(tags []string) bool {
	return StateOf(tags) == Follow && slices.Contains(tags, "top8")
}

// A Measure is what accounts are counted and ranked by.
type Measure int

// The measures, in the order of the member ranks. The last three only have leaderboards of the API efp.
const (
	Mutuals   Measure = iota // accounts for which IsMutual reports true
	Followers                // accounts that follow the account
	Following                // accounts that it follows
	Top8                     // accounts that have it in their top 8
	Blocks                   // accounts that block it
	Blocking                 // accounts that it blocks
	Muted                    // accounts that mute it
	Muting                   // accounts that it mutes
)

// Counted returns what a record with a State counts, whose account is in the top 8 or not: for the account
// of the list, and for the one that the list holds by it. Only records of primary lists count. Callers must
// not change the slices.
func Counted(s State, top8 bool) (holder, held []Measure) {
	c := &counted[s]
	if s&Follow != 0 && top8 {
		return c.holder, topFollower
	}
	return c.holder, c.held
}

var counted = [...]struct{ holder, held []Measure }{
	Follow:       {[]Measure{Following}, []Measure{Followers}},
	Block:        {[]Measure{Blocking}, []Measure{Blocks}},
	Mute:         {[]Measure{Muting}, []Measure{Muted}},
	Block | Mute: {[]Measure{Blocking, Muting}, []Measure{Blocks, Muted}},
}

var topFollower = []Measure{Followers, Top8}

// IsMutual reports whether an account is a mutual of one that it follows: if that follows it back. Nobody
// is their own.
func IsMutual[Account comparable](account, follows Account, back bool) bool {
	return back && account != follows
}

// MergeTags returns the tags of a record from those of all its rows, sorted by bytes and without
// repetitions. It changes tags. The place and the time of the record are those of its first row.
func MergeTags(tags []string) []string {
	slices.Sort(tags)
	return slices.Compact(tags)
}

// AccountOf returns the account of a list: its user, or its owner if there is none.
func AccountOf[Address any](owner Address, user *Address) Address {
	if user != nil {
		return *user
	}
	return owner
}

// IsPrimary reports whether a list that an account names as its primary one is that: it belongs to the
// account. A list that does not exist is nobody's primary list.
func IsPrimary[Account comparable](naming, ofList Account) bool { return naming == ofList }

// A Namesake is an account with a name in its profile that other accounts may have too.
type Namesake struct {
	Refreshed bool  // it has the name by a refresh, not by the snapshot
	Fresh     int64 // of the profile, milliseconds since the Unix epoch
	Address   [20]byte
}

// Compare is negative if a has the name rather than b: one to which the snapshot gives the name before one that has it by
// a refresh, since a refresh takes no name from another account; then the one with the newer profile, then the one with
// the smaller address. Nobody finds the others by that name; their profiles still show it.
func (a Namesake) Compare(b Namesake) int {
	if a.Refreshed != b.Refreshed {
		if a.Refreshed {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(b.Fresh, a.Fresh), bytes.Compare(a.Address[:], b.Address[:]))
}

// IsNewer reports whether what came at a time, in milliseconds since the Unix epoch, replaces what there
// is from another time: profiles by Fresh, badges by when they were fetched. Of two that are equally new,
// the first one stays.
func IsNewer(at, than int64) bool { return at > than }

// OneBadge sorts badges, and leaves one of those that are equal by at, such as by account and event: of
// several tokens of an event, an account shows that with the smallest ID. It changes badges.
func OneBadge[Badge any](badges []Badge, at, tokenID func(a, b Badge) int) []Badge {
	slices.SortFunc(badges, func(a, b Badge) int {
		if order := at(a, b); order != 0 {
			return order
		}
		return tokenID(a, b)
	})
	return slices.CompactFunc(badges, func(a, b Badge) bool { return at(a, b) == 0 })
}

// RefreshedBadges are what refreshes have found out about badges since the snapshot: they replace its
// badges, or say that an account has none. At says which badge it is, such as an account and an event. The
// zero value has none.
type RefreshedBadges[At comparable] struct {
	AsOf    int64 // the time of the snapshot, milliseconds since the Unix epoch
	decided map[At]refreshedBadge
}

type refreshedBadge struct {
	tokenID string // "" if the account does not have the badge
	fetched int64
	object  int
}

// Add adds what an object says of a badge, "" for none, unless a newer object or the snapshot decides.
func (r *RefreshedBadges[At]) Add(at At, tokenID string, fetched int64, object int) {
	has, ok := r.decided[at]
	if !IsNewer(fetched, r.AsOf) || ok && !IsNewer(fetched, has.fetched) {
		return
	}
	if r.decided == nil {
		r.decided = map[At]refreshedBadge{}
	}
	r.decided[at] = refreshedBadge{tokenID, fetched, object}
}

// Decide reports whether the snapshot's badge has no effect.
func (r *RefreshedBadges[At]) Decide(at At) bool {
	_, ok := r.decided[at]
	return ok
}

// All yields the badges that accounts have, with the IDs of their tokens, in any order.
func (r *RefreshedBadges[At]) All() iter.Seq2[At, string] {
	return func(yield func(At, string) bool) {
		for at, b := range r.decided {
			if b.tokenID != "" && !yield(at, b.tokenID) {
				return
			}
		}
	}
}

// Objects returns how many objects decide on a badge.
func (r *RefreshedBadges[At]) Objects() int {
	objects := map[int]struct{}{}
	for _, b := range r.decided {
		objects[b.object] = struct{}{}
	}
	return len(objects)
}
