package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/op"
)

// An Op is a row of the table ops: an operation with an effect that readers can see, of a list that has
// the slot now.
type Op struct {
	TokenID  string
	Time     int64 // of the block, in milliseconds since the Unix epoch
	Chain    uint64
	Block    uint64
	LogIndex uint32
	Op       []byte // as the contract has it, for op.Parse; at most MaxOp bytes
}

// MaxOp is the most bytes that an operation of the table ops may have. That is far more than any that is
// about an account: those have 24 bytes, and a tag.
const MaxOp = 64 << 10

// Compare orders rows as the table has them: by time, chain, block, log index and token id, which is
// compared as a number.
func (o *Op) Compare(other *Op) int {
	return cmp.Or(
		cmp.Compare(o.Time, other.Time), cmp.Compare(o.Chain, other.Chain), cmp.Compare(o.Block, other.Block),
		cmp.Compare(o.LogIndex, other.LogIndex), site.CompareTokenIDs(o.TokenID, other.TokenID))
}

// A rowOrder checks that rows of ops come in their order, each once.
type rowOrder struct {
	last Op // without its bytes
	any  bool
}

// add checks the next row.
func (r *rowOrder) add(o *Op) error {
	if r.any {
		switch c := o.Compare(&r.last); {
		case c == 0:
			return fmt.Errorf("a second row of %s: each operation is there once for a list", r.last.place())
		case c < 0:
			return fmt.Errorf("%s comes after %s: sort the rows by time, chain_id, block, log_index, token_id", o.place(), r.last.place())
		}
	}
	token := r.last.TokenID
	if token != o.TokenID {
		token = strings.Clone(o.TokenID)
	}
	r.last, r.any = Op{token, o.Time, o.Chain, o.Block, o.LogIndex, nil}, true
	return nil
}

// place says which row it is, for errors.
func (o *Op) place() string {
	at, _ := appendTime(nil, "time", o.Time)
	return fmt.Sprintf("%s, chain %d, block %d, log %d, list %s", bytes.Trim(at, `"`), o.Chain, o.Block, o.LogIndex, o.TokenID)
}

// check returns an error for what no row may have.
func (o *Op) check() error {
	if err := site.CheckTokenID("token_id", o.TokenID); err != nil {
		return err
	}
	if len(o.Op) > MaxOp {
		return fmt.Errorf("op: %d bytes, more than %d", len(o.Op), MaxOp)
	}
	if _, ignored := op.Parse(o.Op); ignored != "" {
		return fmt.Errorf("op: %s: it has no effect, and is no row", ignored)
	}
	return nil
}

func appendOp(b []byte, o Op) ([]byte, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	return appendReadOp(b, &o)
}

// appendReadOp appends an operation that the reader has taken, or would take.
func appendReadOp(b []byte, o *Op) (_ []byte, err error) {
	b = append(append(append(b, `{"token_id":"`...), o.TokenID...), `","time":`...)
	if b, err = appendTime(b, "time", o.Time); err != nil {
		return nil, err
	}
	b = strconv.AppendUint(append(b, `,"chain_id":`...), o.Chain, 10)
	b = strconv.AppendUint(append(b, `,"block":`...), o.Block, 10)
	b = strconv.AppendUint(append(b, `,"log_index":`...), uint64(o.LogIndex), 10)
	b = hex.AppendEncode(append(b, `,"op":"0x`...), o.Op)
	return append(b, `"}`...), nil
}

// WriteOp writes a row of ops. Rows must come in the order of Op.Compare, each once. A snapshot without
// such rows has no such table, unless Begin made it.
func (w *Writer) WriteOp(o Op) error {
	return w.tables[TableOps].add(
		func(b []byte) ([]byte, error) { return appendOp(b, o) },
		func() error { return w.ops.add(&o) })
}

// OpRows makes rows of ops, in the order of Op.Compare. It refuses what WriteOp would refuse.
func OpRows(ops []Op) (_ Rows, err error) {
	b := make([]byte, 0, 192*len(ops))
	var order rowOrder
	for i := range ops {
		if b, err = appendOp(b, ops[i]); err == nil {
			err = order.add(&ops[i])
		}
		if err != nil {
			return Rows{}, err
		}
		b = append(b, '\n')
	}
	return Rows{b, len(ops)}, nil
}

// ParseOp parses a row of ops. The order of rows is not checked.
func ParseOp(line []byte) (Op, error) {
	s := takeScanner()
	defer s.giveBack()
	o, ok := s.scanOp(line)
	if !ok {
		return decodeOp(line)
	}
	c := *o
	c.TokenID, c.Op = strings.Clone(o.TokenID), bytes.Clone(o.Op)
	return c, nil
}

// keyed is what a row was converted to, and the row without its bytes.
type keyed[T any] struct {
	key   Op
	value T
}

// Ops reads the table ops: convert makes of each valid row what Done gets, as for Records. A row that is
// not after all valid rows before it is invalid. Complete is not called concurrently.
func (r Reader[T]) Ops(ctx context.Context, convert func(*Op) (T, error)) error {
	var order rowOrder
	if r.After != nil {
		order = rowOrder{*r.After, true}
	}
	var rows []Row[T]
	var sums []byte
	inner := reading[keyed[T]]{Snapshot: r.Snapshot, File: r.File, Workers: r.Workers, hashed: r.Digest != nil}
	inner.Done = func(b Block[keyed[T]]) error {
		whole := Block[T]{File: b.File, lines: b.lines, digest: r.Digest}
		rows, sums = rows[:0], sums[:0]
		n := 0
		err := b.Each(func(row Row[keyed[T]]) error {
			n++
			if err := order.add(&row.Value.key); err != nil {
				return err
			}
			if r.Digest != nil {
				sums = append(sums, b.sum(n-1)...)
			}
			rows = append(rows, Row[T]{row.Line, row.Value.value})
			return nil
		}, func(e *RowError) error { whole.Invalid = append(whole.Invalid, e); return nil })
		if err != nil {
			return err
		}
		whole.Rows, whole.sums = rows, sums
		if r.Complete != nil {
			whole.take = r.Complete(whole.Rows)
		}
		return r.Done(whole)
	}
	return readTable(ctx, inner, TableOps, form[Op]{
		scan: (*rowScanner).scanOp,
		columns: func(s *rowScanner, rows *parquetRows, row int) (*Op, bool) {
			return &s.op, s.columnsOfOp(rows, row)
		},
		decode: decodeOp,
	}, func(o *Op) (keyed[T], error) {
		value, err := convert(o)
		return keyed[T]{Op{strings.Clone(o.TokenID), o.Time, o.Chain, o.Block, o.LogIndex, nil}, value}, err
	})
}

func decodeOp(line []byte) (Op, error) {
	var in struct {
		TokenID  string  `json:"token_id"`
		Time     *string `json:"time"`
		Chain    *uint64 `json:"chain_id"`
		Block    *uint64 `json:"block"`
		LogIndex *uint32 `json:"log_index"`
		Op       *string `json:"op"`
	}
	if err := site.DecodeObject(line, &in); err != nil {
		return Op{}, err
	}
	switch {
	case in.Time == nil:
		return Op{}, errors.New("time: missing")
	case in.Chain == nil:
		return Op{}, errors.New("chain_id: missing")
	case in.Block == nil:
		return Op{}, errors.New("block: missing")
	case in.LogIndex == nil:
		return Op{}, errors.New("log_index: missing")
	case in.Op == nil:
		return Op{}, errors.New("op: missing")
	case len(*in.Op) > hexDigits(MaxOp):
		return Op{}, fmt.Errorf("op: more than %d bytes", MaxOp)
	}
	at, err := parseTime("time", *in.Time)
	if err != nil {
		return Op{}, err
	}
	data, err := parseHex("op", *in.Op)
	if err != nil {
		return Op{}, err
	}
	o := Op{in.TokenID, at, *in.Chain, *in.Block, *in.LogIndex, data}
	return o, o.check()
}

// hexDigits is the length of n bytes as hexadecimal text.
func hexDigits(n int) int { return len("0x") + 2*n }

// The members of a row of ops, as bits.
const (
	memberOpToken = 1 << iota
	memberOpTime
	memberOpChain
	memberOpBlock
	memberOpLog
	memberOpBytes

	memberOpAll = 1<<iota - 1
)

func (s *rowScanner) scanOp(line []byte) (*Op, bool) {
	s.start(line)
	o := &s.op
	*o = Op{}
	seen := 0
	for s.Begin('{'); s.More('}'); {
		member := 0
		switch string(s.Name()) {
		case "token_id":
			member, o.TokenID = memberOpToken, view(s.Text())
		case "time":
			member = memberOpTime
			var err error
			if o.Time, err = parseTime("time", view(s.Text())); err != nil {
				s.Fail()
			}
		case "chain_id":
			member, o.Chain = memberOpChain, s.Uint(math.MaxUint64)
		case "block":
			member, o.Block = memberOpBlock, s.Uint(math.MaxUint64)
		case "log_index":
			member, o.LogIndex = memberOpLog, uint32(s.Uint(math.MaxUint32))
		case "op":
			member = memberOpBytes
			if text := s.Text(); len(text) > hexDigits(MaxOp) || !s.hexadecimal(text) {
				s.Fail()
			}
			o.Op = s.data[:len(s.data):len(s.data)]
		}
		if member == 0 || seen&member != 0 {
			return nil, false
		}
		seen |= member
	}
	return o, s.Done() && seen == memberOpAll && o.check() == nil
}

// The columns of ops, as in tableColumns.
const (
	opToken = iota
	opTime
	opChain
	opBlock
	opLog
	opBytes
)

// columnsOfOp is columnsOfRecord of an operation.
func (s *rowScanner) columnsOfOp(c *parquetRows, row int) bool {
	o := &s.op
	*o = Op{TokenID: view(c.values[opToken][row].ByteArray())}
	text := c.values[opBytes][row].ByteArray()
	if len(text) > hexDigits(MaxOp) || !s.hexadecimal(text) {
		return false
	}
	o.Op = s.data[:len(s.data):len(s.data)]
	var numbers [opLog - opChain + 1]int64
	for i := range numbers {
		v := c.values[opChain+i][row]
		if numbers[i] = c.columns[opChain+i].number(v); v.IsNull() || numbers[i] < 0 {
			return false // 2^63 and more are for the decoder
		}
	}
	if numbers[2] > math.MaxUint32 {
		return false
	}
	o.Chain, o.Block, o.LogIndex = uint64(numbers[0]), uint64(numbers[1]), uint32(numbers[2])
	at, ok := c.timeOf(opTime, row)
	o.Time = at
	return ok && at != NoTime && o.check() == nil
}

// Ops are the rows as they were when OpRows made them.
func (r Rows) Ops() ([]Op, error) {
	ops := make([]Op, 0, r.lines)
	for line := range bytes.Lines(r.text) {
		o, err := ParseOp(bytes.TrimSuffix(line, []byte{'\n'}))
		if err != nil {
			return nil, err
		}
		ops = append(ops, o)
	}
	return ops, nil
}
