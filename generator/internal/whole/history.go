package whole

import (
	"slices"
	"sort"

	"github.com/followpress/followpress/generator/internal/graph"
	"github.com/followpress/followpress/generator/internal/units"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
)

// A historyRenderer renders the operations of a graph. Like Site, it is immutable.
type historyRenderer struct {
	*efpRenderer
	*graph.History
	about operationTables // by account
	of    operationTables // by list
}

// operationTables are operations grouped by owner: accounts or lists. A unit is a shard.
type operationTables struct {
	offsets []uint32 // by owner: index in rows of its first operation; the last element is the end
	rows    []uint32 // indexes in History.All, by owner, newest last
	shards  []uint32 // by owner: its first unit; the last element is the number of units
}

func newOperationTables(owners int, rows, ownerOf []uint32) (t operationTables) {
	t.offsets, t.rows = graph.Group(rows, ownerOf, owners)
	t.shards = make([]uint32, owners+1)
	for owner := range owners {
		t.shards[owner+1] = t.shards[owner] + uint32(render.OperationShards(t.total(owner)))
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
func (t *operationTables) find(owner uint32, shard int, render units.Render) units.Found {
	if int(owner)+1 >= len(t.shards) {
		return units.Found{}
	}
	first := int(t.shards[owner])
	unit := units.Among(int(t.shards[owner+1])-first, shard, render)
	unit.Unit += first
	return unit
}

func newHistoryRenderer(e *efpRenderer) *historyRenderer {
	r := &historyRenderer{efpRenderer: e, History: e.History}
	all, n := r.All, len(r.All)-r.First
	rows, owners := make([]uint32, 0, n), make([]uint32, 0, n)
	for i := r.First; i < len(all); i++ {
		if e.IsPrimary(all[i].List) {
			rows, owners = append(rows, uint32(i)), append(owners, all[i].Account)
		}
	}
	r.about = newOperationTables(len(e.Accounts)+len(r.Others), rows, owners)
	rows, owners = rows[:0], owners[:0]
	for i := r.First; i < len(all); i++ {
		rows, owners = append(rows, uint32(i)), append(owners, all[i].List)
	}
	r.of = newOperationTables(len(e.Tokens), rows, owners)
	return r
}

func (r *historyRenderer) kinds() []units.Kind {
	kinds := []units.Kind{{Units: r.about.units(), Records: r.about.weight, Render: r.renderAbout}, {Units: r.of.units(), Records: r.of.weight, Render: r.renderOf}}
	if r.Config.Explorer {
		kinds = append(kinds, units.Kind{Units: 1, Render: r.renderWhole})
	}
	return kinds
}

// objects returns the number of objects of accounts and lists.
func (r *historyRenderer) objects() int { return r.about.units() + r.of.units() }

func (r *historyRenderer) actor(account uint32) render.Actor {
	if int(account) >= len(r.Accounts) {
		return render.Actor{Address: r.Others[int(account)-len(r.Accounts)]}
	}
	name, avatar, _ := render.TextsOf(r.Profile(account), r.profileEnds[account])
	return render.Actor{Address: r.Accounts[account], Name: name, Avatar: avatar}
}

func (r *historyRenderer) operation(o *graph.Operation) render.Operation {
	return render.Operation{
		Time: o.Time, Token: r.Tokens[o.List], By: r.actor(r.Owners[o.List]), Account: r.actor(o.Account), Code: o.Code, Tag: r.Tags[o.Tag],
	}
}

func (r *historyRenderer) renderAbout(unit int, _ *units.Scratch, emit render.Emitter) {
	account, n, _, _ := r.about.shard(unit)
	address := r.actor(uint32(account)).Address.String()
	r.renderShard(&r.about, unit, emit, render.OperationsAbout, address, (*render.Operation).About, func(o *render.Operation) render.Actor { return o.By }, site.NotificationsKey(address, n))
}

func (r *historyRenderer) renderOf(unit int, _ *units.Scratch, emit render.Emitter) {
	list, n, _, _ := r.of.shard(unit)
	token := r.Tokens[list]
	r.renderShard(&r.of, unit, emit, render.OperationsOf, token, (*render.Operation).OfList, func(o *render.Operation) render.Actor { return o.Account }, site.ActivityKey(token, n))
}

func (r *historyRenderer) renderShard(
	t *operationTables, unit int, emit render.Emitter, member, owner string, entry func(*render.Operation, []byte) []byte, shown func(*render.Operation) render.Actor, key site.Key,
) {
	of, n, first, entries := t.shard(unit)
	at := func(i int) render.Operation {
		return r.operation(&r.All[t.rows[int(t.offsets[of+1])-1-first-i]])
	}
	size := render.ObjectBytes
	for i := range entries {
		o := at(i)
		size += shown(&o).Size() + len(o.Token) + len(o.Tag)
	}
	emit(size, func(b []byte) []byte {
		return render.AppendOperations(b, member, owner, t.total(of), n, entries, func(b []byte, i int) []byte {
			o := at(i)
			return entry(&o, b)
		})
	}, key)
}

// renderWhole emits the newest operations of all primary lists, and the growth.
func (r *historyRenderer) renderWhole(_ int, _ *units.Scratch, emit render.Emitter) {
	var newest []render.Operation
	size := render.ObjectBytes
	for _, o := range slices.Backward(r.All[r.First:]) {
		if len(newest) == render.RecentOperations {
			break
		}
		if r.IsPrimary(o.List) {
			shown := r.operation(&o)
			newest = append(newest, shown)
			size += shown.By.Size() + shown.Account.Size() + len(shown.Tag)
		}
	}
	emit(size, func(b []byte) []byte {
		return render.AppendRecent(b, len(newest), func(b []byte, i int) []byte { return newest[i].Whole(b) })
	}, site.RecentKey)
	last := r.lastOfLists()
	emit(render.ObjectBytes+render.Actor{}.Size()*len(last), func(b []byte) []byte {
		return render.AppendRecent(b, len(last), func(b []byte, i int) []byte { return last[i].Last(b) })
	}, render.ActiveKey)
	emit(render.ObjectBytes+len("[1000,1000],")*r.Growth.Size(), r.Growth.Append, site.GrowthKey)
}

// lastOfLists returns the newest operation of each primary list.
func (r *historyRenderer) lastOfLists() (last []render.Operation) {
	seen := map[uint32]bool{}
	for _, o := range slices.Backward(r.All[r.First:]) {
		if len(last) == render.ActiveLists {
			break
		}
		if r.IsPrimary(o.List) && !seen[o.List] {
			seen[o.List] = true
			last = append(last, r.operation(&o))
		}
	}
	return last
}

// find finds the unit of a key of a route, given the segments of the key.
func (r *historyRenderer) find(route *site.Route, segments []string) units.Found {
	shard := 0
	switch route.ID {
	case routes.Recent, routes.Active, routes.Growth:
		return units.Found{Render: r.renderWhole}
	case routes.OlderNotifications, routes.OlderActivity:
		shard, segments = units.Number(segments[4]), segments[1:]
	}
	if route.ID == routes.ActivityShard || route.ID == routes.OlderActivity {
		list, ok := r.Lists.Find(segments[2])
		if !ok {
			return units.Found{}
		}
		return r.of.find(list, shard, r.renderOf)
	}
	address, err := site.ParseAddress(segments[2])
	if err != nil {
		return units.Found{}
	}
	account, ok := r.Numbers.Find(address)
	if !ok {
		if account, ok = r.Find(address); !ok {
			return units.Found{}
		}
	}
	return r.about.find(account, shard, r.renderAbout)
}
