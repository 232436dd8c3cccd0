package load

import (
	"context"
	"fmt"
	"math"

	"github.com/followpress/followpress/generator/internal/graph"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/op"
	"github.com/followpress/followpress/snapshot"
)

// An incomingOp is a row of ops, numbered as far as workers can.
type incomingOp struct {
	row     snapshot.Op  // without token and bytes
	list    uint32       // None for an unknown list
	account uint32       // None for an address unknown to the graph
	address site.Address // set if account is None
	code    op.Code      // 0 if the operation is not about an account
	tag     uint32       // tag of a retained operation
}

// keptFrom returns the earliest time of retained operations, if the window begins at from.
func (l *loader) keptFrom(from int64) int64 {
	if l.Config.Data {
		return math.MinInt64
	}
	return from
}

// readOps keeps the operations within the window, or all for Config.Data, and counts the growth
// over all time. It accepts times after as_of, which is the time of the slowest chain. Accounts
// that only operations name do not become accounts of the graph.
func (l *loader) readOps(ctx context.Context) error {
	g := l.graph
	l.Progress.Stage("ops", 0)
	from, err := render.WindowStart(g.AsOf, l.Config.HistoryWindow)
	if err != nil {
		return err // impossible: checked by snapshot.ReadAsOf
	}
	keptFrom := l.keptFrom(from)
	h, err := graph.NewHistory(g)
	if err != nil {
		return err
	}
	convert := func(o *snapshot.Op) (in incomingOp, err error) {
		in.row, in.list, in.account = *o, graph.None, graph.None
		in.row.TokenID, in.row.Op = "", nil
		if list, ok := g.Lists.Find(o.TokenID); ok {
			in.list = list
		}
		parsed, ignored := op.Parse(o.Op)
		if ignored != "" { // impossible: checked by the reader
			return in, fmt.Errorf("op: %s", ignored)
		}
		var ok bool
		if in.address, ok = parsed.Address(); !ok {
			return in, nil
		}
		in.code = parsed.Code
		if o.Time < keptFrom {
			return in, nil
		}
		in.tag = h.Tag(parsed.Tag)
		if account, ok := g.Numbers.Find(in.address); ok {
			in.account = account
		}
		return in, nil
	}
	rows := readerOf(l.reader, snapshot.TableOps, func(r snapshot.Row[incomingOp]) error {
		in := &r.Value
		switch {
		case in.list == graph.None:
			l.Report.CountWithoutEffect(snapshot.TableOps, summary.UnknownList)
			return nil
		case in.code == 0:
			return nil
		}
		if l.Config.HistoryWindow > 0 && g.Primary[g.Owners[in.list]] == in.list {
			if err := h.Growth.Add(in.row.Time, in.code); err != nil {
				return err
			}
		}
		if in.row.Time < keptFrom {
			return nil
		}
		if in.account == graph.None {
			in.account = h.Account(in.address)
		}
		h.Add(&in.row, in.list, in.account, in.code, in.tag)
		if l.Config.HistoryWindow > 0 && in.row.Time >= from {
			l.Report.Operations++
		}
		return checkSize("operations", h.Len()+1)
	})
	if err := l.countBytes(snapshot.TableOps, rows.Ops(ctx, convert)); err != nil {
		return err
	}
	h.Flush()
	h.Open(from)
	g.History = h
	return nil
}
