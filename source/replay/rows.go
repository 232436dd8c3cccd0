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
	"github.com/followpress/followpress/snapshot/memory"
	"github.com/followpress/followpress/source"
)

// Rows keeps the rows of a Replay's lists and records in memory, and remakes only rows that events
// have changed. They equal the output of Write byte for byte. Only the goroutine of the Replay may
// use it.
type Rows struct {
	replay  *Replay
	shown   map[source.Word]shown    // lists with rows, as shown in them
	sharing map[slotKey][]*token     // lists of a slot, by ID
	minted  []*token                 // all lists, by ID
	slots   map[slotKey]slotRows     // rows of the slots that lists have
	left    map[source.Word]struct{} // lists without the records of their slot, beyond the limit
	silent  map[source.Word]struct{} // other lists without the operations of their slot, beyond the limit
	primary map[site.Address]source.Word

	lists   memory.Rows
	records []memory.Piece
	at      map[source.Word]int // index in records, by list
	ops     recent
	chains  []uint64 // chains of the contracts, by number
}

// shown holds the values in a list's row.
type shown struct {
	owner, user site.Address
	placed      bool
	slot        slotKey
}

// A slotRows holds the rows of a slot, for all lists that have it.
type slotRows struct {
	rows memory.Rows
	size int // for sharing.has
	ops  int // size of the rows of ops, for sharing.has
}

// A Change is the result of an Update. Its slices are sorted and have no duplicates.
type Change struct {
	Any      bool           // whether any row changed
	Lists    []string       // token IDs of lists with changed rows
	Accounts []site.Address // accounts of these lists, before and after; accounts that changed records and operations are about; accounts in Primary
	Primary  []site.Address // accounts whose primary list changed
}

// Rows returns the Rows of a Replay, which are empty until the first Update. A Replay has one Rows.
func (r *Replay) Rows() *Rows {
	x := &Rows{shown: map[source.Word]shown{}, slots: map[slotKey]slotRows{}, primary: map[site.Address]source.Word{}, ops: recent{most: mostInChunk}}
	x.Replace(r)
	return x
}

// Replace makes x use another Replay of the same deployment, from the next Update on.
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

// Lists returns the rows of lists as of the last Update.
func (x *Rows) Lists() memory.Rows { return x.lists }

// Records returns the rows of records as of the last Update. They do not change.
func (x *Rows) Records() []memory.Piece { return x.records }

// Ops returns the rows of ops since a time in milliseconds since the Unix epoch, which must not be
// before that of the last Update. They do not change.
func (x *Rows) Ops(since int64) ([]memory.Piece, error) { return x.ops.since(since) }

// Primary returns the token ID of the account's primary list as of the last Update; "" for none.
func (x *Rows) Primary(account site.Address) string {
	if token, ok := x.primary[account]; ok {
		return token.Decimal()
	}
	return ""
}

// ListOps returns the number of operations; see source.Graph.
func (x *Rows) ListOps() uint64 { return x.replay.report.ListOps }

// Update remakes the rows that events have changed since the last Update. It keeps rows of ops
// since opsSince, in milliseconds since the Unix epoch; NoOps for none. Moving opsSince forward
// changes nothing; moving it back by more than an hour remakes all rows of ops. After an error, x
// must not be used again.
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

// An update is one call of Update.
type update struct {
	*Rows
	lists    map[source.Word]struct{} // lists with changed rows
	accounts map[site.Address]struct{}
	first    bool      // the first Update reports no changes
	again    bool      // the rows of lists changed, or records moved
	slots    []slotKey // otherwise, the slots with changed rows

	other   map[source.Word]struct{}  // lists whose rows of ops may have changed
	visible map[slotKey][]snapshot.Op // operations of the replayed slots, without token IDs
}

// changed records that the rows of a list changed, before or after.
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

// place recomputes which lists exist, and their slots.
func (u *update) place() {
	u.minted, u.sharing = u.replay.minted(), map[slotKey][]*token{}
	for _, t := range u.minted {
		if t.placed {
			u.sharing[t.slot] = append(u.sharing[t.slot], t)
		}
	}
}

// show returns the values for a list's row; ok is false if there is no such list.
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

// changedLists finds lists whose own row or slot changed. It returns their old and new slots.
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
				u.about(u.Rows.slots[s.slot].rows, memory.Rows{})
			}
		}
	}
	return places
}

// about records the accounts of records that only one of two sets of rows has.
func (u *update) about(one, other memory.Rows) {
	if u.first {
		return
	}
	for _, a := range memory.Addresses(one, other) {
		u.accounts[a] = struct{}{}
	}
}

// replaySlots remakes the rows of touched slots, and of slots in places without rows. Slots without
// a list have no rows.
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
		// The number of rows may decide whether other lists have any.
		u.again = u.again || (was.rows.Len() == 0) != (is.rows.Len() == 0) || len(u.sharing[key]) > alwaysShared
		u.slots = append(u.slots, key)
		for _, t := range u.sharing[key] {
			u.changed(t.id, u.shown[t.id])
		}
		u.about(was.rows, is.rows)
	}
	return nil
}

// rowsOf makes the rows of slots on all cores, and records their operations.
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
				rows, err := memory.RecordRows(records)
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

// exchange replaces the rows of slots.
func (u *update) exchange() error {
	if len(u.slots) == 0 {
		return nil
	}
	u.records = slices.Clone(u.records)
	for _, key := range u.slots {
		rows := u.Rows.slots[key].rows
		for _, t := range u.sharing[key] {
			if rows.Len() == 0 {
				continue // there were none before either
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
	records := make([]memory.Piece, 0, len(u.minted))
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
	u.Rows.lists, err = memory.ListRows(lists)
	return err
}

// primaries finds the accounts whose primary list changed.
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
