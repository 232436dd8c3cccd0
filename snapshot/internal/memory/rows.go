package memory

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot/internal/rowjson"
)

// Rows are rows of a table as bytes, which never change. Rows of records may be those of several
// lists: they lack the token id.
type Rows struct {
	text  []byte // lines, without what they begin with
	lines int
}

// A Piece is some rows of a table in memory. Pieces may share their Rows.
type Piece struct {
	begin string // of each line
	rows  Rows
}

// Piece are the rows as they are, of any table but records.
func (r Rows) Piece() Piece { return Piece{rows: r} }

// Of are the rows of the records of a list.
func (r Rows) Of(tokenID string) (Piece, error) {
	begin, err := rowjson.AppendRecordBegin(nil, tokenID)
	return Piece{string(begin), r}, err
}

// RowsOf are rows whose text is known, of that many lines.
func RowsOf(text []byte, lines int) Rows { return Rows{text, lines} }

// Len is how many rows there are.
func (r Rows) Len() int { return r.lines }

// Equal reports whether both have the same bytes.
func (r Rows) Equal(other Rows) bool { return bytes.Equal(r.text, other.text) }

// size is how many bytes the piece has.
func (p *Piece) size() int64 {
	return int64(len(p.rows.text)) + int64(len(p.begin))*int64(p.rows.lines)
}

// RecordRows makes rows of records, whose token ids do not matter. It refuses what WriteRecord would
// refuse.
func RecordRows(records []rowjson.Record) (Rows, error) {
	b := make([]byte, 0, 128*len(records))
	for _, r := range records {
		if r.Type == "" {
			return Rows{}, errors.New("record_type: missing or empty")
		}
		from, err := len(b), error(nil)
		if b, err = rowjson.AppendRecordRest(b, r); err != nil {
			return Rows{}, err
		}
		if len(b)-from > rowjson.MaxLineBytes-maxBegin {
			return Rows{}, fmt.Errorf("a line of more than %d MiB", rowjson.MaxLineBytes>>20)
		}
		b = append(b, '\n')
	}
	return Rows{bytes.Clone(b), len(records)}, nil
}

// maxBegin is more than a row of records has before its version.
const maxBegin = 256

// ListRows makes rows of lists. It refuses what WriteList would refuse, but for a list that is there
// twice.
func ListRows(lists []rowjson.List) (_ Rows, err error) {
	b := make([]byte, 0, 144*len(lists))
	for _, l := range lists {
		if b, err = rowjson.AppendList(b, l); err != nil {
			return Rows{}, err
		}
		b = append(b, '\n')
	}
	return Rows{b, len(lists)}, nil
}

// Addresses yields the addresses of rows of accounts or records that only one of two has: those of
// records that are about an address. Rows that both have in the same order cost next to nothing.
func Addresses(one, other Rows) []site.Address {
	a, b := one.text, other.text
	from := 0
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			break
		}
		if a[i] == '\n' {
			from = i + 1
		}
	}
	a, b = a[from:], b[from:]
	for len(a) > 0 && len(b) > 0 {
		// The last lines, as long as they are equal.
		i, j := bytes.LastIndexByte(a[:len(a)-1], '\n')+1, bytes.LastIndexByte(b[:len(b)-1], '\n')+1
		if !bytes.Equal(a[i:], b[j:]) {
			break
		}
		a, b = a[:i], b[:j]
	}
	count := map[string]int{}
	for line := range bytes.Lines(a) {
		count[string(line)]++
	}
	for line := range bytes.Lines(b) {
		count[string(line)]--
	}
	var found []site.Address
	for line, n := range count {
		if n == 0 {
			continue
		}
		if address, ok := addressIn(line); ok {
			found = append(found, address)
		}
	}
	slices.SortFunc(found, site.Address.Compare)
	return slices.Compact(found)
}

// addressIn finds the address that a row of accounts begins with, or that a record is about. The texts
// before it in a record are numbers, or the word address.
func addressIn(line string) (a site.Address, ok bool) {
	const digits = 2 + 2*len(a)
	for _, before := range []string{`{"address":"`, `,"record_type":"address","data":"`} {
		at := indexEnd(line, before)
		if at < 0 || len(line) < at+digits+1 || line[at+digits] != '"' {
			continue
		}
		if found, err := site.ParseAddress(line[at : at+digits]); err == nil {
			return found, true
		}
	}
	return a, false
}

// indexEnd is the index after the first of some text near the beginning of a line; -1 if it is not there.
func indexEnd(line, text string) int {
	at := bytes.Index([]byte(line[:min(len(line), maxBegin)]), []byte(text))
	if at < 0 {
		return -1
	}
	return at + len(text)
}

// WithPrimary are rows of accounts, in the order of addresses and without primary lists, and the rows
// of those accounts that name primary lists. naming has them in the order of addresses, without ENS.
func (r Rows) WithPrimary(naming []rowjson.Account) (_ Rows, err error) {
	if len(naming) == 0 {
		return r, nil
	}
	b := make([]byte, 0, len(r.text)+96*len(naming))
	lines := 0
	end := func() { b, lines = append(b, '\n'), lines+1 }
	for line := range bytes.Lines(r.text) {
		address, ok := addressIn(string(line[:min(len(line), maxBegin)]))
		if !ok {
			return Rows{}, errors.New("a row of accounts does not begin with an address")
		}
		for len(naming) > 0 && naming[0].Address.Compare(address) < 0 {
			if b, err = rowjson.AppendAccount(b, naming[0]); err != nil {
				return Rows{}, err
			}
			end()
			naming = naming[1:]
		}
		if len(naming) == 0 || naming[0].Address != address {
			b, lines = append(b, line...), lines+1
			continue
		}
		if b, err = rowjson.AppendAccount(b, naming[0]); err != nil {
			return Rows{}, err
		}
		b = append(b[:len(b)-1], line[len(`{"address":""`)+2+2*len(address):]...)
		lines++
		naming = naming[1:]
	}
	for _, a := range naming {
		if b, err = rowjson.AppendAccount(b, a); err != nil {
			return Rows{}, err
		}
		end()
	}
	return Rows{b, lines}, nil
}

// ByAddress are rows of accounts by the first byte of their addresses, in whose order they must be.
func (r Rows) ByAddress() (by [256]Rows, err error) {
	rest := r.text
	for len(rest) > 0 {
		end := bytes.IndexByte(rest, '\n') + 1
		address, ok := addressIn(string(rest[:min(end, maxBegin)]))
		if !ok {
			return by, errors.New("a row of accounts does not begin with an address")
		}
		some := &by[address[0]]
		if some.lines == 0 {
			some.text = rest[:0]
		}
		some.text, some.lines = some.text[:len(some.text)+end], some.lines+1
		rest = rest[end:]
	}
	return by, nil
}

// OpRows makes rows of ops, in the order of Op.Compare. It refuses what WriteOp would refuse.
func OpRows(ops []rowjson.Op) (_ Rows, err error) {
	b := make([]byte, 0, 192*len(ops))
	var order rowjson.Order
	for i := range ops {
		if b, err = rowjson.AppendOp(b, ops[i]); err == nil {
			err = order.Add(&ops[i])
		}
		if err != nil {
			return Rows{}, err
		}
		b = append(b, '\n')
	}
	return Rows{b, len(ops)}, nil
}

// Ops are the rows as they were when OpRows made them.
func (r Rows) Ops() ([]rowjson.Op, error) {
	ops := make([]rowjson.Op, 0, r.lines)
	for line := range bytes.Lines(r.text) {
		o, err := rowjson.ParseOp(bytes.TrimSuffix(line, []byte{'\n'}))
		if err != nil {
			return nil, err
		}
		ops = append(ops, o)
	}
	return ops, nil
}
