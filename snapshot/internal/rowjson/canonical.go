package rowjson

import (
	"crypto/sha256"
	"fmt"

	"github.com/followpress/followpress/site"
)

// Canonical appends the canonical form of a valid row: what a Writer writes.
func Canonical(b []byte, row any) ([]byte, error) {
	switch row := row.(type) {
	case *Record:
		return AppendRecord(b, *row)
	case *Account:
		return appendReadAccount(b, row), nil
	case *Op:
		return appendReadOp(b, row)
	case *List:
		return AppendList(b, *row)
	case *site.Event:
		return AppendEvent(b, *row)
	case *Badge:
		return AppendBadge(b, *row)
	case *Recommended:
		return AppendRecommended(b, *row)
	}
	return nil, fmt.Errorf("%T is not a row of a table", row) // impossible: Parser does not return it
}

// maxSpareRow is the maximum size of the memory that Sum reuses.
const maxSpareRow = 1 << 20

// Sum appends the digest of a row to sums.
func (s *Scanner) Sum(sums []byte, row any) ([]byte, error) {
	b, err := Canonical(s.canonical[:0], row)
	if err != nil {
		return nil, err
	}
	if cap(b) <= maxSpareRow {
		s.canonical = b
	}
	sum := sha256.Sum256(b)
	return append(sums, sum[:]...), nil
}
