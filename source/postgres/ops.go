package postgres

import (
	"context"
	"strconv"
	"time"

	"github.com/followpress/followpress/site/op"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/replay"
)

// beginOps begins the table ops if there are events, and finds the time from which it is complete:
// v2 keeps only the operations that it has read itself.
func (r *Reader) beginOps(ctx context.Context, w *snapshot.Writer, g *source.Graph) error {
	if !r.schema.hasTable("events") {
		return nil
	}
	if err := w.Begin(snapshot.TableOps); err != nil || r.schema.v1 {
		return err
	}
	first, err := r.value(ctx, "SELECT (SELECT min("+r.schema.eventTime()+") FROM public.events WHERE event_name = 'ListOp')")
	if err != nil {
		return err
	}
	from := g.AsOf
	if first != "" {
		ms, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return err
		}
		from = time.UnixMilli(ms).UTC()
	}
	g.OpsFrom = &from
	return nil
}

// guess replays a slot whose events begin after its first records, to find the visible operations.
// It guesses the earlier operations.
func (p *places) guess(table []snapshot.Record) {
	before := p.before(table)
	if len(before) == 0 {
		return
	}
	p.kept.Reset()
	for _, b := range before {
		p.kept.Apply(b, source.NoTime)
	}
	p.shown = p.shown[:0]
	for _, o := range p.events {
		if visible, _ := p.kept.Perform(o.op, o.time); visible {
			p.shown = append(p.shown, o.shown())
		}
	}
}

func (o operation) shown() replay.SlotOp {
	return replay.SlotOp{Time: o.time, Block: o.block, Index: o.index, Op: o.op}
}

// before returns operations that stand for those before the first event of a slot. There are none
// unless the table has a record that no event adds. Otherwise they add three things: records whose
// first event is a removal, records of the table without any event, and tags whose first event
// removes them.
func (p *places) before(table []snapshot.Record) (ops [][]byte) {
	first := map[string]op.Code{} // first operation that added or removed a record
	taken := map[string]bool{}    // by record and tag: whether its first operation removed it
	var order, tags []op.Operation
	for _, o := range p.events {
		parsed, ignored := op.Parse(o.op)
		if ignored != "" {
			continue
		}
		record := string(parsed.Record)
		switch parsed.Code {
		case op.Follow, op.Unfollow:
			if first[record] == 0 {
				first[record] = parsed.Code
				order = append(order, parsed)
			}
		default:
			key := record + "\x00" + string(parsed.Tag)
			if _, known := taken[key]; !known && first[record] == 0 {
				taken[key] = parsed.Code == op.Untag
				tags = append(tags, parsed)
			}
		}
	}
	there := map[string]bool{}
	for i := range table {
		if record := recordOf(&table[i]); first[record] == 0 {
			there[record] = true
			ops = append(ops, append([]byte{opVersion, addRecord}, record...))
		}
	}
	if len(ops) == 0 {
		return nil
	}
	for _, o := range order {
		if o.Code == op.Unfollow {
			there[string(o.Record)] = true
			ops = append(ops, append([]byte{opVersion, addRecord}, o.Record...))
		}
	}
	for _, o := range tags {
		if there[string(o.Record)] && taken[string(o.Record)+"\x00"+string(o.Tag)] {
			ops = append(ops, append(append([]byte{opVersion, addTag}, o.Record...), o.Tag...))
		}
	}
	return ops
}

// recordOf encodes a record as in operations.
func recordOf(r *snapshot.Record) string {
	number := 1 // type of an address
	if n, err := strconv.ParseUint(r.Type, 10, 8); err == nil {
		number = int(n)
	}
	return string(append([]byte{byte(r.Version), byte(number)}, r.Data...))
}
