// Package rules defines the graph: what a record means, and which of several rows, lists, names, profiles and badges
// wins. It has each rule once, as a pure function that all other packages call. The rules follow the contracts and
// the indexer of the Ethereum Follow Protocol.
//
// client/followpress.js and explorer/src/data/rules.ts have JavaScript copies of Kind.Holds and StateOf, which
// TestAnswersInNode and TestUnits compare with these. internal/twin/naive and fixtures/history implement the rules
// again on purpose, for tests.
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

// An Identity identifies a record within its list. A row that repeats it only adds its tags to the first one
// (MergeTags).
type Identity[Kind, Data comparable] struct {
	Kind Kind
	Data Data
}

// UsualVersion is the version of most records that hold accounts. Rows of objects state a version
// only if it differs.
const UsualVersion = 1

// heldKinds are the kinds of records that hold accounts.
var heldKinds = []Kind{{UsualVersion, TypeAddress}}

// HeldKinds returns the kinds that hold accounts, the usual one first.
func HeldKinds() []Kind { return slices.Clone(heldKinds) }

// Holds reports whether records of this kind hold the account in their data. StateOf returns the
// state.
func (k Kind) Holds() bool { return slices.Contains(heldKinds, k) }

// IsFollow reports whether a record of a kind with these tags is a follow.
func IsFollow(k Kind, tags []string) bool { return k.Holds() && StateOf(tags) == Follow }

// A State is a list's relation to an account; 0 if the list does not hold the account. Files of sites contain these
// numbers.
type State uint8

// The bits of a State. Blocking and muting exclude a follow, not each other.
const (
	Follow State = 1 << iota
	Block
	Mute
)

// StateOf returns the state of a record with these tags.
func StateOf(tags []string) State {
	s := Follow
	for _, tag := range tags {
		s = Tagged(s, tag)
	}
	return s
}

// Tagged returns the state s after one more tag. A record without tags is a Follow.
func Tagged[Tag ~string | ~[]byte](s State, tag Tag) State {
	switch string(tag) {
	case "block":
		return s&^Follow | Block
	case "mute":
		return s&^Follow | Mute
	}
	return s
}

// IsTop8 reports whether a record with these tags is a follow with the tag top8.
func IsTop8(tags []string) bool {
	return StateOf(tags) == Follow && slices.Contains(tags, "top8")
}

// A Measure is a count that ranks accounts.
type Measure int

// The measures, in the order of the member ranks. The last three have leaderboards of the API efp only.
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

// Counted returns the measures to which a record in a primary list adds one: for the account of the list, and for the
// held account. Callers must not modify the slices.
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

// IsMutual reports whether an account and one that it follows are mutuals. back reports whether the latter follows
// back. Nobody is their own mutual.
func IsMutual[Account comparable](account, follows Account, back bool) bool {
	return back && account != follows
}

// MergeTags returns the tags of a record from those of all its rows, sorted by bytes and unique. It modifies tags.
// The first row determines the place and time of the record.
func MergeTags(tags []string) []string {
	slices.Sort(tags)
	return slices.Compact(tags)
}

// AccountOf returns the account of a list: its user, or else its owner.
func AccountOf[Address any](owner Address, user *Address) Address {
	if user != nil {
		return *user
	}
	return owner
}

// IsPrimary reports whether the list that an account names as its primary one belongs to that
// account. A missing list belongs to no account.
func IsPrimary[Account comparable](naming, ofList Account) bool { return naming == ofList }

// A Namesake is one of several accounts with the same name in their profiles.
type Namesake struct {
	Refreshed bool  // the name comes from a refresh, not from the snapshot
	Fresh     int64 // time of the profile, milliseconds since the Unix epoch
	Address   [20]byte
}

// Compare is negative if a owns the name rather than b: names from the snapshot come first, since a refresh takes no
// name from another account; then the newer profile, then the smaller address. The other profiles still show the
// name, but cannot be looked up by it.
func (a Namesake) Compare(b Namesake) int {
	if a.Refreshed != b.Refreshed {
		if a.Refreshed {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(b.Fresh, a.Fresh), bytes.Compare(a.Address[:], b.Address[:]))
}

// IsNewer reports whether data of time at replaces data of time than, in milliseconds since the Unix epoch: Fresh of
// profiles, Fetched of badges. Data of equal age stays.
func IsNewer(at, than int64) bool { return at > than }

// OneBadge sorts badges and keeps one of the badges that at considers equal, for example by account
// and event: the one with the smallest token ID. It modifies badges.
func OneBadge[Badge any](badges []Badge, at, tokenID func(a, b Badge) int) []Badge {
	slices.SortFunc(badges, func(a, b Badge) int {
		if order := at(a, b); order != 0 {
			return order
		}
		return tokenID(a, b)
	})
	return slices.CompactFunc(badges, func(a, b Badge) bool { return at(a, b) == 0 })
}

// RefreshedBadges collects badges that refreshes found after the snapshot, or found missing. At identifies a badge,
// such as an account and an event. The zero value is empty.
type RefreshedBadges[At comparable] struct {
	AsOf    int64 // the time of the snapshot, milliseconds since the Unix epoch
	decided map[At]refreshedBadge
}

type refreshedBadge struct {
	tokenID string // "" if the account does not have the badge
	fetched int64
	object  int
}

// Add records the token in an object, "" for none, unless the snapshot or an earlier object is newer.
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

// Decide reports whether a refresh overrides the snapshot's badge.
func (r *RefreshedBadges[At]) Decide(at At) bool {
	_, ok := r.decided[at]
	return ok
}

// All yields the present badges with their token IDs, in any order.
func (r *RefreshedBadges[At]) All() iter.Seq2[At, string] {
	return func(yield func(At, string) bool) {
		for at, b := range r.decided {
			if b.tokenID != "" && !yield(at, b.tokenID) {
				return
			}
		}
	}
}

// Objects returns the number of objects that decide on a badge.
func (r *RefreshedBadges[At]) Objects() int {
	objects := map[int]struct{}{}
	for _, b := range r.decided {
		objects[b.object] = struct{}{}
	}
	return len(objects)
}
