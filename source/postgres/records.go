package postgres

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/replay"
)

// Codes of the operations that rows of tables stand for; replay defines their meaning.
const (
	opVersion = 1
	addRecord = 1
	removal   = 2
	addTag    = 3
)

// maxOperation limits the bytes of the text of an operation, a record or a tag, so that a batch of
// rows fits in memory. Records of addresses have 46, their tags at most 255.
const (
	maxOperation = 32 << 10
	longRow      = "record, tag or operation that is absent, or longer than 16 KiB"
)

// replacement is stored by v2 in place of bytes that are not UTF-8.
const replacement = "\uFFFD"

// writeRecords reads the records of all lists by contract and slot, and writes them by list.
func (r *Reader) writeRecords(ctx context.Context, w *snapshot.Writer, g *source.Graph, ls *lists) (err error) {
	rows, err := r.count(ctx, "efp_list_records", "true")
	if err != nil {
		return err
	}
	r.progress.Stage("records", int64(rows))
	contracts, err := r.contracts(ctx)
	if err != nil {
		return err
	}
	// All rows are read, so an index would only make the server read pages repeatedly.
	if err := r.exec(ctx, "SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off"); err != nil {
		return err
	}
	sorted, err := newInLists(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sorted.close()) }()
	p := &places{r: r, sorted: sorted, out: replay.Slots{To: sorted, Held: g.Held}, lists: ls, lost: map[uint64]*loss{}}
	for _, c := range contracts {
		if err := p.contract(ctx, c); err != nil {
			return fmt.Errorf("contract %s on chain %d: %w", c.Address, c.Chain, err)
		}
	}
	p.warn()
	if err := sorted.write(ctx); err != nil {
		return err
	}
	if r.report.Ops, err = p.out.WriteOps(ctx); err != nil {
		return err
	}
	r.report.Records = p.out.Records
	for reason, n := range p.out.Ignored {
		r.report.Ignored[string(reason)] += n
	}
	order := &r.report.Order
	order.Empty = r.report.Lists - order.Events - order.Tables - order.Missing
	return nil
}

// contracts returns the contracts of records and of operations: if all rows of a chain were lost,
// only events name its contract. Tables may have an address in upper and lower case.
func (r *Reader) contracts(ctx context.Context) (contracts []source.Contract, err error) {
	const of = `SELECT chain_id, lower(left(contract_address, 50)), count(*) FROM public.`
	query := of + `efp_list_records GROUP BY 1, 2`
	if r.schema.hasTable("events") {
		query += ` UNION ` + of + `events WHERE event_name = 'ListOp' GROUP BY 1, 2`
	}
	err = r.query(ctx, query+` ORDER BY 1, 2`, func(v [][]byte) error {
		c, ok := parseContract(v[0], v[1])
		if !ok {
			return r.ignoreMany(noContract, v[2])
		}
		if n := len(contracts); n == 0 || contracts[n-1] != c {
			contracts = append(contracts, c)
		}
		return nil
	})
	return contracts, err
}

// A loss counts what the tables of a chain lack.
type loss struct {
	lists   int    // lists without a record in the tables
	records uint64 // records given by the events of these lists
	kept    uint64 // records of other lists in the tables
}

// warn reports where tables and events differ.
func (p *places) warn() {
	r := p.r
	for _, chain := range slices.Sorted(maps.Keys(p.lost)) {
		l := p.lost[chain]
		switch {
		case l.lists == 0:
		case l.kept == 0:
			r.warn("the tables lack all records of chain %d, but its events give %d records of %d lists; check whether the indexer's migration failed",
				chain, l.records, l.lists)
		default:
			r.warn("the tables lack all records of %d lists of chain %d, but their events give %d records", l.lists, chain, l.records)
		}
	}
	if r.report.Order.Tables > 0 && r.schema.hasTable("events") {
		r.warn("the events of %d lists do not give the records that the tables have (%d; events %d): tables count, and records are in the order in which rows were inserted",
			r.report.Order.Tables, p.differing.tables, p.differing.events)
	}
}

// places writes the records of places.
type places struct {
	r      *Reader
	sorted *inLists
	out    replay.Slots // writes to sorted
	ids    []string     // token IDs of the lists with the slot
	lists  *lists

	lost      map[uint64]*loss                // by chain
	differing struct{ tables, events uint64 } // records of lists for which events and tables disagree

	// State of the current slot: the rows of the tables, as operations in order, and the events.
	tables, events []operation
	shown          []replay.SlotOp // events with an effect visible to readers

	table, replayed, kept replay.List
	op                    []byte
	ignored               []replay.Reason    // reasons of ignored rows
	records               []*snapshot.Record // records of a list, sorted
	others                []*snapshot.Record // records of another list, sorted
}

// An operation is an operation on a list with its time and log position, which tables do not have.
type operation struct {
	op    []byte
	time  int64
	block uint64
	index uint32
}

var errOrder = errors.New("slots are not sorted; some may be in upper case")

// A stream is a cursor whose rows begin with a slot and are ordered by slot.
type stream struct {
	*cursor
	slot string   // slot of row
	row  [][]byte // nil at the end
}

func (s *stream) advance(ctx context.Context) error {
	row, err := s.cursor.row(ctx)
	if err != nil {
		return err
	}
	if s.row = row; row != nil && string(row[0]) != s.slot {
		slot := string(row[0])
		if slot < s.slot {
			return errOrder
		}
		s.slot = slot
	}
	return nil
}

// take calls do with the rows of a slot. Slots must be taken in order.
func (s *stream) take(ctx context.Context, slot string, do func(row [][]byte) error) error {
	for s.row != nil && s.slot == slot {
		if err := do(s.row); err != nil {
			return err
		}
		if err := s.advance(ctx); err != nil {
			return err
		}
	}
	return nil
}

// streams starts reading the records, tags and operations of a contract. ctid, the position of a
// row in the table, is the order of insertion unless space was reused.
func (p *places) streams(ctx context.Context, c source.Contract) (records, tags, ops *stream, err error) {
	s := p.r.schema
	at := fmt.Sprintf(" WHERE chain_id = %d AND lower(contract_address) = '%s'", c.Chain, c.Address)
	slot, byTime := s.text("slot"), finite("created_at")
	bySlot := "slot"
	if !s.v1 { // strings, perhaps in upper and lower case
		slot = "lower(" + slot + ")"
		bySlot = slot + ` COLLATE "C"`
	}
	at += fmt.Sprintf(" AND octet_length(slot) <= %d", maxSlot)
	open := func(name, sql string) *stream {
		if err != nil {
			return nil
		}
		st := &stream{}
		if st.cursor, err = p.r.open(ctx, name, sql); err == nil {
			err = st.advance(ctx)
		}
		return st
	}
	record := bounded(s.text("record"), maxOperation)
	records = open("followpress_records", "SELECT "+slot+", "+record+", "+millis("created_at")+
		" FROM public.efp_list_records"+at+" ORDER BY "+bySlot+", "+byTime+", ctid")
	tags = open("followpress_tags", "SELECT "+slot+", "+record+", "+bounded("tag", maxOperation)+
		" FROM public.efp_list_record_tags"+at+" ORDER BY "+bySlot)
	if s.hasTable("events") {
		ops = open("followpress_ops", "SELECT lower(event_args->>'slot'), "+bounded("event_args->>'op'", maxOperation)+", "+s.eventTime()+", block_number, log_index"+
			" FROM public.events"+strings.Replace(at, "octet_length(slot)", "octet_length(event_args->>'slot')", 1)+
			" AND event_name = 'ListOp' AND event_args->>'slot' IS NOT NULL"+
			` ORDER BY lower(event_args->>'slot') COLLATE "C", block_number, log_index`)
	} else {
		ops = &stream{}
	}
	return records, tags, ops, err
}

func (p *places) contract(ctx context.Context, contract source.Contract) error {
	if p.lost[contract.Chain] == nil {
		p.lost[contract.Chain] = &loss{}
	}
	records, tags, ops, err := p.streams(ctx, contract)
	if err != nil {
		return err
	}
	streams := []*stream{records, tags, ops}
	for {
		slot, more := "", false
		for _, s := range streams {
			if s.row != nil && (!more || s.slot < slot) {
				slot, more = s.slot, true
			}
		}
		if !more {
			break
		}
		if err := p.read(ctx, slot, records, tags, ops); err != nil {
			return err
		}
		word := unhex(nil, slot)
		if len(word) != len(source.Word{}) {
			continue // no location names it
		}
		place := source.Place{Contract: contract, Slot: source.Word(word)}
		if err := p.write(contract.Chain, p.lists.at[place], p.lost[contract.Chain]); err != nil {
			return err
		}
	}
	for _, s := range streams {
		if s.cursor == nil {
			continue
		}
		if err := s.close(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p *places) read(ctx context.Context, slot string, records, tags, ops *stream) error {
	p.tables, p.events = p.tables[:0], p.events[:0]
	err := records.take(ctx, slot, func(row [][]byte) error {
		p.r.progress.Add(1)
		if row[1] == nil {
			p.r.ignore(longRow)
			return nil
		}
		p.op = unhex(append(p.op[:0], opVersion, addRecord), row[1])
		return add(&p.tables, p.op, row[2])
	})
	if err == nil {
		err = tags.take(ctx, slot, func(row [][]byte) error {
			if row[1] == nil || row[2] == nil {
				p.r.ignore(longRow)
				return nil
			}
			// v2 has replaced bytes that were not UTF-8; such tags never count.
			if !p.r.schema.v1 && strings.Contains(string(row[2]), replacement) {
				return nil
			}
			p.op = append(unhex(append(p.op[:0], opVersion, addTag), row[1]), row[2]...)
			return add(&p.tables, p.op, nil)
		})
	}
	if err == nil {
		err = ops.take(ctx, slot, func(row [][]byte) error {
			if row[1] == nil {
				p.r.ignore(longRow)
				return nil
			}
			p.op = unhex(p.op[:0], row[1])
			if err := add(&p.events, p.op, row[2]); err != nil {
				return err
			}
			return p.events[len(p.events)-1].place(row[3], row[4])
		})
	}
	return err
}

// add adds an operation; text is its time.
func add(to *[]operation, op, text []byte) error {
	time := int64(source.NoTime)
	if text != nil {
		var err error
		if time, err = strconv.ParseInt(string(text), 10, 64); err != nil {
			return err
		}
	}
	*to = append(*to, operation{op: bytes.Clone(op), time: time})
	return nil
}

// place sets the log position of an operation.
func (o *operation) place(block, index []byte) (err error) {
	if o.block, err = strconv.ParseUint(string(block), 10, 64); err != nil {
		return fmt.Errorf("block_number of an event: %w", err)
	}
	n, err := strconv.ParseUint(string(index), 10, 32)
	if err != nil {
		return fmt.Errorf("log_index of an event: %w", err)
	}
	o.index = uint32(n)
	return nil
}

// write writes the records and visible operations of the current slot for each list that has it.
func (p *places) write(chain uint64, holders []int, lost *loss) error {
	if len(holders) == 0 {
		return nil
	}
	p.ids = p.ids[:0]
	for _, n := range holders {
		p.ids = append(p.ids, p.lists.all[n].token)
	}
	records, byEvents := p.decide(holders, lost)
	if !byEvents {
		p.guess(p.table.Records())
	}
	p.sorted.begin(holders[0])
	if err := p.out.Write(records, p.ids); err != nil {
		return err
	}
	p.out.Ops(chain, p.shown)
	return nil
}

// decide chooses between tables and events for the records of a slot.
func (p *places) decide(holders []int, lost *loss) (records []snapshot.Record, byEvents bool) {
	p.table.Reset()
	p.ignored = p.ignored[:0]
	for _, o := range p.tables {
		if reason := p.table.Apply(o.op, o.time); reason != "" {
			p.ignored = append(p.ignored, reason)
		}
	}
	records = p.table.Records()
	by := &p.r.report.Order.Tables
	if byEvents = p.complete(records); byEvents {
		records, by = p.replayed.Records(), &p.r.report.Order.Events
	} else {
		for _, reason := range p.ignored {
			p.r.ignore(string(reason))
		}
	}
	if len(records) == 0 {
		if n := len(p.replayed.Records()); n > 0 {
			lost.lists += len(holders)
			lost.records += uint64(n * len(holders))
			p.r.report.Order.Missing += uint64(len(holders))
		}
		return nil, byEvents
	}
	lost.kept += uint64(len(records) * len(holders))
	if by == &p.r.report.Order.Tables {
		p.differing.tables += uint64(len(records) * len(holders))
		p.differing.events += uint64(len(p.replayed.Records()) * len(holders))
	}
	*by += uint64(len(holders))
	return records, byEvents
}

// complete replays the events of the slot, and reports whether they give the records of its tables.
//
// Tags may differ where the indexers' rules differ. A removed record loses its tags, but v1 keeps
// them, and v2 keeps them if it reads the removal together with a later add. So the tables must
// have all tags that the events give, and no others than without any removal.
func (p *places) complete(table []snapshot.Record) bool {
	p.replayed.Reset()
	p.shown = p.shown[:0]
	for _, o := range p.events {
		visible, reason := p.replayed.Perform(o.op, o.time)
		if visible {
			p.shown = append(p.shown, o.shown())
		}
		if reason != "" {
			p.r.ignore(string(reason))
		}
	}
	replayed := p.replayed.Records()
	if len(table) != len(replayed) {
		return false
	}
	p.records, p.others = sorted(p.records, table), sorted(p.others, replayed)
	tagsDiffer := false
	for n, a := range p.records {
		b := p.others[n]
		if compareRecords(a, b) != 0 || !holds(a.Tags, b.Tags) {
			return false
		}
		tagsDiffer = tagsDiffer || len(a.Tags) != len(b.Tags)
	}
	return !tagsDiffer || p.tagsExplained()
}

// tagsExplained reports whether the records in p.records have only tags that the events give
// without any removal.
func (p *places) tagsExplained() bool {
	p.kept.Reset()
	for _, o := range p.events {
		if len(o.op) > 1 && o.op[1] != removal {
			p.kept.Apply(o.op, o.time)
		}
	}
	p.others = sorted(p.others, p.kept.Records())
	at := 0
	for _, r := range p.records {
		for at < len(p.others) && compareRecords(p.others[at], r) < 0 {
			at++
		}
		if at == len(p.others) || compareRecords(p.others[at], r) != 0 || !holds(p.others[at].Tags, r.Tags) {
			return false
		}
	}
	return true
}

// holds reports whether others contains all tags, except tags that a table cannot store. Both are
// sorted.
func holds(others, tags []string) bool {
	for _, tag := range tags {
		if _, ok := slices.BinarySearch(others, tag); !ok && !strings.Contains(tag, replacement) {
			return false
		}
	}
	return true
}

// sorted returns pointers to records, sorted by identity.
func sorted(pointers []*snapshot.Record, records []snapshot.Record) []*snapshot.Record {
	pointers = pointers[:0]
	for n := range records {
		pointers = append(pointers, &records[n])
	}
	slices.SortFunc(pointers, compareRecords)
	return pointers
}

func compareRecords(a, b *snapshot.Record) int {
	return cmp.Or(bytes.Compare(a.Data, b.Data), cmp.Compare(a.Version, b.Version), strings.Compare(a.Type, b.Type))
}
