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
	WriteList(snapshot.List) error
	WriteRecord(snapshot.Record) error
}

// Write writes all lists, in the order of their token ids, and their records. It writes the records
// of lists that share a slot one list after the other. The Graph has no AsOf: events do not tell how
// far the chains were read.
func (r *Replay) Write(ctx context.Context, w Writer) (*source.Graph, error) {
	g := &source.Graph{
		Primary: make(map[site.Address]string, len(r.primary)),
		Held:    map[site.Address]uint32{},
		ListOps: r.report.ListOps,
	}
	for account, token := range r.primary {
		g.Primary[account] = token.Decimal()
	}
	minted := r.minted()
	sharing := map[slotKey][]*token{} // those of a slot, by their ids
	for _, t := range minted {
		if t.placed {
			sharing[t.slot] = append(sharing[t.slot], t)
		}
		if err := r.writeList(w, g, t); err != nil {
			return nil, err
		}
	}
	r.report.Lists = uint64(len(minted))
	delete(r.report.Ignored, LongRecord)
	delete(r.report.Ignored, SharedSlot)
	out := Slots{To: w, Held: g.Held}
	var list List
	for _, t := range minted {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !t.placed || sharing[t.slot][0] != t {
			continue // the first list of a slot stands for all
		}
		if s, ok := r.slots[t.slot]; ok {
			if err := out.Write(r.replay(&list, s), ids(sharing[t.slot])); err != nil {
				return nil, err
			}
		}
	}
	r.report.Records = out.Records
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

// minted returns the lists that exist, in the order of their ids.
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

// list is the row of a list.
func (r *Replay) list(t *token) snapshot.List {
	row := snapshot.List{TokenID: t.id.Decimal(), Owner: t.owner}
	if s, ok := r.slots[t.slot]; t.placed && ok && s.user != (site.Address{}) {
		row.User = &s.user
	}
	return row
}

// replay returns the records of a slot, which are valid until the list is used again.
func (r *Replay) replay(list *List, s *slot) []snapshot.Record {
	list.Reset()
	for n := s.first; n != none; n = r.ops[n].next {
		list.Apply(r.arena.at(r.ops[n].op), r.ops[n].time)
	}
	return list.Records()
}

// countUnused counts the operations in slots that no list has by now.
func (r *Replay) countUnused(used map[slotKey][]*token) {
	delete(r.report.Ignored, NoList)
	for key, s := range r.slots {
		if len(used[key]) == 0 && s.count > 0 {
			r.report.Ignored[NoList] += uint64(s.count)
		}
	}
}
