package rowjson

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/op"
)

// An Op is a row of the table ops: an operation with a visible effect on a list that still has the slot.
type Op struct {
	TokenID  string
	Time     int64 // time of the block, in milliseconds since the Unix epoch
	Chain    uint64
	Block    uint64
	LogIndex uint32
	Op       []byte // as in the contract, for op.Parse; at most op.MaxBytes
}

// Compare compares rows in the order of the table: by time, chain, block, log index, and token ID as a number.
func (o *Op) Compare(other *Op) int {
	return cmp.Or(
		cmp.Compare(o.Time, other.Time), cmp.Compare(o.Chain, other.Chain), cmp.Compare(o.Block, other.Block),
		cmp.Compare(o.LogIndex, other.LogIndex), site.CompareTokenIDs(o.TokenID, other.TokenID))
}

// Key returns the row without its bytes and without shared memory.
func (o *Op) Key() Op {
	return Op{strings.Clone(o.TokenID), o.Time, o.Chain, o.Block, o.LogIndex, nil}
}

// An Order checks that rows of ops are sorted and unique.
type Order struct {
	last Op // without Op
	any  bool
}

// OrderAfter returns the Order of the rows after o.
func OrderAfter(o *Op) Order { return Order{*o, true} }

// Add checks the next row.
func (r *Order) Add(o *Op) error {
	if r.any {
		switch c := o.Compare(&r.last); {
		case c == 0:
			return fmt.Errorf("a second row of %s: an operation has one row per list", r.last.place())
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

// place identifies the row in errors.
func (o *Op) place() string {
	at, _ := AppendTime(nil, "time", o.Time)
	return fmt.Sprintf("%s, chain %d, block %d, log %d, list %s", bytes.Trim(at, `"`), o.Chain, o.Block, o.LogIndex, o.TokenID)
}

// Check returns an error if the row is invalid.
func (o *Op) Check() error {
	if err := site.CheckTokenID("token_id", o.TokenID); err != nil {
		return err
	}
	if len(o.Op) > op.MaxBytes {
		return fmt.Errorf("op: %d bytes, more than %d", len(o.Op), op.MaxBytes)
	}
	if _, ignored := op.Parse(o.Op); ignored != "" {
		return fmt.Errorf("op: %s, so it has no effect and cannot be a row", ignored)
	}
	return nil
}

// AppendOp appends a row of ops.
func AppendOp(b []byte, o Op) ([]byte, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	return appendReadOp(b, &o)
}

// appendReadOp appends an operation that is known to be valid.
func appendReadOp(b []byte, o *Op) (_ []byte, err error) {
	b = append(append(append(b, `{"token_id":"`...), o.TokenID...), `","time":`...)
	if b, err = AppendTime(b, "time", o.Time); err != nil {
		return nil, err
	}
	b = strconv.AppendUint(append(b, `,"chain_id":`...), o.Chain, 10)
	b = strconv.AppendUint(append(b, `,"block":`...), o.Block, 10)
	b = strconv.AppendUint(append(b, `,"log_index":`...), uint64(o.LogIndex), 10)
	b = hex.AppendEncode(append(b, `,"op":"0x`...), o.Op)
	return append(b, `"}`...), nil
}

// ParseOp parses a row of ops. It does not check the order of rows.
func ParseOp(line []byte) (Op, error) {
	s := TakeScanner()
	defer s.GiveBack()
	o, ok := s.ScanOp(line)
	if !ok {
		return DecodeOp(line)
	}
	c := *o
	c.TokenID, c.Op = strings.Clone(o.TokenID), bytes.Clone(o.Op)
	return c, nil
}

// DecodeOp decodes any row of ops.
func DecodeOp(line []byte) (Op, error) {
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
	case len(*in.Op) > opDigits:
		return Op{}, fmt.Errorf("op: more than %d bytes", op.MaxBytes)
	}
	at, err := ParseTime("time", *in.Time)
	if err != nil {
		return Op{}, err
	}
	data, err := parseHex("op", *in.Op)
	if err != nil {
		return Op{}, err
	}
	o := Op{in.TokenID, at, *in.Chain, *in.Block, *in.LogIndex, data}
	return o, o.Check()
}

// opDigits is the length of op.MaxBytes bytes as hexadecimal text.
const opDigits = len("0x") + 2*op.MaxBytes

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

// ScanOp reads a row of ops in the usual form.
func (s *Scanner) ScanOp(line []byte) (*Op, bool) {
	s.start(line)
	o := &s.Op
	*o = Op{}
	seen := 0
	for s.Begin('{'); s.More('}'); {
		member := 0
		switch string(s.Name()) {
		case "token_id":
			member, o.TokenID = memberOpToken, View(s.Text())
		case "time":
			member = memberOpTime
			var err error
			if o.Time, err = ParseTime("time", View(s.Text())); err != nil {
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
			if text := s.Text(); len(text) > opDigits || !s.Hexadecimal(text) {
				s.Fail()
			}
			o.Op = s.Data[:len(s.Data):len(s.Data)]
		}
		if member == 0 || seen&member != 0 {
			return nil, false
		}
		seen |= member
	}
	return o, s.Done() && seen == memberOpAll && o.Check() == nil
}
