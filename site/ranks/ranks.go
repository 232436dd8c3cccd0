// Package ranks encodes and decodes site.RanksKey, an object of sites with site.Config.RanksEvery: the counts that
// determine the ranks in details until they are due again. docs/site.md specifies the encoding. It is not
// compressed by a library, because all versions must produce equal bytes, which compressors do not promise.
//
// The generator writes and reads the object; commands fetch it for the generator. The package does no I/O.
//
// The API may change in any release.
package ranks

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// Measures is the number of measures with ranks in details: the first ones of package rules.
const Measures = int(rules.Blocks) + 1

// MaxBytes is the maximum size of the object, enough for 40 million accounts.
const MaxBytes = 1 << 30

// Counts are the counts of an account, indexed by measure.
type Counts [Measures]uint32

// A Held is a decoded object: the counts of all accounts at the time of the last ranking. It is safe for concurrent
// use.
type Held struct {
	AsOf string // time of the snapshot, RFC 3339
	Body []byte // body of the object
	rows []byte
}

const format = 1

// header is the first line of the object, as JSON.
type header struct {
	Format   int    `json:"format"`
	AsOf     string `json:"as_of"`
	Accounts int    `json:"accounts"`
}

// The upper bits of a row's first byte, from sharedBit on, give the number of leading address bytes shared with the
// previous row. The lower bits mark the measures with a count.
const (
	maxShared = 7
	sharedBit = Measures
)

// Encode encodes the object. Rows must be sorted by address; accounts without any count are omitted.
func Encode(asOf string, rows iter.Seq2[site.Address, Counts]) []byte {
	n := 0
	var encoded []byte
	var last site.Address
	for address, counts := range rows {
		first := len(encoded)
		shared := 0
		for n > 0 && shared < maxShared && address[shared] == last[shared] {
			shared++
		}
		encoded = append(append(encoded, byte(shared<<sharedBit)), address[shared:]...)
		for m, count := range counts {
			if count != 0 {
				encoded[first] |= 1 << m
				encoded = binary.AppendUvarint(encoded, uint64(count))
			}
		}
		if counts == (Counts{}) {
			encoded = encoded[:first]
			continue
		}
		n++
		last = address
	}
	head, err := json.Marshal(header{format, asOf, n})
	if err != nil {
		panic(err) // cannot happen: two numbers and a text
	}
	body := append(append(append(make([]byte, 0, len(head)+1+len(encoded)+sha256.Size), head...), '\n'), encoded...)
	sum := sha256.Sum256(body)
	return append(body, sum[:]...)
}

// Parse decodes the object and keeps body. It accepts only what Encode produces. Errors wrap site.ErrMalformed.
func Parse(body []byte) (*Held, error) {
	malformed := func(format string, args ...any) (*Held, error) {
		return nil, fmt.Errorf("%s: %s: %w", site.RanksKey, fmt.Sprintf(format, args...), site.ErrMalformed)
	}
	if len(body) > MaxBytes {
		return malformed("%d bytes, more than any site's", len(body))
	}
	line, _, found := bytes.Cut(body[:min(len(body), 256)], []byte("\n"))
	if !found || len(body) < len(line)+1+sha256.Size {
		return malformed("it is cut off, or something else")
	}
	var head header
	if err := json.Unmarshal(line, &head); err != nil {
		return malformed("its first line: %v", err)
	}
	if head.Format > format {
		return malformed("format %d, this version reads %d, update followpress", head.Format, format)
	}
	if head.Format != format {
		return malformed("format %d, this version reads %d", head.Format, format)
	}
	if _, err := time.Parse(time.RFC3339, head.AsOf); err != nil {
		return malformed("as_of: %v", err)
	}
	end := len(body) - sha256.Size
	if sum := sha256.Sum256(body[:end]); !bytes.Equal(sum[:], body[end:]) {
		return malformed("it is not what its SHA-256 says: cut off, or altered")
	}
	r := &Held{AsOf: head.AsOf, Body: body, rows: body[len(line)+1 : end]}
	n := 0
	for rest, last := r.rows, (site.Address{}); len(rest) > 0; n++ {
		row, size := nextRow(rest, last, n == 0)
		if size == 0 {
			return malformed("row %d is invalid", n)
		}
		rest, last = rest[size:], row.address
	}
	if n != head.Accounts {
		return malformed("%d rows instead of %d", n, head.Accounts)
	}
	return r, nil
}

// All yields the counts, sorted by address.
func (r *Held) All() iter.Seq2[site.Address, Counts] {
	return func(yield func(site.Address, Counts) bool) {
		for rest, last, isFirst := r.rows, (site.Address{}), true; len(rest) > 0; isFirst = false {
			row, size := nextRow(rest, last, isFirst)
			if size == 0 || !yield(row.address, row.counts) {
				return
			}
			rest, last = rest[size:], row.address
		}
	}
}

type heldRow struct {
	address site.Address
	counts  Counts
}

// nextRow decodes the row after that of address last. size is 0 if it is invalid.
func nextRow(b []byte, last site.Address, isFirst bool) (row heldRow, size int) {
	shared, measures := int(b[0]>>sharedBit), b[0]&(1<<sharedBit-1)
	row.address = last
	size = 1 + copy(row.address[shared:], b[1:])
	valid := size == 1+len(last)-shared && measures != 0
	if isFirst {
		valid = valid && shared == 0
	} else {
		differs := shared == maxShared || row.address[shared] != last[shared]
		valid = valid && differs && bytes.Compare(row.address[:], last[:]) > 0
	}
	for m := range row.counts {
		if !valid || measures&(1<<m) == 0 {
			continue
		}
		count, n := binary.Uvarint(b[size:])
		valid = n > 0 && 0 < count && count <= math.MaxUint32 && (n == 1 || b[size+n-1] != 0)
		row.counts[m] = uint32(count)
		size += max(n, 0)
	}
	if !valid {
		return heldRow{}, 0
	}
	return row, size
}

// AreDue reports whether a snapshot gets new ranks: RanksEvery has passed since r, or the snapshot is older than r.
func (r *Held) AreDue(c site.Config, asOf string) (bool, error) {
	now, err := time.Parse(time.RFC3339, asOf)
	if err != nil {
		return false, fmt.Errorf("as_of: %w", err)
	}
	then, err := time.Parse(time.RFC3339, r.AsOf)
	if err != nil {
		return false, fmt.Errorf("as_of of %s: %w", site.RanksKey, err)
	}
	passed := now.Sub(then)
	return passed < 0 || passed >= time.Duration(c.RanksEvery)*time.Second, nil
}
