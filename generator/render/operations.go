package render

import (
	"slices"
	"sort"
	"strconv"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/op"
	"github.com/followpress/followpress/site/routes"
)

// This file renders operations: those on an account, those of a list, and the latest of the graph.

// Maximum entries of two objects of the whole graph.
const (
	RecentOperations = 100   // limit of RecentKey
	ActiveLists      = 2_000 // limit of ActiveKey
)

// ActiveKey is the explorer's object of the lists with the latest operations.
var ActiveKey = site.ExplorerKey("active")

// An Actor is an account in entries of operations.
type Actor struct {
	Address      site.Address
	Name, Avatar []byte // JSON strings; nil for none
}

// ActorOf returns the Actor of an account.
func ActorOf(a *Account) Actor {
	name, avatar, _ := a.texts()
	return Actor{a.Address, name, avatar}
}

func (a Actor) append(b []byte) []byte {
	b = append(a.Address.Append(append(b, '"')), '"')
	for _, text := range [][]byte{a.Name, a.Avatar} {
		if text == nil {
			text = []byte(emptyText)
		}
		b = append(append(b, ','), text...)
	}
	return b
}

// size returns the approximate bytes of an entry.
func (a Actor) size() int { return operationBytes + len(a.Name) + len(a.Avatar) }

const operationBytes = len(`[1700000000000,"1234567","0x0000000000000000000000000000000000000000",,,3,"top8"],`)

// An Operation is an entry of operations.
type Operation struct {
	Time    int64 // milliseconds since the Unix epoch
	Token   string
	By      Actor // account of the list
	Account Actor // subject of the operation
	Code    op.Code
	Tag     string // as JSON string
}

// About appends the entry of the operation among those on its account.
func (o *Operation) About(b []byte) []byte {
	return o.appendEnd(append(o.By.append(o.appendToken(b)), ','))
}

// OfList appends the entry of the operation among those of its list.
func (o *Operation) OfList(b []byte) []byte {
	return o.appendEnd(append(o.Account.append(o.appendTime(b)), ','))
}

// Whole appends the entry of the operation among those of the whole graph.
func (o *Operation) Whole(b []byte) []byte {
	return o.appendEnd(append(o.Account.append(append(o.By.append(o.appendToken(b)), ',')), ','))
}

// Last appends the entry of a list with this newest operation.
func (o *Operation) Last(b []byte) []byte {
	b = append(o.By.Address.Append(append(o.appendToken(b), '"')), '"')
	return append(b, ']')
}

func (o *Operation) appendTime(b []byte) []byte {
	return append(strconv.AppendInt(append(b, '['), o.Time, 10), ',')
}

func (o *Operation) appendToken(b []byte) []byte {
	return append(append(append(o.appendTime(b), '"'), o.Token...), `",`...)
}

func (o *Operation) appendEnd(b []byte) []byte {
	b = append(strconv.AppendUint(b, uint64(o.Code), 10), ',')
	return append(append(b, o.Tag...), ']')
}

// Members that name the owner of the operations.
const (
	OperationsAbout = "address"
	OperationsOf    = "list"
)

// AppendOperations appends shard n, counted from 0, of the operations on an account or of a list.
// total counts all operations. entry appends entry i of the shard, which has this many entries.
func AppendOperations(b []byte, member, owner string, total, n, entries int, entry func(b []byte, i int) []byte) []byte {
	b = append(append(append(b, `{"`...), member...), `":"`...)
	b = append(append(b, owner...), `","total":`...)
	b = strconv.AppendInt(b, int64(total), 10)
	if n > 0 {
		b = strconv.AppendInt(append(b, `,"shard":`...), int64(n), 10)
	}
	b = strconv.AppendInt(append(b, `,"shards":`...), int64(OperationShards(total)), 10)
	return appendOperationRows(append(b, ','), entries, entry)
}

// AppendRecent appends the object RecentKey or ActiveKey.
func AppendRecent(b []byte, entries int, entry func(b []byte, i int) []byte) []byte {
	return appendOperationRows(append(b, '{'), entries, entry)
}

func appendOperationRows(b []byte, entries int, entry func(b []byte, i int) []byte) []byte {
	b = append(b, `"entries":[`...)
	for i := range entries {
		b = append(entry(b, i), ',')
	}
	return append(withoutComma(b), "]}"...)
}

// OperationShards returns the number of objects for this many operations on an account or of a
// list.
func OperationShards(operations int) int {
	return (operations + site.HistoryShardSize - 1) / site.HistoryShardSize
}

// A historyRenderer renders the operations of a graph. Like Site, it is immutable.
type historyRenderer struct {
	*efpRenderer
	*History
	about operationTables // by account
	of    operationTables // by list
}

// operationTables are operations grouped by owner: accounts or lists. A unit is a shard.
type operationTables struct {
	offsets []uint32 // by owner: index in rows of its first operation; the last element is the end
	rows    []uint32 // indexes in History.all, by owner, newest last
	shards  []uint32 // by owner: its first unit; the last element is the number of units
}

func newOperationTables(owners int, rows, ownerOf []uint32) (t operationTables) {
	t.offsets, t.rows = group(rows, ownerOf, owners)
	t.shards = make([]uint32, owners+1)
	for owner := range owners {
		t.shards[owner+1] = t.shards[owner] + uint32(OperationShards(t.total(owner)))
	}
	return t
}

func (t *operationTables) units() int { return int(t.shards[len(t.shards)-1]) }

func (t *operationTables) total(owner int) int { return int(t.offsets[owner+1] - t.offsets[owner]) }

// shard returns the owner of a unit, the number of the shard, its first entry and its number of
// entries.
func (t *operationTables) shard(unit int) (owner, n, first, entries int) {
	owner = sort.Search(len(t.shards), func(i int) bool { return int(t.shards[i]) > unit }) - 1
	n = unit - int(t.shards[owner])
	first = n * site.HistoryShardSize
	return owner, n, first, min(site.HistoryShardSize, t.total(owner)-first)
}

func (t *operationTables) weight(unit int) int {
	_, _, _, entries := t.shard(unit)
	return entries
}

// find finds the unit of a shard of an owner.
func (t *operationTables) find(owner uint32, shard int, render unitRenderer) foundUnit {
	if int(owner)+1 >= len(t.shards) {
		return foundUnit{}
	}
	first := int(t.shards[owner])
	unit := among(int(t.shards[owner+1])-first, shard, render)
	unit.unit += first
	return unit
}

func newHistoryRenderer(e *efpRenderer) *historyRenderer {
	r := &historyRenderer{efpRenderer: e, History: e.History}
	all, n := r.all, len(r.all)-r.first
	rows, owners := make([]uint32, 0, n), make([]uint32, 0, n)
	for i := r.first; i < len(all); i++ {
		if e.isPrimary(all[i].list) {
			rows, owners = append(rows, uint32(i)), append(owners, all[i].account)
		}
	}
	r.about = newOperationTables(len(e.Accounts)+len(r.others), rows, owners)
	rows, owners = rows[:0], owners[:0]
	for i := r.first; i < len(all); i++ {
		rows, owners = append(rows, uint32(i)), append(owners, all[i].list)
	}
	r.of = newOperationTables(len(e.Tokens), rows, owners)
	return r
}

func (r *historyRenderer) kinds() []UnitKind {
	kinds := []UnitKind{{r.about.units(), r.about.weight, r.renderAbout}, {r.of.units(), r.of.weight, r.renderOf}}
	if r.config.Explorer {
		kinds = append(kinds, UnitKind{1, nil, r.renderWhole})
	}
	return kinds
}

// objects returns the number of objects of accounts and lists.
func (r *historyRenderer) objects() int { return r.about.units() + r.of.units() }

func (r *historyRenderer) actor(account uint32) Actor {
	if int(account) >= len(r.Accounts) {
		return Actor{Address: r.others[int(account)-len(r.Accounts)]}
	}
	name, avatar, _ := textsOf(r.profile(account), r.profileEnds[account])
	return Actor{r.Accounts[account], name, avatar}
}

func (r *historyRenderer) operation(o *operation) Operation {
	return Operation{
		Time: o.time, Token: r.Tokens[o.list], By: r.actor(r.Owners[o.list]), Account: r.actor(o.account), Code: o.code, Tag: r.tags[o.tag],
	}
}

func (r *historyRenderer) renderAbout(unit int, _ *Scratch, emit Emitter) {
	account, n, _, _ := r.about.shard(unit)
	address := r.actor(uint32(account)).Address.String()
	r.renderShard(&r.about, unit, emit, OperationsAbout, address, (*Operation).About, func(o *Operation) Actor { return o.By }, site.NotificationsKey(address, n))
}

func (r *historyRenderer) renderOf(unit int, _ *Scratch, emit Emitter) {
	list, n, _, _ := r.of.shard(unit)
	token := r.Tokens[list]
	r.renderShard(&r.of, unit, emit, OperationsOf, token, (*Operation).OfList, func(o *Operation) Actor { return o.Account }, site.ActivityKey(token, n))
}

func (r *historyRenderer) renderShard(
	t *operationTables, unit int, emit Emitter, member, owner string, entry func(*Operation, []byte) []byte, shown func(*Operation) Actor, key site.Key,
) {
	of, n, first, entries := t.shard(unit)
	at := func(i int) Operation {
		return r.operation(&r.all[t.rows[int(t.offsets[of+1])-1-first-i]])
	}
	size := objectBytes
	for i := range entries {
		o := at(i)
		size += shown(&o).size() + len(o.Token) + len(o.Tag)
	}
	emit(size, func(b []byte) []byte {
		return AppendOperations(b, member, owner, t.total(of), n, entries, func(b []byte, i int) []byte {
			o := at(i)
			return entry(&o, b)
		})
	}, key)
}

// renderWhole emits the newest operations of all primary lists, and the growth.
func (r *historyRenderer) renderWhole(_ int, _ *Scratch, emit Emitter) {
	var newest []Operation
	size := objectBytes
	for _, o := range slices.Backward(r.all[r.first:]) {
		if len(newest) == RecentOperations {
			break
		}
		if r.isPrimary(o.list) {
			shown := r.operation(&o)
			newest = append(newest, shown)
			size += shown.By.size() + shown.Account.size() + len(shown.Tag)
		}
	}
	emit(size, func(b []byte) []byte {
		return AppendRecent(b, len(newest), func(b []byte, i int) []byte { return newest[i].Whole(b) })
	}, site.RecentKey)
	last := r.lastOfLists()
	emit(objectBytes+operationBytes*len(last), func(b []byte) []byte {
		return AppendRecent(b, len(last), func(b []byte, i int) []byte { return last[i].Last(b) })
	}, ActiveKey)
	emit(objectBytes+len("[1000,1000],")*r.Growth.size(), r.Growth.Append, site.GrowthKey)
}

// lastOfLists returns the newest operation of each primary list.
func (r *historyRenderer) lastOfLists() (last []Operation) {
	seen := map[uint32]bool{}
	for _, o := range slices.Backward(r.all[r.first:]) {
		if len(last) == ActiveLists {
			break
		}
		if r.isPrimary(o.list) && !seen[o.list] {
			seen[o.list] = true
			last = append(last, r.operation(&o))
		}
	}
	return last
}

// find finds the unit of a key of a route, given the segments of the key.
func (r *historyRenderer) find(route *site.Route, segments []string) foundUnit {
	shard := 0
	switch route.ID {
	case routes.Recent, routes.Active, routes.Growth:
		return foundUnit{r.renderWhole, 0}
	case routes.OlderNotifications, routes.OlderActivity:
		shard, segments = number(segments[4]), segments[1:]
	}
	if route.ID == routes.ActivityShard || route.ID == routes.OlderActivity {
		list, ok := r.Lists.Find(segments[2])
		if !ok {
			return foundUnit{}
		}
		return r.of.find(list, shard, r.renderOf)
	}
	address, err := site.ParseAddress(segments[2])
	if err != nil {
		return foundUnit{}
	}
	account, ok := r.Numbers.Find(address)
	if !ok {
		if account, ok = r.numbers.Find(address); !ok {
			return foundUnit{}
		}
		account += r.known
	}
	return r.about.find(account, shard, r.renderAbout)
}
