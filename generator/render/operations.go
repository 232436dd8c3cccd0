package render

import (
	"strconv"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/op"
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
	name, avatar, _ := a.Texts()
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

// Size returns the approximate bytes of an entry.
func (a Actor) Size() int { return operationBytes + len(a.Name) + len(a.Avatar) }

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
	return append(WithoutComma(b), "]}"...)
}

// OperationShards returns the number of objects for this many operations on an account or of a
// list.
func OperationShards(operations int) int {
	return (operations + site.HistoryShardSize - 1) / site.HistoryShardSize
}
