package replay

import (
	"bytes"
	"context"
	"slices"

	"github.com/followpress/followpress/site"
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
	r.report.Lists, r.report.Records = uint64(len(minted)), 0
	delete(r.report.Ignored, LongRecord)
	var list List
	for _, t := range minted {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !t.placed || sharing[t.slot][0] != t {
			continue // the first list of a slot stands for all
		}
		if s, ok := r.slots[t.slot]; ok {
			if err := r.writeSlot(w, g, r.replay(&list, s), sharing[t.slot]); err != nil {
				return nil, err
			}
		}
	}
	r.countUnused(sharing)
	return g, nil
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
	row := snapshot.List{TokenID: t.id.Decimal(), Owner: t.owner}
	account := t.owner
	if s, ok := r.slots[t.slot]; t.placed && ok && s.user != (site.Address{}) {
		row.User, account = &s.user, s.user
	}
	g.Held[account] += 0
	return w.WriteList(row)
}

// replay returns the records of a slot, which are valid until the list is used again.
func (r *Replay) replay(list *List, s *slot) []snapshot.Record {
	list.Reset()
	for n := s.first; n != none; n = r.ops[n].next {
		list.Apply(r.arena.at(r.ops[n].op), r.ops[n].time)
	}
	return list.Records()
}

func (r *Replay) writeSlot(w Writer, g *source.Graph, records []snapshot.Record, lists []*token) error {
	long := len(records)
	records = slices.DeleteFunc(records, TooLong)
	if long -= len(records); long > 0 {
		r.report.Ignored[LongRecord] += uint64(long)
	}
	for _, t := range lists {
		id := t.id.Decimal()
		for _, record := range records {
			record.TokenID = id
			if err := w.WriteRecord(record); err != nil {
				return err
			}
		}
	}
	for _, record := range records {
		if account, ok := Follow(record); ok {
			g.Held[account] += uint32(len(lists))
		}
	}
	r.report.Records += uint64(len(records)) * uint64(len(lists))
	return nil
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

// TooLong reports whether a record might not fit into a row of a snapshot, which has at most 16 MiB.
// Anybody can make such a record for little money, by many tags, and must not stop everybody's
// snapshot. It is left out as a whole: without its tags it could be a follow.
func TooLong(r snapshot.Record) bool {
	const (
		maxRow    = 16<<20 - 1<<10 // without the other members
		maxEscape = 6              // bytes of JSON for a byte of text
	)
	size := 2 * len(r.Data)
	for _, tag := range r.Tags {
		size += maxEscape*len(tag) + len(`"",`)
	}
	return size > maxRow
}

// Follow returns the account that a record follows: that of an address without the tags block and
// mute.
func Follow(r snapshot.Record) (account site.Address, ok bool) {
	if r.Version != uint32(addressHeader[0]) || r.Type != typeAddress ||
		slices.Contains(r.Tags, "block") || slices.Contains(r.Tags, "mute") {
		return site.Address{}, false
	}
	return site.Address(r.Data), true
}
