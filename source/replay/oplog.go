package replay

import (
	"cmp"
	"context"
	"slices"

	"github.com/followpress/followpress/site/op"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
)

// A SlotOp is an operation of a slot with an effect visible to readers (List.Perform).
type SlotOp struct {
	Time  int64 // time of the block, in milliseconds since the Unix epoch, or source.NoTime
	Block uint64
	Index uint32 // log index in the block
	Op    []byte
}

// Ops records visible operations of the slot last passed to Write, which is on the given chain, for
// the lists that have its records. The token IDs passed to Write must still be valid. Within the
// limits for records, lists that share a slot share operations. Ops keeps no part of ops. WriteOps
// writes the rows.
func (s *Slots) Ops(chain uint64, ops []SlotOp) {
	first := len(s.log.ops)
	var numbers []int32
	for _, o := range ops {
		s.log.ops = append(s.log.ops, storedOp{time: o.Time, block: o.Block, index: o.Index, op: s.log.arena.keep(o.Op)})
		numbers = append(numbers, int32(first+len(numbers)))
	}
	s.note(chain, numbers)
}

// note is Ops for operations in the log.
func (s *Slots) note(chain uint64, numbers []int32) {
	log := &s.log
	size, untimed, long, all := 0, 0, 0, len(log.rows)
	slot := int32(len(log.slots))
	for _, n := range numbers {
		o := &log.ops[n]
		switch {
		case o.time == source.NoTime:
			untimed++
		case o.op.length > op.MaxBytes:
			long++
		default:
			log.rows = append(log.rows, opRow{o.time, n, slot})
			size += opRowBytes(int(o.op.length))
		}
	}
	s.ignore(UntimedOp, untimed)
	s.ignore(LongOp, long)
	count := len(log.rows) - all
	shown := 0
	for shown < len(s.shown) && log.limit.has(shown, size) {
		shown++
	}
	s.ignore(SharedOp, count*(len(s.shown)-shown))
	if shown == 0 {
		log.rows = log.rows[:all]
	}
	if count > 0 && shown > 0 {
		log.slots = append(log.slots, opSlot{chain, slices.Clone(s.shown[:shown])})
	}
}

// opRowBytes returns the approximate size of an operation's row.
func opRowBytes(length int) int { return 140 + 2*length }

// WriteOps writes the recorded operations in table order, and returns the number of rows.
func (s *Slots) WriteOps(ctx context.Context) (rows uint64, err error) {
	log := &s.log
	slices.SortFunc(log.rows, log.compare)
	for i, row := range log.rows {
		if i%1024 == 0 && ctx.Err() != nil {
			return rows, ctx.Err()
		}
		o, slot := &log.ops[row.n], &log.slots[row.slot]
		for _, id := range slot.ids {
			err := s.To.WriteOp(snapshot.Op{
				TokenID: id, Time: o.time, Chain: slot.chain, Block: o.block, LogIndex: o.index, Op: log.arena.at(o.op),
			})
			if err != nil {
				return rows, err
			}
			rows++
		}
	}
	return rows, nil
}

// An opLog holds the visible operations of slots, 16 bytes each besides the operations.
type opLog struct {
	ops   []storedOp
	arena arena
	slots []opSlot
	rows  []opRow
	limit sharing
}

// An opSlot is a slot with the token IDs of the lists that show its operations.
type opSlot struct {
	chain uint64
	ids   []string
}

// An opRow is an operation in its slot. Its copy of the time orders most rows without
// looking up other fields, which would miss the processor's caches.
type opRow struct {
	time    int64
	n, slot int32
}

func (l *opLog) compare(a, b opRow) int {
	if c := cmp.Compare(a.time, b.time); c != 0 {
		return c
	}
	p, q := &l.ops[a.n], &l.ops[b.n]
	return cmp.Or(cmp.Compare(l.slots[a.slot].chain, l.slots[b.slot].chain), cmp.Compare(p.block, q.block), cmp.Compare(p.index, q.index))
}
