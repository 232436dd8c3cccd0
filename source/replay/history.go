package replay

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/source"
)

// A Query says whose events a History has: with a User, what lists did to it, and what its lists did; with a List, what
// that did; with both, what the list did to the user. Lists of a user are those that it has or had, and those that it
// names or named as its primary list.
type Query struct {
	User *site.Address
	List *source.Word
}

// A Happening is an event of a History, and what it did. An event in a slot of several lists is one of each.
type Happening struct {
	source.Event        // without Value, but that of an operation
	At           int64  // the time, or that of the last event before it in its chain that is later; source.NoTime before there is any
	TokenID      string // of the list; "" for none
	Account      *site.Address
	Told
}

// History returns what happened, also without an effect, in the order of At, then of chains. What happened to the lists of
// others is there from their first operation on the user on: where they are, whose they are, and whether they are primary.
//
// It reads the events twice. Memory is in proportion to the lists that there are, and to what it returns. That is in
// proportion to the events: lists that share a slot share its events within a limit.
func History(events func() source.Events, d *source.Deployment, q Query) ([]Happening, error) {
	h := historian{
		Query: q, all: New(d), owners: newMany[source.Word, site.Address](), places: newMany[source.Word, slotKey](), users: newMany[slotKey, site.Address](),
		naming: newMany[source.Word, site.Address](), about: map[slotKey]int64{},
	}
	for e, err := range events() {
		if err == nil {
			err = h.survey(e)
		}
		if err != nil {
			return nil, err
		}
	}
	h.choose()
	h.narrator = newNarrator(h.all)
	h.clock = map[uint64]int64{}
	for e, err := range events() {
		if err == nil {
			err = h.look(e)
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(h.found, func(a, b Happening) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Contract.Chain, b.Contract.Chain), cmp.Compare(a.Block, b.Block), cmp.Compare(a.Index, b.Index))
	})
	return h.found, nil
}

// mostTold bounds what History returns of lists of a slot beyond alwaysShared: a thousand lists of a slot with a thousand
// events cost little.
const mostTold = 100_000

type historian struct {
	Query
	all *Replay // without operations

	// All that there ever was.
	owners many[source.Word, site.Address]
	places many[source.Word, slotKey]
	users  many[slotKey, site.Address]
	naming many[source.Word, site.Address] // as their primary list
	about  map[slotKey]int64               // when the first operation on the user was there

	// From when on what concerns the query.
	tokens   map[source.Word]int64
	slots    map[slotKey]int64
	accounts map[site.Address]int64 // their primary lists
	own      map[slotKey]bool       // slots of which all operations count
	sharing  map[slotKey][]*token   // lists that have or had the slots, by their ids

	*narrator
	clock  map[uint64]int64 // by chain
	found  []Happening
	shared int // of found, beyond alwaysShared lists of an event
}

// many has what belongs to each key, each once. Anybody can make that a lot for one key, so nothing looks through it.
type many[K, T comparable] struct {
	of   map[K][]T
	seen map[belongs[K, T]]struct{}
}

type belongs[K, T comparable] struct {
	key K
	one T
}

func newMany[K, T comparable]() many[K, T] {
	return many[K, T]{map[K][]T{}, map[belongs[K, T]]struct{}{}}
}

func (m many[K, T]) add(key K, one T) {
	if !m.has(key, one) {
		m.of[key], m.seen[belongs[K, T]{key, one}] = append(m.of[key], one), struct{}{}
	}
}

func (m many[K, T]) has(key K, one T) bool {
	_, ok := m.seen[belongs[K, T]{key, one}]
	return ok
}

// at is the time of an event as Happening.At has it.
func (h *historian) at(e source.Event) int64 {
	was, ok := h.clock[e.Contract.Chain]
	if !ok {
		was = source.NoTime
	}
	is := max(was, e.Time) // source.NoTime is less than any
	h.clock[e.Contract.Chain] = is
	return is
}

func (h *historian) survey(e source.Event) error {
	contract, err := h.all.checkContract(e)
	if err != nil {
		return err
	}
	key := slotKey{contract, e.Subject}
	switch e.Kind {
	case source.Op:
		if h.isAboutUser(e) {
			earliest(h.about, key, e.Time)
		}
		return nil
	case source.Transfer:
		h.owners.add(e.Subject, site.Address(e.Value))
	case source.Location:
		var t token
		if h.all.locate(&t, e.Value) == "" {
			h.places.add(e.Subject, t.slot)
		}
	case source.ListMetadata:
		if user, ok := User(e.Value); ok && e.Key == keyUser {
			h.users.add(key, user)
		}
	case source.AccountMetadata:
		if named, ok := primary(e.Value); ok && e.Key == keyPrimaryList {
			h.naming.add(named, accountOf(e))
		}
	}
	return h.all.Add(e)
}

// choose finds out what concerns the query.
func (h *historian) choose() {
	h.tokens, h.slots, h.accounts = map[source.Word]int64{}, map[slotKey]int64{}, map[site.Address]int64{}
	h.own, h.sharing = map[slotKey]bool{}, map[slotKey][]*token{}
	if h.User != nil && h.List == nil {
		h.accounts[*h.User] = math.MinInt64
	}
	for id, t := range h.all.tokens {
		from, own := int64(math.MinInt64), false
		switch {
		case h.List != nil:
			if own = id == *h.List; !own {
				continue
			}
		case h.isUsers(id):
			own = true
		default:
			from = math.MaxInt64
			for _, key := range h.places.of[id] {
				if first, ok := h.about[key]; ok {
					from = min(from, first)
				}
			}
			if from == math.MaxInt64 {
				continue
			}
		}
		h.tokens[id] = from
		for _, key := range h.places.of[id] {
			h.sharing[key] = append(h.sharing[key], t)
			h.own[key] = h.own[key] || own
			earliest(h.slots, key, from)
		}
		h.concerns(h.owners.of[id], from)
		h.concerns(h.naming.of[id], from)
	}
	for key, from := range h.slots {
		h.concerns(h.users.of[key], from)
	}
	for key := range h.about { // of no list, too
		if h.List == nil {
			earliest(h.slots, key, math.MaxInt64)
		}
	}
	for _, sharing := range h.sharing {
		slices.SortFunc(sharing, func(a, b *token) int { return slices.Compare(a.id[:], b.id[:]) })
	}
}

// concerns notes accounts whose primary lists concern the query.
func (h *historian) concerns(accounts []site.Address, from int64) {
	for _, a := range accounts {
		if a != (site.Address{}) {
			earliest(h.accounts, a, from)
		}
	}
}

func earliest[K comparable](of map[K]int64, key K, from int64) {
	if was, ok := of[key]; !ok || from < was {
		of[key] = from
	}
}

// isUsers reports whether a list is or was one of the user.
func (h *historian) isUsers(id source.Word) bool {
	if h.naming.has(id, *h.User) {
		return true
	}
	used := false
	for _, key := range h.places.of[id] {
		if h.users.has(key, *h.User) {
			return true
		}
		used = used || len(h.users.of[key]) > 0
	}
	return !used && h.owners.has(id, *h.User)
}

// look finds out whether an event concerns the query, and what it did.
func (h *historian) look(e source.Event) error {
	contract, err := h.all.checkContract(e)
	if err != nil {
		return err
	}
	at, key := h.at(e), slotKey{contract, e.Subject}
	switch e.Kind {
	case source.Transfer, source.Location:
		if from, ok := h.tokens[e.Subject]; ok {
			if told := h.tell(e, contract); e.Time >= from {
				h.add(e, at, h.all.tokens[e.Subject], told)
			}
		}
	case source.AccountMetadata:
		if from, ok := h.accounts[accountOf(e)]; ok && e.Time >= from && e.Key == keyPrimaryList {
			h.add(e, at, nil, h.tell(e, contract))
		}
	case source.ListMetadata:
		if from, ok := h.slots[key]; ok && e.Time >= from {
			h.addAll(e, at, key, h.tell(e, contract))
		}
	case source.Op:
		if _, ok := h.slots[key]; ok && (h.isAboutUser(e) || h.own[key] && (h.User == nil || h.List == nil)) {
			h.addAll(e, at, key, h.tell(e, contract))
		}
	}
	return nil
}

// isAboutUser reports whether an operation is about the user.
func (h *historian) isAboutUser(e source.Event) bool {
	o, ignored := parseOp(e.Value)
	if h.User == nil || ignored != "" {
		return false
	}
	a, ok := o.Address()
	return ok && a == *h.User
}

// addAll adds what happened in a slot, for each of its lists: those that have it now, or else that had it. Beyond a limit,
// the last one says how many more there are.
func (h *historian) addAll(e source.Event, at int64, key slotKey, told Told) {
	sharing := h.sharing[key]
	if len(sharing) == 0 {
		told.after += " (" + string(NoList) + ")"
		told.Effect = false
		h.add(e, at, nil, told)
		return
	}
	for i, t := range sharing {
		if i >= alwaysShared {
			if h.shared == mostTold {
				last := &h.found[len(h.found)-1]
				last.after += fmt.Sprintf(" (the same of %d more lists of this slot)", len(sharing)-i)
				return
			}
			h.shared++
		}
		of := told
		if !t.placed || t.slot != key {
			of.after += formerSlot
		}
		h.add(e, at, t, of)
	}
}

func (h *historian) add(e source.Event, at int64, t *token, told Told) {
	happening := Happening{Event: e, At: at, Told: told}
	if happening.Value = nil; e.Kind == source.Op {
		happening.Value = slices.Clone(e.Value)
	}
	if t != nil {
		happening.TokenID = t.id.Decimal()
		if row := h.all.list(t); row.Owner != (site.Address{}) {
			account := rules.AccountOf(row.Owner, row.User)
			happening.Account = &account
		}
	}
	h.found = append(h.found, happening)
}
