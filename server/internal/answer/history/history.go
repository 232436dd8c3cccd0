// Package history answers with operations: what lists have done lately, and what was done to an account.
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

// A history is operations, the newest first: those on an address, or those of a list. The first shard has what most
// requests ask for, and says how many there are.
type history struct {
	owner    string // of the shards
	shardKey func(n int) site.Key
	parse    func(row []byte) (scan.OperationRow, error)
}

// Notifications answers with what lists have done to an account lately.
func Notifications(a *compute.Answer) error {
	address, selected, err := notified(a)
	if err != nil {
		return err
	}
	return historyPage(a, "notifications", selected, scan.ParseNotificationRow, func(r *scan.OperationRow) (list, target []byte) {
		return r.List, []byte(address)
	})
}

// notified selects what lists have done to the account that the path names.
func notified(a *compute.Answer) (address string, selected compute.Rows, err error) {
	if address, err = lookup.Address(a, a.Ask.User); err == nil {
		selected, err = operations(a, history{address, func(n int) site.Key { return site.NotificationsKey(address, n) }, scan.ParseNotificationRow})
	}
	return address, selected, err
}

// Activity answers with what a list has done lately.
func Activity(a *compute.Answer) error {
	list := a.Ask.TokenID
	selected, err := operations(a, history{list, func(n int) site.Key { return site.ActivityKey(list, n) }, scan.ParseActivityRow})
	if err == nil && selected.Len() == 0 { // then nothing may have told yet whether the list exists
		_, err = lookup.List(a, list)
	}
	if err != nil {
		return err
	}
	return historyPage(a, "activity", selected, scan.ParseActivityRow, func(r *scan.OperationRow) (by, target []byte) {
		return []byte(list), r.Address
	})
}

// errEnd ends the reading of a history before its end.
var errEnd = errors.New("no more operations are wanted")

// A period is the operations that a request asks for: those of an interval, but for what opcode and tag leave out.
type period struct {
	since    int64 // milliseconds since the Unix epoch
	until    int64 // likewise
	opcode   int   // 0 for all
	tag      []byte
	filtered bool // opcode, tag or the end of the interval leave rows out
	skip     int  // rows to go before the page begins
}

func asked(a *compute.Answer) period {
	p := period{opcode: a.Ask.Opcode, filtered: a.Ask.Opcode != 0 || a.Ask.Tag != "", skip: a.Ask.Offset}
	if a.Ask.Tag != "" {
		p.tag = rawjson.AppendString(nil, a.Ask.Tag) // with an escape in place of what is not UTF-8: as no tag is in a row
	}
	asOf := a.AsOf()
	end := asOf
	if a.Ask.Start != site.NoStart {
		p.filtered = true
		if start := time.Unix(int64(a.Ask.Start), 0); start.Before(end) {
			end = start
		}
	}
	// An operation at the start of the interval belongs to it. Objects that a publish has still to delete may have
	// operations from before the window.
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

// takeOperations copies rows of a shard that a page has. It returns errEnd if it needs no more shards.
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

// operations selects the rows of a history that the request asks for. It reads the first shard, and others as far as
// the page needs them: tags and opcodes leave rows out, and the interval ends it.
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
		case !p.filtered && p.skip >= site.HistoryShardSize: // no row before the page is left out
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

// takeOlder copies rows of the shards from a number on.
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

// shard parses shard n of a history with that many rows, -1 if it is not known how many.
func (h *history) shard(body []byte, n, total int) (scan.Shard, error) {
	s, err := scan.ParseHistory(body)
	if err == nil && (s.Owner != h.owner || s.Shard != n || s.Total != total && total >= 0) {
		err = fetch.ErrMixed
	}
	return s, err
}

// counts are how many operations a page has, by their codes.
type counts [op.Untag + 1]int

// operationBytes is more than an entry of a history has beside the texts of its row, the tag of which it has twice.
const operationBytes = 384

// historyPage appends operations and how many of each kind there are. of returns the list that an operation is of, and
// whom it is about.
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

// appendSummary appends what the page was asked for, and what it has.
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

// appendOperation appends an entry: op is the operation as the contract has it, which follows from the rest.
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
