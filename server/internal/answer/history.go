package answer

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/server/internal/cache"
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

// notifications answers with what lists have done to an account lately.
func (c *computation) notifications() error {
	address, selected, err := c.notified()
	if err != nil {
		return err
	}
	return c.historyPage("notifications", selected, scan.ParseNotificationRow, func(r *scan.OperationRow) (list, target []byte) {
		return r.List, []byte(address)
	})
}

// notified selects what lists have done to the account that the path names.
func (c *computation) notified() (address string, selected rows, err error) {
	if address, err = c.addressOf(c.ask.User); err == nil {
		selected, err = c.operations(history{address, func(n int) site.Key { return site.NotificationsKey(address, n) }, scan.ParseNotificationRow})
	}
	return address, selected, err
}

// activity answers with what a list has done lately.
func (c *computation) activity() error {
	list := c.ask.TokenID
	selected, err := c.operations(history{list, func(n int) site.Key { return site.ActivityKey(list, n) }, scan.ParseActivityRow})
	if err == nil && selected.len() == 0 { // then nothing may have told yet whether the list exists
		_, err = c.lookUpList(list)
	}
	if err != nil {
		return err
	}
	return c.historyPage("activity", selected, scan.ParseActivityRow, func(r *scan.OperationRow) (by, target []byte) {
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

func (c *computation) period() (p period, err error) {
	p = period{opcode: c.ask.Opcode, filtered: c.ask.Opcode != 0 || c.ask.Tag != "", skip: c.ask.Offset}
	if c.ask.Tag != "" {
		p.tag = rawjson.AppendString(nil, c.ask.Tag) // with an escape in place of what is not UTF-8: as no tag is in a row
	}
	asOf, err := c.asOf()
	end := asOf
	if c.ask.Start != site.NoStart {
		p.filtered = true
		if start := time.Unix(int64(c.ask.Start), 0); start.Before(end) {
			end = start
		}
	}
	// An operation at the start of the interval belongs to it. Objects that a publish has still to delete may have
	// operations from before the window.
	since, window := end.Add(-c.ask.Interval), asOf.Add(-time.Duration(c.root.Config.HistoryWindow))
	if since.Before(window) {
		since = window
	}
	p.since, p.until = since.UnixMilli(), end.UnixMilli()
	return p, err
}

func (p *period) wants(r scan.OperationRow) bool {
	return r.Time <= p.until && (p.opcode == 0 || int(r.Opcode) == p.opcode) && (p.tag == nil || bytes.Equal(r.Tag, p.tag))
}

// takeOperations copies rows of a shard that a page has. It returns errEnd if it needs no more shards.
func (c *computation) takeOperations(h history, p *period, s scan.Shard, to *rows) error {
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
			if err := c.copyPageRow(to, row); err != nil {
				return err
			}
			if to.isFull(c.ask.Limit) {
				return errEnd
			}
		}
	}
	return nil
}

// operations selects the rows of a history that the request asks for. It reads the first shard, and others as far as
// the page needs them: tags and opcodes leave rows out, and the interval ends it.
func (c *computation) operations(h history) (selected rows, err error) {
	p, err := c.period()
	if err != nil {
		return rows{}, err
	}
	var first scan.Shard
	next := 1
	err = c.use(h.shardKey(0), func(body []byte) (err error) {
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
		return c.takeOperations(h, &p, first, &selected)
	})
	if err == nil {
		err = c.takeOlder(h, &p, first, next, &selected)
	}
	if err != nil && !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, errEnd) {
		return rows{}, err
	}
	return selected, nil
}

// takeOlder copies rows of the shards from a number on.
func (c *computation) takeOlder(h history, p *period, first scan.Shard, next int, to *rows) error {
	if p.filtered {
		if err := c.mustBeLarge((first.Shards - next) * shardObjects); err != nil {
			return err
		}
	}
	for o, err := range c.olderShards(h, next, first.Shards, p.filtered) {
		if err != nil {
			return fetch.MixedIfAbsent(err)
		}
		err := func() error {
			defer o.Release() // after a panic too
			return c.m.scan(c.ctx, len(o.Body), func() error {
				s, err := h.shard(o.Body, next, first.Total)
				if err == nil && s.Shards != first.Shards {
					err = fetch.ErrMixed
				}
				if err != nil {
					return err
				}
				return c.takeOperations(h, p, s, to)
			})
		}()
		if err != nil {
			return err
		}
		next++
	}
	return nil
}

// olderShards yields shards of a history in order, which the caller releases. It reads ahead only for a filter:
// without one, a page ends soon.
func (c *computation) olderShards(h history, from, end int, filtered bool) iter.Seq2[*cache.Object, error] {
	if filtered {
		return c.m.readAhead(c.ctx, c.read, h.shardKey, from, end, shardBytes)
	}
	return func(yield func(*cache.Object, error) bool) {
		for n := from; n < end; n++ {
			if !yield(c.read.get(c.ctx, h.shardKey(n))) {
				return
			}
		}
	}
}

// shard parses shard n of a history with that many rows, -1 if it is not known how many.
func (h *history) shard(body []byte, n, total int) (scan.Shard, error) {
	s, err := scan.ParseHistory(body)
	if err == nil && (s.Owner != h.owner || s.Shard != n || s.Total != total && total >= 0) {
		err = fetch.ErrMixed
	}
	return s, err
}

// asOf is the time of the snapshot, cut to milliseconds, as the times of operations are.
func (c *computation) asOf() (time.Time, error) {
	asOf, err := time.Parse(time.RFC3339, c.root.AsOf)
	if err != nil {
		return time.Time{}, fmt.Errorf("time of the site: %w: %w", site.ErrMalformed, err)
	}
	return asOf.UTC().Truncate(time.Millisecond), nil
}

// counts are how many operations a page has, by their codes.
type counts [op.Untag + 1]int

// operationBytes is more than an entry of a history has beside the texts of its row, the tag of which it has twice.
const operationBytes = 384

// historyPage appends operations and how many of each kind there are. of returns the list that an operation is of, and
// whom it is about.
func (c *computation) historyPage(member string, selected rows, parse func(row []byte) (scan.OperationRow, error), of func(*scan.OperationRow) (list, target []byte)) error {
	var all counts
	size := entrySpare
	for i := range selected.len() {
		r, err := parse(selected.at(i))
		if err != nil {
			return err
		}
		all[r.Opcode]++
		size += len(selected.at(i)) + 2*len(r.Tag) + operationBytes
	}
	if err := c.grow(size); err != nil {
		return err
	}
	c.appendSummary(selected.len(), all)
	c.body = append(append(append(c.body, `,"`...), member...), `":[`...)
	for i := range selected.len() {
		r, err := parse(selected.at(i))
		if err != nil {
			return err
		}
		list, target := of(&r)
		err = c.addEntry(i == 0, len(selected.at(i))+2*len(r.Tag), func(b []byte) []byte { return appendOperation(b, &r, list, target) })
		if err != nil {
			return err
		}
	}
	return c.addText("]}")
}

// appendSummary appends what the page was asked for, and what it has.
func (c *computation) appendSummary(total int, of counts) {
	opcode := "all"
	if c.ask.Opcode != 0 {
		opcode = strconv.Itoa(c.ask.Opcode)
	}
	c.body = fmt.Appendf(c.body, `{"summary":{"interval":"%d:00:00(hrs)","opcode":"%s","total":%d`, c.ask.Interval/time.Hour, opcode, total)
	for code := op.Follow; code <= op.Untag; code++ {
		c.body = fmt.Appendf(c.body, `,"total_%ss":%d`, code, of[code])
	}
	c.body = append(c.body, '}')
}

// appendOperation appends an entry: op is the operation as the contract has it, which follows from the rest.
func appendOperation(b []byte, r *scan.OperationRow, list, target []byte) []byte {
	b = append(append(b, `{"address":"`...), r.Address...)
	b = append(append(b, `","name":`...), nullIfEmpty(r.Name)...)
	b = append(append(b, `,"avatar":`...), nullIfEmpty(r.Avatar)...)
	b = append(append(b, `,"token_id":"`...), list...)
	b = append(append(b, `","action":"`...), op.Code(r.Opcode).String()...)
	b = fmt.Appendf(b, `","opcode":%d,"op":"0x01%02x0101`, r.Opcode, r.Opcode)
	b = append(b, target[len("0x"):]...)
	b = hex.AppendEncode(b, scan.Text(r.Tag))
	b = append(append(b, `","tag":`...), r.Tag...)
	return append(appendMillis(append(b, `,"updated_at":`...), r.Time), '}')
}
