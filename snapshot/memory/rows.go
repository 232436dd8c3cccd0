package memory

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot/internal/rowjson"
)

// Rows are immutable rows of a table as bytes. Rows of records lack the token ID, so that several lists can share
// them.
type Rows struct {
	text  []byte // lines without their common start
	lines int
}

// A Piece is a sequence of rows of a table in memory. Pieces may share their Rows.
type Piece struct {
	begin string // start of each line
	rows  Rows
}

// Piece returns the rows unchanged, for any table but records.
func (r Rows) Piece() Piece { return Piece{rows: r} }

// Of returns the rows as records of a list.
func (r Rows) Of(tokenID string) (Piece, error) {
	begin, err := rowjson.AppendRecordBegin(nil, tokenID)
	return Piece{string(begin), r}, err
}

// RowsOf returns rows with that text of that many lines, for snapshot.Writer.
func RowsOf(text []byte, lines int) Rows { return Rows{text, lines} }

// Len returns the number of rows.
func (r Rows) Len() int { return r.lines }

// Equal reports whether both have the same bytes.
func (r Rows) Equal(other Rows) bool { return bytes.Equal(r.text, other.text) }

// size returns the length of the piece in bytes.
func (p *Piece) size() int64 {
	return int64(len(p.rows.text)) + int64(len(p.begin))*int64(p.rows.lines)
}

// RecordRows encodes rows of records, whose token IDs are ignored. It rejects what WriteRecord would reject.
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

// maxBegin exceeds the length of a row of records before its version.
const maxBegin = 256

// ListRows encodes rows of lists. It rejects what WriteList would reject, except repeated lists.
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

// Addresses returns the addresses in rows of accounts or records that are in only one of the arguments; from records,
// the addresses that they are about. Rows that both share in the same order cost next to nothing.
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
		// Skip equal lines at the end.
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

// addressIn returns the address at the start of a row of accounts, or the one that a record is about. A record has
// only numbers and the word address before it.
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

// indexEnd returns the index after the first occurrence of text near the start of a line, or -1.
func indexEnd(line, text string) int {
	at := bytes.Index([]byte(line[:min(len(line), maxBegin)]), []byte(text))
	if at < 0 {
		return -1
	}
	return at + len(text)
}

// WithPrimary merges rows of accounts, sorted by address and without primary lists, with the accounts that name
// primary lists. naming must be sorted by address and have no ENS.
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

// ByAddress splits rows of accounts, which must be sorted by address, by the first byte of the address.
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

// OpRows encodes rows of ops, which must be in the order of Op.Compare. It rejects what WriteOp would reject.
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

// Ops decodes rows of OpRows.
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
