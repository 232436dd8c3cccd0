package pipeline

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/followpress/followpress/beam/internal/dofn"
	"github.com/followpress/followpress/beam/internal/input"
	"github.com/followpress/followpress/beam/internal/wire"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/snapshot"
)

// Kinds of values by the key of an account, once everything about accounts is known.
const (
	kindShown   byte = iota
	kindHolds        // addresses that the account's primary list holds, each after its state
	kindRequest      // from a list with a record about the account
)

// Kinds of values by unit: its account with its list, or shown fields of others.
const (
	kindUnit byte = iota
	kindAnswer
	kindFollowers
)

func init() {
	dofn.Register7x1(&dispatchFn{})
}

// A dispatchFn has everything about an account: its shown fields and its lists. It sends these
// fields to all objects that show it, and requests the fields that its lists show.
type dispatchFn struct {
	Config site.Config
	AsOf   int64 // milliseconds since the Unix epoch

	stats tally
	hot   salts
	list  wire.List
	holds map[string][]byte
	value []byte
}

// An accountState is all data of an account.
type accountState struct {
	wire.Person
	isRow, isNamed bool
	badges         []wire.BadgeRow
	refreshed      []wire.Refreshed // badges
	lists          [][]byte
	recommended    []byte // place and class; nil unless recommended
	places         []wire.Place
}

// ProcessElement dispatches an account. The side input has the hot accounts. It emits shown fields
// of the account and requests by account key, units by their keys, and parts of objects that show
// many accounts.
func (f *dispatchFn) ProcessElement(
	address string, values, hot func(*[]byte) bool, accounts, units, parts func(string, []byte), _ func(string, int64),
) error {
	f.hot.read(hot)
	a := accountState{Person: wire.Person{Address: wire.KeyAddress(address)}}
	var value []byte
	for values(&value) {
		if err := a.add(value); err != nil {
			return err
		}
		value = nil
	}
	if !a.isNamed {
		a.Name = ""
	}
	f.mergeBadges(&a)
	lists, err := f.sortLists(&a)
	if err != nil {
		return err
	}
	f.shown(&a, lists, accounts)
	f.boards(&a, parts)
	for i := range lists {
		if err := f.dispatchList(&a, &lists[i], lists, accounts, units); err != nil {
			return err
		}
	}
	if a.Primary == "" && (f.Config.EFP() && f.exists(&a) || a.Name != "") {
		u := wire.Unit{Person: a.Person, Badges: a.badges, Tokens: tokensOf(lists)}
		units(accountUnit(a.Address), u.Append([]byte{kindUnit}))
	}
	if !f.Config.EFP() {
		f.users(&a, parts)
	}
	return nil
}

func (f *dispatchFn) FinishBundle(_ func(*[]byte) bool, _, _, _ func(string, []byte), stats func(string, int64)) {
	f.stats.flush(stats)
}

// add adds a value.
func (a *accountState) add(value []byte) error {
	d := wire.Decode(value[1:])
	switch value[0] {
	case kindProfile:
		a.isRow = d.Bool()
		a.Profile = d.Profile()
	case kindName:
		a.isNamed = true
	case kindCounts:
		a.Counts = d.Counts()
	case kindPlaces:
		for d.More() {
			p := d.Place()
			a.places = append(a.places, p)
			if p.Count > 0 && int(p.Measure) < len(a.Ranks) {
				a.Ranks[p.Measure] = p.Place
			}
		}
	case kindList:
		a.lists = append(a.lists, value[1:])
	case kindBadge:
		a.badges = append(a.badges, d.BadgeRow())
	case kindRefreshedOf:
		if r := d.Refreshed(); r.Badges {
			a.refreshed = append(a.refreshed, r)
		}
	case kindRecommended:
		a.recommended = value[1:]
	}
	return d.Err()
}

// mergeBadges replaces badges by newer ones, and keeps the smallest token of each event.
func (f *dispatchFn) mergeBadges(a *accountState) {
	slices.SortFunc(a.refreshed, func(x, y wire.Refreshed) int { return cmp.Compare(x.Number, y.Number) })
	refreshed := rules.RefreshedBadges[uint32]{AsOf: f.AsOf} // by event
	for n, r := range a.refreshed {
		if len(r.Held) == 0 && rules.IsNewer(r.Fetched, f.AsOf) {
			f.stats.add(input.WithoutEffect(input.TableRefreshed, unknownEvent), 1)
		}
		for _, row := range r.Held {
			refreshed.Add(row.Event, row.TokenID, r.Fetched, n)
		}
	}
	if n := refreshed.Objects(); n > 0 {
		f.stats.add(input.MergedBadges, int64(n))
	}
	if !f.Config.EFP() && len(a.lists) == 0 {
		f.stats.add(input.WithoutEffect(snapshot.TableBadges, listlessOwner), int64(len(a.badges)))
		a.badges = nil
		return
	}
	a.badges = slices.DeleteFunc(a.badges, func(row wire.BadgeRow) bool { return refreshed.Decide(row.Event) })
	for event, token := range refreshed.All() {
		a.badges = append(a.badges, wire.BadgeRow{Event: event, TokenID: token})
	}
	a.badges = rules.OneBadge(a.badges, func(x, y wire.BadgeRow) int { return cmp.Compare(x.Event, y.Event) },
		func(x, y wire.BadgeRow) int { return site.CompareTokenIDs(x.TokenID, y.TokenID) })
}

// An ownList is a list of an account.
type ownList struct {
	token   string
	primary bool
	encoded []byte
}

// sortLists sorts the lists of an account by token ID, and finds its primary one.
func (f *dispatchFn) sortLists(a *accountState) ([]ownList, error) {
	lists := make([]ownList, len(a.lists))
	for i, encoded := range a.lists {
		d := wire.Decode(encoded)
		token, _, primary := d.Text(), d.Address(), d.Bool()
		if err := d.Err(); err != nil {
			return nil, err
		}
		lists[i] = ownList{token, primary, encoded}
		if primary {
			a.Primary = token
		}
	}
	slices.SortFunc(lists, func(x, y ownList) int { return site.CompareTokenIDs(x.token, y.token) })
	return lists, nil
}

func tokensOf(lists []ownList) []string {
	tokens := make([]string, len(lists))
	for i := range lists {
		tokens[i] = lists[i].token
	}
	return tokens
}

// exists reports whether the account is known to be in the graph. Records that do not count may
// also name it.
func (f *dispatchFn) exists(a *accountState) bool {
	return a.isRow || len(a.lists) > 0 || a.ENS != nil || len(a.badges) > 0 || a.Counts != (wire.Counts{})
}

// shown emits the fields that lists show of the account, under each of its keys.
func (f *dispatchFn) shown(a *accountState, lists []ownList, emit func(string, []byte)) {
	if !f.exists(a) {
		return
	}
	s := wire.Shown{
		IsKnown: a.isRow || len(lists) > 0, SearchLen: a.SearchLen, Primary: a.Primary,
		Followers: a.Counts[rules.Followers], Following: a.Counts[rules.Following],
	}
	if len(a.ENS) > 0 {
		s.ENS = a.ENS[:shownLen(f.Config, a.ENS, a.SearchLen)]
	}
	if f.Config.EFP() {
		s.Tokens = tokensOf(lists)
		p := person(&a.Person)
		s.Person = render.AppendPerson(nil, &p)
	}
	f.value = s.Append(append(f.value[:0], kindShown))
	f.hot.all(a.Address, func(_ uint64, key string) { emit(key, f.value) })
}

// unitKey returns the key of the unit of a list.
func unitKey(a site.Address, token string, primary bool) string {
	if primary {
		return accountUnit(a)
	}
	return "t" + token
}

// accountUnit returns the key of the unit of an account with its primary list, or with none.
func accountUnit(a site.Address) string { return "a" + wire.AddressKey(a) }

// dispatchList requests the fields that a list shows, and sends the list to its unit.
func (f *dispatchFn) dispatchList(a *accountState, own *ownList, lists []ownList, accounts, units func(string, []byte)) error {
	u := wire.Unit{Person: a.Person, Badges: a.badges, List: own.encoded}
	if own.primary || !f.Config.EFP() {
		u.Tokens = tokensOf(lists)
	}
	key := unitKey(a.Address, own.token, own.primary)
	units(key, u.Append([]byte{kindUnit}))
	l := &f.list
	d := wire.Decode(own.encoded)
	d.List(l)
	if err := d.Err(); err != nil {
		return err
	}
	efp := f.Config.EFP()
	if f.holds == nil {
		f.holds = map[string][]byte{}
	}
	clear(f.holds)
	for i := range l.Records {
		r := &l.Records[i]
		if !r.IsAddress {
			continue
		}
		q := wire.Request{Unit: key, Record: uint32(i), IsHeld: l.IsHeld(r), Answers: l.IsFollow(r) || efp && l.IsHeld(r)}
		if efp && own.primary && q.IsHeld {
			q.Holder = wire.Holder{
				Token: l.Token, Account: a.Address, IsFollow: l.IsFollow(r), Added: r.Added,
				Followers: a.Counts[rules.Followers], Tags: l.Forms[r.Form].Tags,
			}
			salted := f.hot.key(a.Address, r.Address[:])
			f.holds[salted] = append(append(f.holds[salted], byte(l.State(r))), r.Address[:]...)
		}
		f.value = q.Append(append(f.value[:0], kindRequest))
		accounts(f.hot.key(r.Address, a.Address[:]), f.value)
	}
	for salted, holds := range f.holds {
		accounts(salted, append([]byte{kindHolds}, holds...))
	}
	return nil
}

// shownLen returns the length of the prefix of an encoded profile that lists and followers show.
func shownLen(c site.Config, ens []byte, searchLen uint32) int {
	if c.EFP() {
		return render.HeaderEnd(ens, searchLen)
	}
	return int(searchLen)
}

// person converts a Person for the renderer.
func person(p *wire.Person) render.Account {
	return render.Account{
		Address: p.Address, Profile: render.Profile(p.Profile), Primary: p.Primary, Counts: p.Counts, Ranks: p.Ranks,
	}
}

// boards emits the account's entries of leaderboards, and its row of the recommended accounts.
func (f *dispatchFn) boards(a *accountState, emit func(string, []byte)) {
	if a.recommended != nil {
		d := wire.Decode(a.recommended)
		place := d.Uvarint()
		p := person(&a.Person)
		row := render.AppendRecommended(nil, a.Address, d.Text(), &p)
		emit(recommendedPart(int(place)/site.SearchShardSize), placed(int(place), row))
	}
	var inOrder [wire.Ranked]int // place in the order of each of the first measures, from 0; -1 for none
	for m := range inOrder {
		inOrder[m] = -1
	}
	for _, p := range a.places {
		place, m := int(p.Place)-1, rules.Measure(p.Measure)
		if int(m) < len(inOrder) {
			inOrder[m] = place
		}
		if p.Count == 0 {
			continue
		}
		if place < f.Config.LeaderboardMax {
			emit(boardPart(m), placed(place, binary.AppendUvarint(a.Address[:], uint64(p.Count))))
		}
		if f.Config.Explorer && m == rules.Followers && place < render.TopAccounts {
			emit(keyTop, placed(place, a.Append(nil)))
		}
	}
	if main := inOrder[rules.Mutuals]; f.Config.EFP() && main >= 0 {
		p := person(&a.Person)
		emit(rankedPart(main/site.SearchShardSize), placed(main, render.AppendRankedRow(nil, &p)))
		if main < site.RankedLimit {
			emit(keyRankedFirst, placed(main, a.Append(nil)))
		}
		for _, sort := range site.RankedSorts() {
			place := inOrder[render.SortMeasure(sort)]
			emit(orderPart(sort, place/site.RankedOrderSize), placed(place, binary.AppendUvarint(nil, uint64(main))))
		}
	}
}

// users emits the account's entries in the user buckets of the API spec.
func (f *dispatchFn) users(a *accountState, emit func(string, []byte)) {
	add := func(user string) {
		emit(userPart(user), wire.AppendText(wire.AppendText([]byte{partUser}, user), a.Primary))
	}
	if a.Primary != "" {
		add(a.Address.String())
	}
	if a.Name != "" {
		add(a.Name)
	}
}

// placed prepends a place to a row.
func placed(place int, row []byte) []byte {
	return append(binary.AppendUvarint(make([]byte, 0, 4+len(row)), uint64(place)), row...)
}

// sortPlaced sorts rows by place, and removes the places.
func sortPlaced(rows [][]byte) (places []int, sorted [][]byte) {
	type row struct {
		place int
		row   []byte
	}
	all := make([]row, len(rows))
	for i, r := range rows {
		place, n := binary.Uvarint(r)
		all[i] = row{int(place), r[n:]}
	}
	slices.SortFunc(all, func(a, b row) int { return cmp.Or(cmp.Compare(a.place, b.place), bytes.Compare(a.row, b.row)) })
	for _, r := range all {
		places, sorted = append(places, r.place), append(sorted, r.row)
	}
	return places, sorted
}
