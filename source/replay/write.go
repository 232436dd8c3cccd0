package replay

import (
	"bytes"
	"context"
	"slices"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
)

// A Writer is the part of a snapshot.Writer that a Replay uses. It keeps no part of a row.
type Writer interface {
	Begin(snapshot.Table) error
	WriteList(snapshot.List) error
	WriteRecord(snapshot.Record) error
	WriteOp(snapshot.Op) error
}

// Write writes all lists ordered by token ID, their records, and their visible operations. The
// records of lists that share a slot are consecutive. The Graph has no AsOf, since events do not
// show how far the chains were read.
//
// Until they are written, the operations take 16 bytes each, and a few per list.
func (r *Replay) Write(ctx context.Context, w Writer) (*source.Graph, error) {
	g := &source.Graph{
		Primary: make(map[site.Address]string, len(r.primary)),
		Held:    map[site.Address]uint32{},
		ListOps: r.report.ListOps,
	}
	for account, token := range r.primary {
		g.Primary[account] = token.Decimal()
	}
	if err := w.Begin(snapshot.TableOps); err != nil { // even without rows
		return nil, err
	}
	minted := r.minted()
	sharing := map[slotKey][]*token{} // lists of a slot, by ID
	for _, t := range minted {
		if t.placed {
			sharing[t.slot] = append(sharing[t.slot], t)
		}
		if err := r.writeList(w, g, t); err != nil {
			return nil, err
		}
	}
	r.report.Lists = uint64(len(minted))
	for _, reason := range []Reason{LongRecord, SharedSlot, UntimedOp, LongOp, SharedOp} {
		delete(r.report.Ignored, reason)
	}
	out := Slots{To: w, Held: g.Held, log: opLog{ops: r.ops, arena: r.arena}}
	chains := make([]uint64, len(r.contracts))
	for contract, n := range r.contracts {
		chains[n] = contract.Chain
	}
	var list List
	var visible []int32
	for _, t := range minted {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !t.placed || sharing[t.slot][0] != t {
			continue // the first list of a slot stands for all
		}
		if s, ok := r.slots[t.slot]; ok {
			records, ops := r.replay(&list, s, visible[:0])
			if err := out.Write(records, ids(sharing[t.slot])); err != nil {
				return nil, err
			}
			out.note(chains[t.slot.contract], ops)
			visible = ops
		}
	}
	r.report.Records = out.Records
	var err error
	if r.report.Ops, err = out.WriteOps(ctx); err != nil {
		return nil, err
	}
	for reason, n := range out.Ignored {
		r.report.Ignored[reason] = n
	}
	r.countUnused(sharing)
	return g, nil
}

func ids(tokens []*token) []string {
	texts := make([]string, len(tokens))
	for i, t := range tokens {
		texts[i] = t.id.Decimal()
	}
	return texts
}

// minted returns the existing lists, ordered by ID.
func (r *Replay) minted() []*token {
	var minted []*token
	for _, t := range r.tokens {
		if t.owner != (site.Address{}) {
			minted = append(minted, t)
		}
	}
	slices.SortFunc(minted, func(a, b *token) int { return bytes.Compare(a.id[:], b.id[:]) })
	return minted
}

func (r *Replay) writeList(w Writer, g *source.Graph, t *token) error {
	row := r.list(t)
	g.Held[rules.AccountOf(row.Owner, row.User)] += 0
	return w.WriteList(row)
}

// list returns the row of a list.
func (r *Replay) list(t *token) snapshot.List {
	row := snapshot.List{TokenID: t.id.Decimal(), Owner: t.owner}
	if s, ok := r.slots[t.slot]; t.placed && ok && s.user != (site.Address{}) {
		row.User = &s.user
	}
	return row
}

// replay returns the records of a slot, valid until list is used again. It appends the numbers of
// the visible operations to visible.
func (r *Replay) replay(list *List, s *slot, visible []int32) ([]snapshot.Record, []int32) {
	list.Reset()
	for n := s.first; n != none; n = r.ops[n].next {
		if seen, _ := list.Perform(r.arena.at(r.ops[n].op), r.ops[n].time); seen {
			visible = append(visible, n)
		}
	}
	return list.Records(), visible
}

// countUnused counts the operations in slots that no list has.
func (r *Replay) countUnused(used map[slotKey][]*token) {
	delete(r.report.Ignored, NoList)
	for key, s := range r.slots {
		if len(used[key]) == 0 && s.count > 0 {
			r.report.Ignored[NoList] += uint64(s.count)
		}
	}
}
