package replay

import (
	"context"
	"encoding/binary"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/op"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/snapshot/memory"
	"github.com/followpress/followpress/source"
)

// NoOps as the start of a window means no rows of ops.
const NoOps = math.MaxInt64

const (
	// mostInChunk is the number of rows of ops remade at a time.
	mostInChunk = 512
	// opSlack is how much older than the window rows may be before they are dropped: if a
	// reorganization removes the newest blocks, the window starts earlier again.
	opSlack = time.Hour
)

// recent holds the rows of the table ops since a time, in chunks. An update remakes only chunks
// with changed rows. A row takes its text and 16 bytes.
type recent struct {
	most   int                 // rows per chunk
	from   int64               // all later rows are present, and some earlier ones
	chunks []chunk             // in table order, none empty
	marks  map[string][]opMark // marks of the rows of each list since from, by token ID; nil before begin
}

// A chunk holds consecutive rows.
type chunk struct {
	first, last snapshot.Op // without bytes
	rows        memory.Rows
}

// An opMark identifies a row of a list: rows of one list with equal marks are equal.
type opMark struct {
	time int64
	hash uint64
}

// opSeed is the seed of all hashes of this process.
var opSeed = maphash.MakeSeed()

func markOf(o *snapshot.Op) opMark {
	var h maphash.Hash
	h.SetSeed(opSeed)
	var place [20]byte
	binary.LittleEndian.PutUint64(place[0:], o.Chain)
	binary.LittleEndian.PutUint64(place[8:], o.Block)
	binary.LittleEndian.PutUint32(place[16:], o.LogIndex)
	_, _ = h.Write(place[:]) // never fails
	_, _ = h.Write(o.Op)
	return opMark{o.Time, h.Sum64()}
}

// begin sets the time of the first row. It reports whether rows older than the present ones are
// needed: the caller must then replace the rows of all lists.
func (r *recent) begin(since int64) (older bool, err error) {
	from := since
	if slack := opSlack.Milliseconds(); since != NoOps && since > math.MinInt64+slack {
		from = since - slack
	}
	if r.marks == nil {
		r.from, r.marks = from, map[string][]opMark{}
		return true, nil
	}
	if since < r.from {
		if len(r.chunks) > 0 && r.chunks[0].first.Time < r.from { // rows without marks
			ops, err := r.chunks[0].rows.Ops()
			if err != nil {
				return false, err
			}
			cut, err := r.appendChunks(nil, slices.DeleteFunc(ops, func(o snapshot.Op) bool { return o.Time < r.from }))
			if err != nil {
				return false, err
			}
			r.chunks = slices.Concat(cut, r.chunks[1:])
		}
		r.from = from
		return true, nil
	}
	old, _ := slices.BinarySearchFunc(r.chunks, from, func(c chunk, from int64) int {
		if c.last.Time < from {
			return -1
		}
		return 1
	})
	if old == 0 {
		return false, nil
	}
	r.from, r.chunks = max(r.from, from), slices.Clone(r.chunks[old:])
	for id, marks := range r.marks {
		if left := marksSince(marks, r.from); len(left) == 0 {
			delete(r.marks, id)
		} else if len(left) < len(marks) {
			r.marks[id] = slices.Clone(left)
		}
	}
	return false, nil
}

// marksSince returns the marks of rows since a time.
func marksSince(marks []opMark, from int64) []opMark {
	for i, m := range marks {
		if m.time >= from {
			return marks[i:]
		}
	}
	return nil
}

// A goneOp is a row that a list no longer has.
type goneOp struct {
	token string
	opMark
}

// An opChange summarizes changes of the rows of ops.
type opChange struct {
	lists    []string
	accounts map[site.Address]struct{}
}

// replace replaces the rows of lists, by token ID. The rows of each list must be in order; rows
// before the window are ignored.
func (r *recent) replace(lists map[string][]snapshot.Op) (c opChange, err error) {
	c.accounts = map[site.Address]struct{}{}
	var fresh []snapshot.Op
	gone := map[goneOp]struct{}{}
	for id, ops := range lists {
		for len(ops) > 0 && ops[0].Time < r.from {
			ops = ops[1:]
		}
		was, is := marksSince(r.marks[id], r.from), make([]opMark, len(ops))
		for i := range ops {
			is[i] = markOf(&ops[i])
		}
		if r.marks[id] = is; len(is) == 0 {
			delete(r.marks, id)
		}
		for len(was) > 0 && len(is) > 0 && was[0] == is[0] {
			was, is, ops = was[1:], is[1:], ops[1:]
		}
		for len(was) > 0 && len(is) > 0 && was[len(was)-1] == is[len(is)-1] {
			was, is, ops = was[:len(was)-1], is[:len(is)-1], ops[:len(ops)-1]
		}
		if len(was)+len(is) == 0 {
			continue
		}
		c.lists = append(c.lists, id)
		for _, m := range was {
			gone[goneOp{id, m}] = struct{}{}
		}
		for _, o := range ops {
			o.TokenID = id
			c.about(&o)
			fresh = append(fresh, o)
		}
	}
	if len(c.lists) == 0 {
		return c, nil
	}
	slices.SortFunc(fresh, func(a, b snapshot.Op) int { return a.Compare(&b) })
	return c, r.exchange(gone, fresh, &c)
}

// about records the account that an operation is about.
func (c *opChange) about(o *snapshot.Op) {
	if what, ignored := op.Parse(o.Op); ignored == "" {
		if account, ok := what.Address(); ok {
			c.accounts[account] = struct{}{}
		}
	}
}

// exchange remakes the chunks with removed rows, and the chunks that new rows belong to.
func (r *recent) exchange(gone map[goneOp]struct{}, fresh []snapshot.Op, c *opChange) error {
	times := make([]int64, 0, len(gone))
	for g := range gone {
		times = append(times, g.time)
	}
	slices.Sort(times)
	chunks := make([]chunk, 0, len(r.chunks)+1+len(fresh)/r.most)
	for i, old := range r.chunks {
		n := len(fresh)
		if i < len(r.chunks)-1 {
			n, _ = slices.BinarySearchFunc(fresh, &old.last, func(o snapshot.Op, last *snapshot.Op) int { return o.Compare(last) })
		}
		at, _ := slices.BinarySearch(times, old.first.Time)
		if n == 0 && (at == len(times) || times[at] > old.last.Time) {
			chunks = append(chunks, old)
			continue
		}
		ops, err := old.rows.Ops()
		if err != nil {
			return err
		}
		ops = slices.DeleteFunc(ops, func(o snapshot.Op) bool {
			_, is := gone[goneOp{o.TokenID, markOf(&o)}]
			if is {
				c.about(&o)
			}
			return is
		})
		ops = append(ops, fresh[:n]...)
		slices.SortFunc(ops, func(a, b snapshot.Op) int { return a.Compare(&b) })
		fresh = fresh[n:]
		if chunks, err = r.appendChunks(chunks, ops); err != nil {
			return err
		}
	}
	var err error
	r.chunks, err = r.appendChunks(chunks, fresh) // if there were none
	return err
}

func (r *recent) appendChunks(chunks []chunk, ops []snapshot.Op) ([]chunk, error) {
	for some := range slices.Chunk(ops, r.most) {
		rows, err := memory.OpRows(some)
		if err != nil {
			return nil, err
		}
		c := chunk{some[0], some[len(some)-1], rows}
		c.first.Op, c.last.Op = nil, nil
		chunks = append(chunks, c)
	}
	return chunks, nil
}

// since returns the rows since a time within the window.
func (r *recent) since(at int64) (pieces []memory.Piece, err error) {
	for _, c := range r.chunks {
		switch {
		case c.last.Time < at:
		case c.first.Time >= at:
			pieces = append(pieces, c.rows.Piece())
		default:
			ops, err := c.rows.Ops()
			if err != nil {
				return nil, err
			}
			rows, err := memory.OpRows(slices.DeleteFunc(ops, func(o snapshot.Op) bool { return o.Time < at }))
			if err != nil {
				return nil, err
			}
			pieces = append(pieces, rows.Piece())
		}
	}
	return pieces, nil
}

// opsOf returns the operations with these numbers in row order, as far as rows are kept, and the
// approximate size of all rows.
func (u *update) opsOf(numbers []int32, chain uint64) (ops []snapshot.Op, size int) {
	for _, n := range numbers {
		o := &u.replay.ops[n]
		if o.time == source.NoTime || o.op.length > op.MaxBytes {
			continue
		}
		size += opRowBytes(int(o.op.length))
		if o.time >= u.ops.from {
			ops = append(ops, snapshot.Op{Time: o.time, Chain: chain, Block: o.block, LogIndex: o.index, Op: u.replay.arena.at(o.op)})
		}
	}
	slices.SortFunc(ops, func(a, b snapshot.Op) int { return a.Compare(&b) }) // block times may run backwards
	return ops, size
}

// replaceOps remakes the rows of ops of the lists that may have changed.
func (u *update) replaceOps(ctx context.Context) error {
	var missing []slotKey
	lists, ids := map[string][]snapshot.Op{}, map[string]source.Word{}
	for id := range u.other {
		if key, ok := u.tells(id); ok {
			if _, known := u.visible[key]; !known {
				u.visible[key], missing = nil, append(missing, key)
			}
		}
	}
	if _, err := u.rowsOf(ctx, missing); err != nil {
		return err
	}
	for id := range u.other {
		text := id.Decimal()
		lists[text], ids[text] = nil, id
		if key, ok := u.tells(id); ok {
			lists[text] = u.visible[key]
		}
	}
	changed, err := u.ops.replace(lists)
	if err != nil || u.first {
		return err
	}
	for _, text := range changed.lists {
		id := ids[text]
		u.lists[id] = struct{}{}
		if s, ok := u.shown[id]; ok { // a removed list is already recorded
			u.accounts[s.account()] = struct{}{}
		}
	}
	maps.Copy(u.accounts, changed.accounts)
	return nil
}

// tells returns the slot whose operations a list shows; false if it shows none.
func (u *update) tells(id source.Word) (slotKey, bool) {
	s, ok := u.shown[id]
	_, left := u.left[id]
	_, silent := u.silent[id]
	return s.slot, ok && s.placed && !left && !silent
}
