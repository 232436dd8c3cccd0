package replay

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
)

// Rows keep the rows of the lists and records of a Replay in memory, and make only those again that
// events have changed. What they have is what Write writes, byte for byte. They may be used by one
// goroutine at a time, which is that of the Replay.
type Rows struct {
	replay  *Replay
	shown   map[source.Word]shown    // lists with rows, as they have them
	sharing map[slotKey][]*token     // lists of a slot, by their ids
	minted  []*token                 // all lists, by their ids
	slots   map[slotKey]slotRows     // that a list has
	left    map[source.Word]struct{} // lists without the records of their slot, beyond the limit
	silent  map[source.Word]struct{} // other lists without the operations of their slot, beyond the limit
	primary map[site.Address]source.Word

	lists   snapshot.Rows
	records []snapshot.Piece
	at      map[source.Word]int // in records, by list
	ops     recent
	chains  []uint64 // of contracts, by their numbers
}

// shown is what rows say of a list.
type shown struct {
	owner, user site.Address
	placed      bool
	slot        slotKey
}

// A slotRows has the rows of a slot, for all lists that have it.
type slotRows struct {
	rows snapshot.Rows
	size int // as sharing.has counts
	ops  int // the same of the rows of operations
}

// A Change says what an Update has changed. Its slices are sorted, without doubles.
type Change struct {
	Any      bool           // whether any row is another
	Lists    []string       // token ids of lists with other rows
	Accounts []site.Address // those of these lists, before and after; those whom their other records and operations are about; those of Primary
	Primary  []site.Address // accounts that name another primary list
}

// Rows begins to keep the rows of a Replay, which needs one Update to have any. A Replay has one Rows.
func (r *Replay) Rows() *Rows {
	x := &Rows{shown: map[source.Word]shown{}, slots: map[slotKey]slotRows{}, primary: map[site.Address]source.Word{}, ops: recent{most: mostInChunk}}
	x.Replace(r)
	return x
}

// Replace makes the rows those of another Replay of the same deployment, from the next Update on.
func (x *Rows) Replace(r *Replay) {
	x.replay, r.rows = r, newTouched()
	x.chains = make([]uint64, len(r.contracts))
	for contract, n := range r.contracts {
		x.chains[n] = contract.Chain
	}
	for id := range r.tokens {
		r.rows.token(id)
	}
	for id := range x.shown {
		r.rows.token(id)
	}
	for key := range r.slots {
		r.rows.slot(key)
	}
	for key := range x.slots {
		r.rows.slot(key)
	}
	for account := range r.primary {
		r.rows.account(account)
	}
	for account := range x.primary {
		r.rows.account(account)
	}
}

// Lists are the rows of lists, as of the last Update.
func (x *Rows) Lists() snapshot.Rows { return x.lists }

// Records are the rows of records, as of the last Update. They do not change.
func (x *Rows) Records() []snapshot.Piece { return x.records }

// Ops are the rows of ops since a time, in milliseconds since the Unix epoch, which must not be before that of the last
// Update. They do not change.
func (x *Rows) Ops(since int64) ([]snapshot.Piece, error) { return x.ops.since(since) }

// Primary is the token id of the list that an account names as primary, as of the last Update; "" for none.
func (x *Rows) Primary(account site.Address) string {
	if token, ok := x.primary[account]; ok {
		return token.Decimal()
	}
	return ""
}

// ListOps is as source.Graph has it.
func (x *Rows) ListOps() uint64 { return x.replay.report.ListOps }

// Update makes the rows again that events have changed since the last one. Rows of ops are kept since a time, in
// milliseconds since the Unix epoch: NoOps for none. That the time moves on changes nothing; if it goes back by more than
// an hour, all rows of ops are made again. After an error the Rows must not be used any more.
func (x *Rows) Update(ctx context.Context, opsSince int64) (Change, error) {
	t := x.replay.rows
	x.replay.rows = newTouched()
	u := update{
		Rows: x, lists: map[source.Word]struct{}{}, accounts: map[site.Address]struct{}{}, first: x.sharing == nil,
		other: map[source.Word]struct{}{}, visible: map[slotKey][]snapshot.Op{},
	}
	if len(t.tokens) > 0 || x.sharing == nil {
		u.place()
	}
	older, err := x.ops.begin(opsSince)
	if err != nil {
		return Change{}, err
	}
	if older {
		for key := range u.sharing {
			t.slot(key)
		}
	}
	again := u.changedLists(t)
	if err := u.replaySlots(ctx, t, again); err != nil {
		return Change{}, err
	}
	if u.again || u.first {
		if err := u.order(); err != nil {
			return Change{}, err
		}
	} else if err := u.exchange(); err != nil {
		return Change{}, err
	}
	if err := u.replaceOps(ctx); err != nil {
		return Change{}, err
	}
	c := Change{Primary: u.primaries(t)}
	for _, id := range slices.SortedFunc(maps.Keys(u.lists), func(a, b source.Word) int { return slices.Compare(a[:], b[:]) }) {
		c.Lists = append(c.Lists, id.Decimal())
	}
	c.Accounts = slices.SortedFunc(maps.Keys(u.accounts), site.Address.Compare)
	c.Any = len(c.Lists)+len(c.Primary) > 0
	return c, nil
}

// An update is a call of Update.
type update struct {
	*Rows
	lists    map[source.Word]struct{} // with other rows
	accounts map[site.Address]struct{}
	first    bool      // nobody asks what has changed
	again    bool      // the table lists has other rows, or records are in other places
	slots    []slotKey // otherwise the slots with other rows

	other   map[source.Word]struct{}  // lists that may have other rows of ops
	visible map[slotKey][]snapshot.Op // of the slots that were replayed, without token ids
}

// changed notes that a list has other rows, before or after.
func (u *update) changed(id source.Word, as shown) {
	u.lists[id] = struct{}{}
	u.accounts[as.account()] = struct{}{}
}

func (s *shown) account() site.Address {
	if s.user != (site.Address{}) {
		return rules.AccountOf(s.owner, &s.user)
	}
	return rules.AccountOf(s.owner, nil)
}

// place finds out again which lists there are, and where.
func (u *update) place() {
	u.minted, u.sharing = u.replay.minted(), map[slotKey][]*token{}
	for _, t := range u.minted {
		if t.placed {
			u.sharing[t.slot] = append(u.sharing[t.slot], t)
		}
	}
}

// show is what rows are to say of a list; ok is false if there is no such list.
func (u *update) show(id source.Word) (s shown, ok bool) {
	t := u.replay.tokens[id]
	if t == nil || t.owner == (site.Address{}) {
		return shown{}, false
	}
	s = shown{owner: t.owner, placed: t.placed}
	if t.placed {
		s.slot = t.slot
		if at, ok := u.replay.slots[t.slot]; ok {
			s.user = at.user
		}
	}
	return s, true
}

// changedLists finds lists whose own rows are others, or that are elsewhere. It returns the slots
// that they have or had.
func (u *update) changedLists(t *touched) (places map[slotKey]struct{}) {
	ids := maps.Clone(t.tokens)
	for key := range t.slots {
		for _, t := range u.sharing[key] {
			ids[t.id] = struct{}{}
		}
	}
	places = map[slotKey]struct{}{}
	for id := range ids {
		was, had := u.shown[id]
		is, has := u.show(id)
		if had == has && was == is {
			continue
		}
		u.again = true
		u.other[id] = struct{}{}
		moved := was.placed != is.placed || was.slot != is.slot
		if had {
			u.changed(id, was)
			delete(u.shown, id)
		}
		if has {
			u.changed(id, is)
			u.shown[id] = is
		}
		for _, s := range []shown{was, is} {
			if !s.placed {
				continue
			}
			places[s.slot] = struct{}{}
			if moved || had != has || was.account() != is.account() {
				u.about(u.Rows.slots[s.slot].rows, snapshot.Rows{})
			}
		}
	}
	return places
}

// about notes the accounts that records are about which only one of two has.
func (u *update) about(one, other snapshot.Rows) {
	if u.first {
		return
	}
	for _, a := range snapshot.Addresses(one, other) {
		u.accounts[a] = struct{}{}
	}
}

// replaySlots makes the rows of slots again: of those that were touched, and of those of places that
// have no rows yet. Slots without a list have none.
func (u *update) replaySlots(ctx context.Context, t *touched, places map[slotKey]struct{}) error {
	for key := range places {
		t.slot(key) // its operations are not kept
	}
	var keys []slotKey
	for _, of := range []map[slotKey]struct{}{places, t.slots} {
		for key := range of {
			if len(u.sharing[key]) == 0 {
				delete(u.Rows.slots, key)
			}
		}
	}
	for key := range t.slots {
		if len(u.sharing[key]) > 0 {
			keys = append(keys, key)
		}
	}
	made, err := u.rowsOf(ctx, keys)
	if err != nil {
		return err
	}
	for i, key := range keys {
		was, is := u.Rows.slots[key], made[i]
		for _, t := range u.sharing[key] {
			u.other[t.id] = struct{}{}
		}
		u.again = u.again || is.ops != was.ops && len(u.sharing[key]) > alwaysShared
		if u.Rows.slots[key] = is; is.rows.Equal(was.rows) {
			continue
		}
		// How many rows there are may decide whether other lists have any.
		u.again = u.again || (was.rows.Len() == 0) != (is.rows.Len() == 0) || len(u.sharing[key]) > alwaysShared
		u.slots = append(u.slots, key)
		for _, t := range u.sharing[key] {
			u.changed(t.id, u.shown[t.id])
		}
		u.about(was.rows, is.rows)
	}
	return nil
}

// rowsOf are the rows of slots, made on all cores. It notes their operations.
func (u *update) rowsOf(ctx context.Context, keys []slotKey) ([]slotRows, error) {
	made, visible := make([]slotRows, len(keys)), make([][]snapshot.Op, len(keys))
	var next atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range min(runtime.GOMAXPROCS(0), len(keys)) {
		g.Go(func() error {
			var list List
			var numbers []int32
			for {
				i := int(next.Add(1)) - 1
				if i >= len(keys) || ctx.Err() != nil {
					return ctx.Err()
				}
				s, ok := u.replay.slots[keys[i]]
				if !ok {
					continue
				}
				var records []snapshot.Record
				records, numbers = u.replay.replay(&list, s, numbers[:0])
				records, size := fitting(records)
				rows, err := snapshot.RecordRows(records)
				if err != nil {
					return err
				}
				made[i] = slotRows{rows: rows, size: size}
				visible[i], made[i].ops = u.opsOf(numbers, u.chains[keys[i].contract])
			}
		})
	}
	err := g.Wait()
	for i, key := range keys {
		u.visible[key] = visible[i]
	}
	return made, err
}

// exchange puts the rows of slots in the place of those that were there before.
func (u *update) exchange() error {
	if len(u.slots) == 0 {
		return nil
	}
	u.records = slices.Clone(u.records)
	for _, key := range u.slots {
		rows := u.Rows.slots[key].rows
		for _, t := range u.sharing[key] {
			if rows.Len() == 0 {
				continue // there were none before, too
			}
			p, err := rows.Of(t.id.Decimal())
			if err != nil {
				return err
			}
			u.records[u.at[t.id]] = p
		}
	}
	return nil
}

// order puts the rows in the order of Write.
func (u *update) order() error {
	var limit sharing
	var ofOps sharing
	left, silent := map[source.Word]struct{}{}, map[source.Word]struct{}{}
	records := make([]snapshot.Piece, 0, len(u.minted))
	at := make(map[source.Word]int, len(u.minted))
	for _, t := range u.minted {
		if !t.placed || u.sharing[t.slot][0] != t {
			continue // the first list of a slot stands for all
		}
		s := u.Rows.slots[t.slot]
		for i, t := range u.sharing[t.slot] {
			if !limit.has(i, s.size) {
				left[t.id] = struct{}{}
				continue
			}
			if !ofOps.has(i, s.ops) {
				silent[t.id] = struct{}{}
			}
			if s.rows.Len() > 0 {
				p, err := s.rows.Of(t.id.Decimal())
				if err != nil {
					return err
				}
				at[t.id] = len(records)
				records = append(records, p)
			}
		}
	}
	for _, t := range u.minted {
		_, was := u.left[t.id]
		_, is := left[t.id]
		if was != is {
			u.changed(t.id, u.shown[t.id])
		}
		_, wasSilent := u.silent[t.id]
		if _, isSilent := silent[t.id]; was != is || wasSilent != isSilent {
			u.other[t.id] = struct{}{}
		}
	}
	u.left, u.silent, u.records, u.at = left, silent, records, at
	lists := make([]snapshot.List, len(u.minted))
	for i, t := range u.minted {
		lists[i] = u.replay.list(t)
	}
	var err error
	u.Rows.lists, err = snapshot.ListRows(lists)
	return err
}

// primaries finds the accounts that name another primary list.
func (u *update) primaries(t *touched) (changed []site.Address) {
	for account := range t.accounts {
		was, had := u.primary[account]
		is, has := u.replay.primary[account]
		if had == has && was == is {
			continue
		}
		if u.primary[account] = is; !has {
			delete(u.primary, account)
		}
		u.accounts[account] = struct{}{}
		changed = append(changed, account)
	}
	slices.SortFunc(changed, site.Address.Compare)
	return changed
}
