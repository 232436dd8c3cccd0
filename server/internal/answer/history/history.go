// Package history answers with operations: what a list did recently, and what lists did to an
// account.
package history

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/server/internal/answer/compute"
	"github.com/followpress/followpress/server/internal/answer/lookup"
	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/op"
	"github.com/followpress/followpress/site/scan"
	"github.com/followpress/followpress/storage"
)

// A history is a series of operations, newest first, on an address or of a list. Its first shard
// holds the rows that most requests need, and the number of rows.
type history struct {
	owner    string // owner of the shards
	shardKey func(n int) site.Key
	parse    func(row []byte) (scan.OperationRow, error)
}

// Notifications answers with recent operations of lists on an account.
func Notifications(a *compute.Answer) error {
	address, selected, err := notified(a)
	if err != nil {
		return err
	}
	return historyPage(a, "notifications", selected, scan.ParseNotificationRow, func(r *scan.OperationRow) (list, target []byte) {
		return r.List, []byte(address)
	})
}

// notified selects the operations of lists on the account that the path names.
func notified(a *compute.Answer) (address string, selected compute.Rows, err error) {
	if address, err = lookup.Address(a, a.Ask.User); err == nil {
		selected, err = operations(a, history{address, func(n int) site.Key { return site.NotificationsKey(address, n) }, scan.ParseNotificationRow})
	}
	return address, selected, err
}

// Activity answers with the recent operations of a list.
func Activity(a *compute.Answer) error {
	list := a.Ask.TokenID
	selected, err := operations(a, history{list, func(n int) site.Key { return site.ActivityKey(list, n) }, scan.ParseActivityRow})
	if err == nil && selected.Len() == 0 { // nothing read so far shows whether the list exists
		_, err = lookup.List(a, list)
	}
	if err != nil {
		return err
	}
	return historyPage(a, "activity", selected, scan.ParseActivityRow, func(r *scan.OperationRow) (by, target []byte) {
		return []byte(list), r.Address
	})
}

// errEnd stops reading a history early.
var errEnd = errors.New("no more operations are wanted")

// A period describes the operations that a request asks for: an interval, filtered by opcode and
// tag.
type period struct {
	since    int64 // milliseconds since the Unix epoch
	until    int64 // milliseconds since the Unix epoch
	opcode   int   // 0 for all
	tag      []byte
	filtered bool // opcode, tag or the end of the interval exclude rows
	skip     int  // rows to skip before the page begins
}

func asked(a *compute.Answer) period {
	p := period{opcode: a.Ask.Opcode, filtered: a.Ask.Opcode != 0 || a.Ask.Tag != "", skip: a.Ask.Offset}
	if a.Ask.Tag != "" {
		p.tag = rawjson.AppendString(nil, a.Ask.Tag) // invalid UTF-8 becomes an escape, which no row's tag contains
	}
	asOf := a.AsOf()
	end := asOf
	if a.Ask.Start >= 0 {
		p.filtered = true
		if start := time.Unix(int64(a.Ask.Start), 0); start.Before(end) {
			end = start
		}
	}
	// The interval includes its start. Objects that a publish has yet to delete may hold operations
	// from before the window.
	since, window := end.Add(-a.Ask.Interval), asOf.Add(-time.Duration(a.Root.Config.HistoryWindow))
	if since.Before(window) {
		since = window
	}
	p.since, p.until = since.UnixMilli(), end.UnixMilli()
	return p
}

func (p *period) wants(r scan.OperationRow) bool {
	return r.Time <= p.until && (p.opcode == 0 || int(r.Opcode) == p.opcode) && (p.tag == nil || bytes.Equal(r.Tag, p.tag))
}

// takeOperations copies the rows of a shard that belong to the page. It returns errEnd if the page
// needs no more shards.
func takeOperations(a *compute.Answer, h history, p *period, s scan.Shard, to *compute.Rows) error {
	for row := range s.Rows() {
		r, err := h.parse(row)
		switch {
		case err != nil:
			return err
		case r.Time < p.since:
			return errEnd
		case !p.wants(r):
		case p.skip > 0:
			p.skip--
		default:
			if err := to.Copy(a, row); err != nil {
				return err
			}
			if to.IsFull(a.Ask.Limit) {
				return errEnd
			}
		}
	}
	return nil
}

// operations selects the rows of a history that a request asks for. It reads the first shard, and
// further shards until the page is full or the interval ends, because tags and opcodes exclude
// rows.
func operations(a *compute.Answer, h history) (selected compute.Rows, err error) {
	p := asked(a)
	var first scan.Shard
	next := 1
	err = a.Use(h.shardKey(0), func(body []byte) (err error) {
		switch first, err = h.shard(body, 0, -1); {
		case err != nil:
			return err
		case p.skip >= first.Total:
			return errEnd
		case !p.filtered && p.skip >= site.HistoryShardSize: // no row before the page is excluded
			next = p.skip / site.HistoryShardSize
			p.skip -= next * site.HistoryShardSize
			return nil
		}
		return takeOperations(a, h, &p, first, &selected)
	})
	if err == nil {
		err = takeOlder(a, h, &p, first, next, &selected)
	}
	if err != nil && !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, errEnd) {
		return compute.Rows{}, err
	}
	return selected, nil
}

// takeOlder copies rows from the shards starting with number next.
func takeOlder(a *compute.Answer, h history, p *period, first scan.Shard, next int, to *compute.Rows) error {
	if p.filtered {
		if err := a.MustBeLarge((first.Shards - next) * compute.ShardObjects); err != nil {
			return err
		}
	}
	series := compute.Series{Key: h.shardKey, From: next, End: first.Shards, Bytes: compute.ShardBytes}
	if !p.filtered { // the page ends soon
		series.Alone = first.Shards
	}
	for o, err := range a.Objects(series) {
		if err != nil {
			return err
		}
		s, err := h.shard(o.Body, next, first.Total)
		if err == nil && s.Shards != first.Shards {
			err = fetch.ErrMixed
		}
		if err == nil {
			err = takeOperations(a, h, p, s, to)
		}
		if err != nil {
			return err
		}
		next++
	}
	return nil
}

// shard parses shard n of a history with total rows; -1 means that the total is unknown.
func (h *history) shard(body []byte, n, total int) (scan.Shard, error) {
	s, err := scan.ParseHistory(body)
	if err == nil && (s.Owner != h.owner || s.Shard != n || s.Total != total && total >= 0) {
		err = fetch.ErrMixed
	}
	return s, err
}

// counts holds the number of operations of a page by opcode.
type counts [op.Untag + 1]int

// operationBytes exceeds the bytes of an entry apart from the strings of its row, which hold the
// tag twice.
const operationBytes = 384

// historyPage appends operations, and the number of each kind. of returns the list of an operation
// and the account it is about.
func historyPage(a *compute.Answer, member string, selected compute.Rows, parse func(row []byte) (scan.OperationRow, error), of func(*scan.OperationRow) (list, target []byte)) error {
	var all counts
	size := compute.EntrySpare
	for i := range selected.Len() {
		r, err := parse(selected.At(i))
		if err != nil {
			return err
		}
		all[r.Opcode]++
		size += len(selected.At(i)) + 2*len(r.Tag) + operationBytes
	}
	if err := a.Grow(size); err != nil {
		return err
	}
	appendSummary(a, selected.Len(), all)
	return compute.AddRows(a, `,"`+member+`":[`, &selected, parse, func(b []byte, _ int, r scan.OperationRow) []byte {
		list, target := of(&r)
		return appendOperation(b, &r, list, target)
	}, "]}")
}

// appendSummary appends the parameters of the page and the counts of its operations.
func appendSummary(a *compute.Answer, total int, of counts) {
	opcode := "all"
	if a.Ask.Opcode != 0 {
		opcode = strconv.Itoa(a.Ask.Opcode)
	}
	a.Body = fmt.Appendf(a.Body, `{"summary":{"interval":"%d:00:00(hrs)","opcode":"%s","total":%d`, a.Ask.Interval/time.Hour, opcode, total)
	for code := op.Follow; code <= op.Untag; code++ {
		a.Body = fmt.Appendf(a.Body, `,"total_%ss":%d`, code, of[code])
	}
	a.Body = append(a.Body, '}')
}

// appendOperation appends an entry. Its op member is the operation as the contract encodes it,
// derived from the other members.
func appendOperation(b []byte, r *scan.OperationRow, list, target []byte) []byte {
	b = append(append(b, `{"address":"`...), r.Address...)
	b = append(append(b, `","name":`...), compute.NullIfEmpty(r.Name)...)
	b = append(append(b, `,"avatar":`...), compute.NullIfEmpty(r.Avatar)...)
	b = append(append(b, `,"token_id":"`...), list...)
	b = append(append(b, `","action":"`...), op.Code(r.Opcode).String()...)
	b = fmt.Appendf(b, `","opcode":%d,"op":"0x01%02x0101`, r.Opcode, r.Opcode)
	b = append(b, target[len("0x"):]...)
	b = hex.AppendEncode(b, scan.Text(r.Tag))
	b = append(append(b, `","tag":`...), r.Tag...)
	return append(compute.AppendMillis(append(b, `,"updated_at":`...), r.Time), '}')
}
