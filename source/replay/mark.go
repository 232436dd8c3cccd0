package replay

import (
	"maps"
	"slices"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
)

// A mark is a state that Undo can restore.
type mark struct {
	undo   []func() // undo functions in the order of the changes; the last one runs first
	ops    int
	chunks int // chunks of the arena
	used   int // bytes of the last chunk
	report Report
}

// Mark makes Undo return to the current state. Earlier events can no longer be undone. From now on,
// memory is also in proportion to the events added after the mark.
func (r *Replay) Mark() {
	m := &mark{ops: len(r.ops), chunks: len(r.arena), report: r.report}
	if m.chunks > 0 {
		m.used = len(r.arena[m.chunks-1])
	}
	m.report.Ignored = maps.Clone(r.report.Ignored)
	r.marked = m
}

// Undo drops all events since the last Mark, in time proportional to them. The mark stays.
func (r *Replay) Undo() {
	m := r.marked
	for _, undo := range slices.Backward(m.undo) {
		undo()
	}
	m.undo = nil
	r.ops, r.arena = r.ops[:m.ops], r.arena[:m.chunks]
	if m.chunks > 0 {
		r.arena[m.chunks-1] = r.arena[m.chunks-1][:m.used]
	}
	r.report = m.report
	r.report.Ignored = maps.Clone(m.report.Ignored)
}

func (r *Replay) undoBy(undo func()) {
	if r.marked != nil {
		r.marked.undo = append(r.marked.undo, undo)
	}
}

// The methods below run before a change. They record how to undo it, and whose rows must be remade,
// also after an Undo.

func (r *Replay) keepLast(chain uint64) {
	if r.marked == nil {
		return
	}
	was, ok := r.last[chain]
	r.undoBy(func() {
		if r.last[chain] = was; !ok {
			delete(r.last, chain)
		}
	})
}

func (r *Replay) keepToken(t *token) {
	r.rows.token(t.id)
	if r.marked == nil {
		return
	}
	was := *t
	r.undoBy(func() {
		*t = was
		r.rows.token(t.id)
	})
}

func (r *Replay) keepSlot(key slotKey, s *slot) {
	r.rows.slot(key)
	if r.marked == nil {
		return
	}
	was := *s
	r.undoBy(func() {
		*s = was
		if s.last != none {
			r.ops[s.last].next = none
		}
		r.rows.slot(key)
	})
}

func (r *Replay) keepPrimary(account site.Address) {
	r.rows.account(account)
	if r.marked == nil {
		return
	}
	was, ok := r.primary[account]
	r.undoBy(func() {
		if r.primary[account] = was; !ok {
			delete(r.primary, account)
		}
		r.rows.account(account)
	})
}

// touched holds the items whose rows may have changed; nil if nobody needs them.
type touched struct {
	tokens   map[source.Word]struct{}
	slots    map[slotKey]struct{}
	accounts map[site.Address]struct{} // primary lists
}

func newTouched() *touched {
	return &touched{map[source.Word]struct{}{}, map[slotKey]struct{}{}, map[site.Address]struct{}{}}
}

func (t *touched) token(id source.Word) {
	if t != nil {
		t.tokens[id] = struct{}{}
	}
}

func (t *touched) slot(key slotKey) {
	if t != nil {
		t.slots[key] = struct{}{}
	}
}

func (t *touched) account(a site.Address) {
	if t != nil {
		t.accounts[a] = struct{}{}
	}
}
