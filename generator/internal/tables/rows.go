package tables

import (
	"cmp"
	"slices"
	"strconv"
	"sync"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/generator/internal/dataset"
	"github.com/followpress/followpress/generator/internal/graph"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/data"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/snapshot"
)

// This file defines the tables: their columns, their rows, and the size of rows. docs/site.md
// shows them to readers.

// A dataSource has the rows of all tables.
type dataSource struct {
	*graph.Graph
	ranks *graph.Ranks
	order func() *dataOrder
}

// A dataOrder is the order of rows.
type dataOrder struct {
	rowOf []uint32 // by account: its row among all accounts, sorted by address
	lists []uint32 // by the row of their account, then by token ID as text
}

func dataTables(g *graph.Graph, r *graph.Ranks) []*dataTable {
	d := &dataSource{Graph: g, ranks: r}
	d.order = sync.OnceValue(d.sort)
	tables := []*dataTable{d.accounts(), d.badges(), d.edges(), d.follows()}
	if g.History != nil {
		tables = append(tables, d.operations())
	}
	return tables
}

func (d *dataSource) sort() *dataOrder {
	o := &dataOrder{rowOf: make([]uint32, len(d.Accounts)), lists: graph.NumbersBelow(len(d.Tokens))}
	for row, account := range d.ranks.ByAddress {
		o.rowOf[account] = uint32(row)
	}
	slices.SortFunc(o.lists, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(o.rowOf[d.Owners[a]], o.rowOf[d.Owners[b]]), cmp.Compare(d.Tokens[a], d.Tokens[b]))
	})
	return o
}

func (d *dataSource) follows() *dataTable {
	t := &dataTable{Table: dataset.Table{Name: string(data.Follows), Title: "records of accounts on lists, by follower, followed and list", Columns: []dataset.Column{
		{Name: "follower", Meaning: "address of the account of the list"},
		{Name: "followed", Meaning: "address that the list holds"},
		{Name: "list", Meaning: "token ID of the list, in decimal"},
		{Name: "counts", Type: dataset.Bool, Meaning: "whether the API counts the record: a follow of a primary list, neither blocked nor muted"},
		{Name: "tags", Type: dataset.Texts, Meaning: "tags of the record, sorted"},
		{Name: "added", Type: dataset.Time, Null: true, Unit: "UTC", Meaning: "when the record was added, if that is known"},
	}}}
	for _, r := range d.Records.All() {
		if d.Holds(r) {
			t.rows++
		}
	}
	const row = 1 + indexData + timeData
	tags := make([]int, len(d.TagSets))
	for i := range d.TagSets {
		tags[i] = len(d.TagSets[i].JSON)
		t.most += int64(tags[i])
	}
	for _, token := range d.Tokens {
		t.most += int64(len(token))
	}
	t.most += t.rows*row + int64(2*addressData*len(d.Accounts))
	t.weigh = func(p *dataPlan) {
		followers, followed := make(dataMarks, len(d.Accounts)), make(dataMarks, len(d.Accounts))
		lists, sets := make(dataMarks, len(d.Tokens)), make(dataMarks, len(d.TagSets))
		d.eachFollow(0, t.rows, false, func(f *follow) {
			p.row(row + p.first(followers, f.follower, addressData) + p.first(followed, f.followed, addressData) +
				p.first(lists, f.list, len(d.Tokens[f.list])) + p.first(sets, f.record.Tags, tags[f.record.Tags]))
		})
	}
	t.write = func(w *dataset.Writer, from, to int64) {
		d.eachFollow(from, to, false, func(f *follow) {
			d.writeAddress(w, f.follower)
			d.writeAddress(w, f.followed)
			dataset.AddText(w, d.Tokens[f.list])
			w.Bool(f.counts)
			w.Texts(d.TagSets[f.record.Tags].Tags)
			if d.Added == nil || d.Added[f.at] == snapshot.NoTime {
				w.Null()
			} else {
				w.Time(d.Added[f.at])
			}
			w.EndRow()
		})
	}
	return t
}

// A follow is a row of the table follows. Follower and followed are account rows.
type follow struct {
	follower, followed uint32
	list               uint32
	at                 uint64 // index of the record among those of all lists
	record             graph.PackedRecord
	counts             bool
}

// eachFollow calls row with the rows [from, to) of follows. With counting, it numbers and yields only
// the follows that count. The argument of row is valid during the call only.
func (d *dataSource) eachFollow(from, to int64, counting bool, row func(*follow)) {
	o := d.order()
	var all []follow
	var order []uint64 // row of followed, and index in all
	for n, lists := int64(0), o.lists; len(lists) > 0 && n < to; {
		owner := d.Owners[lists[0]]
		some := 1
		for some < len(lists) && d.Owners[lists[some]] == owner {
			some++
		}
		all, order = all[:0], order[:0]
		for _, list := range lists[:some] {
			primary := d.Primary[owner] == list
			if counting && !primary {
				continue
			}
			first := d.Offsets[list]
			records := d.RecordsOf(list)
			for i, r := range records.All() {
				if !d.Holds(r) {
					continue
				}
				counts := primary && d.IsFollow(r)
				if counting && !counts {
					continue
				}
				followed := o.rowOf[r.Data]
				order = append(order, uint64(followed)<<32|uint64(len(all)))
				all = append(all, follow{o.rowOf[owner], followed, list, first + uint64(i), r, counts})
			}
		}
		lists = lists[some:]
		if n+int64(len(all)) > from {
			slices.Sort(order)
			for i, place := range order {
				if at := n + int64(i); from <= at && at < to {
					row(&all[uint32(place)])
				}
			}
		}
		n += int64(len(all))
	}
}

func (d *dataSource) edges() *dataTable {
	t := &dataTable{Table: dataset.Table{Name: string(data.Edges), Title: "follows that count, by follower and followed", Columns: []dataset.Column{
		{Name: "follower", Type: dataset.RowNumber, Unit: "row", Meaning: "row of the account in accounts, from 0"},
		{Name: "followed", Type: dataset.RowNumber, Unit: "row", Meaning: "row of the account in accounts, from 0"},
	}}}
	for list := range d.Tokens {
		if d.IsPrimary(uint32(list)) {
			t.rows += int64(d.CountFollows(uint32(list)))
		}
	}
	const row = 5
	t.most = t.rows * row
	t.weigh = func(p *dataPlan) {
		for range t.rows {
			p.row(row)
		}
	}
	t.write = func(w *dataset.Writer, from, to int64) {
		d.eachFollow(from, to, true, func(f *follow) {
			w.Int(int32(f.follower))
			w.Int(int32(f.followed))
			w.EndRow()
		})
	}
	return t
}

// dataMeasures are the measures of accounts.
var dataMeasures = []struct {
	rules.Measure
	name, meaning string
}{
	{rules.Followers, "followers", "accounts that follow this account"},
	{rules.Following, "following", "accounts that this account follows"},
	{rules.Mutuals, "mutuals", "other accounts that follow this account and that this account follows"},
	{rules.Top8, "top8", "accounts that follow this account and tag it top8"},
	{rules.Blocks, "blocks", "accounts that this account blocks"},
}

func (d *dataSource) accounts() *dataTable {
	t := &dataTable{Table: dataset.Table{Name: string(data.Accounts), Title: "accounts, by address", Columns: []dataset.Column{
		{Name: "address", Type: dataset.Sorted, Meaning: "address"},
		{Name: "name", Type: dataset.LongText, Null: true, Meaning: "name of the profile"},
		{Name: "avatar", Type: dataset.LongText, Null: true, Meaning: "picture of the profile, mostly a URL"},
		{Name: "primary_list", Type: dataset.LongText, Null: true, Meaning: "token ID of the primary list"},
	}}, rows: int64(len(d.Accounts))}
	for _, m := range dataMeasures {
		t.Columns = append(t.Columns, dataset.Column{Name: m.name, Type: dataset.Int, Unit: "accounts", Meaning: m.meaning})
	}
	for _, m := range dataMeasures {
		t.Columns = append(t.Columns, dataset.Column{Name: m.name + "_rank", Type: dataset.Rank, Meaning: "rank by " + m.name + ", from 1; 0 means unranked"})
	}
	bytes := func(account uint32) int {
		n := addressData + 2*len(dataMeasures)*indexData
		if p, ok := d.Profiles.Of(account); ok {
			n += int(p.SearchLen)
		}
		if list := d.Primary[account]; list != graph.None {
			n += len(d.Tokens[list])
		}
		return n
	}
	for account := range d.Accounts {
		t.most += int64(bytes(uint32(account)))
	}
	t.weigh = func(p *dataPlan) {
		for _, account := range d.ranks.ByAddress {
			p.row(bytes(account))
		}
	}
	t.write = func(w *dataset.Writer, from, to int64) {
		for row := from; row < to; row++ {
			d.writeAddress(w, uint32(row))
			account := d.ranks.ByAddress[row]
			a := render.Account{Profile: d.Profile(account)}
			name, avatar, _ := a.Texts()
			writeJSON(w, name)
			writeJSON(w, avatar)
			if list := d.Primary[account]; list != graph.None {
				dataset.AddText(w, d.Tokens[list])
			} else {
				w.Null()
			}
			for _, m := range dataMeasures {
				w.Int(int32(d.ranks.Count[m.Measure][account]))
			}
			for _, m := range dataMeasures {
				w.Int(int32(d.ranks.Shown[m.Measure][account]))
			}
			w.EndRow()
		}
	}
	return t
}

// operations returns all operations of the snapshot, regardless of the window of the site.
func (d *dataSource) operations() *dataTable {
	t := &dataTable{Table: dataset.Table{Name: string(data.Ops), Title: "operations of lists on accounts, newest last", Columns: []dataset.Column{
		{Name: "time", Type: dataset.Time, Unit: "UTC", Meaning: "time of the operation"},
		{Name: "list", Meaning: "token ID of the list, in decimal"},
		{Name: "account", Meaning: "address of the account of the list"},
		{Name: "action", Meaning: "follow, unfollow, tag or untag"},
		{Name: "address", Meaning: "address of the other account"},
		{Name: "tag", Null: true, Meaning: "tag added or removed"},
	}}, rows: int64(len(d.History.All))}
	const row = timeData + 4*indexData
	most := 2*addressData*len(d.Accounts) + addressData*len(d.History.Others)
	for _, texts := range [][]string{d.Tokens, d.History.Tags} {
		for _, text := range texts {
			most += len(text)
		}
	}
	t.most = t.rows*row + int64(most)
	t.weigh = func(p *dataPlan) {
		lists, tags := make(dataMarks, len(d.Tokens)), make(dataMarks, len(d.History.Tags))
		owners, accounts := make(dataMarks, len(d.Accounts)), make(dataMarks, len(d.Accounts)+len(d.History.Others))
		for i := range d.History.All {
			o := &d.History.All[i]
			p.row(row + p.first(lists, o.List, len(d.Tokens[o.List])) + p.first(owners, d.Owners[o.List], addressData) +
				p.first(accounts, o.Account, addressData) + p.first(tags, o.Tag, len(d.History.Tags[o.Tag])))
		}
	}
	t.write = func(w *dataset.Writer, from, to int64) {
		for i := from; i < to; i++ {
			o := &d.History.All[i]
			w.Time(o.Time)
			dataset.AddText(w, d.Tokens[o.List])
			writeBytes(w, d.Accounts[d.Owners[o.List]])
			dataset.AddText(w, o.Code.String())
			if known := uint32(len(d.Accounts)); o.Account < known {
				writeBytes(w, d.Accounts[o.Account])
			} else {
				writeBytes(w, d.History.Others[o.Account-known])
			}
			writeJSON(w, []byte(d.History.Tags[o.Tag]))
			w.EndRow()
		}
	}
	return t
}

func (d *dataSource) badges() *dataTable {
	t := &dataTable{Table: dataset.Table{Name: string(data.Badges), Title: "badges of events, in the order of the events, by owner", Columns: []dataset.Column{
		{Name: "event", Meaning: "ID of the event, in decimal"},
		{Name: "name", Meaning: "name of the event"},
		{Name: "token", Type: dataset.LongText, Meaning: "ID of the badge; the smallest if the owner has several badges of the event"},
		{Name: "owner", Meaning: "address of the owner"},
	}}, rows: int64(len(d.Badges))}
	const row = 2*indexData + addressData
	for i := range d.Badges {
		t.most += int64(row + len(d.Badges[i].TokenID))
	}
	for i := range d.Events {
		t.most += int64(len(d.Events[i].Name))
	}
	order := sync.OnceValue(func() []uint32 {
		order, rowOf := graph.NumbersBelow(len(d.Badges)), d.order().rowOf
		slices.SortFunc(order, func(x, y uint32) int {
			a, b := &d.Badges[x], &d.Badges[y]
			return cmp.Or(cmp.Compare(a.Event, b.Event), cmp.Compare(rowOf[a.Account], rowOf[b.Account]))
		})
		return order
	})
	t.weigh = func(p *dataPlan) {
		events := make(dataMarks, len(d.Events))
		for _, i := range order() {
			b := &d.Badges[i]
			p.row(row + len(b.TokenID) + p.first(events, b.Event, len(d.Events[b.Event].Name)))
		}
	}
	t.write = func(w *dataset.Writer, from, to int64) {
		for _, i := range order()[from:to] {
			b := &d.Badges[i]
			dataset.AddText(w, strconv.FormatUint(d.Events[b.Event].ID, 10))
			dataset.AddText(w, d.Events[b.Event].Name)
			dataset.AddText(w, b.TokenID)
			writeBytes(w, d.Accounts[b.Account])
			w.EndRow()
		}
	}
	return t
}

// writeAddress writes the address of the account in a row.
func (d *dataSource) writeAddress(w *dataset.Writer, row uint32) {
	writeBytes(w, d.Accounts[d.ranks.ByAddress[row]])
}

func writeBytes(w *dataset.Writer, address site.Address) {
	var text [2 + 2*len(site.Address{})]byte
	dataset.AddText(w, address.Append(text[:0]))
}

// writeJSON writes a JSON string as text, or no value for an empty one.
func writeJSON(w *dataset.Writer, text []byte) {
	if len(text) == len(`""`) {
		w.Null()
		return
	}
	if !slices.Contains(text, '\\') {
		dataset.AddText(w, text[1:len(text)-1])
		return
	}
	var decoded string
	if err := json.Unmarshal(text, &decoded); err != nil {
		panic(err) // encoded by this package
	}
	dataset.AddText(w, decoded)
}
