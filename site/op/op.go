package op

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// The encoding of an operation: version, code, record, and for a tag the tag's text. A record is version, type, and
// data. Only address records have a known length.
const (
	version  = 1
	header   = 2
	shortest = header + recordHeader + 1

	recordHeader  = 2
	addressRecord = recordHeader + len(site.Address{})
	addressNumber = 1 // type of an address

	maxTag = 255 // bytes
)

// A Code is the kind of an operation.
type Code byte

// The codes.
const (
	Follow   Code = iota + 1 // adds a record
	Unfollow                 // removes a record and its tags
	Tag
	Untag
)

// String returns follow, unfollow, tag or untag. It depends on the code only.
func (c Code) String() string {
	if c < Follow || Untag < c {
		return "code " + strconv.Itoa(int(c))
	}
	return [...]string{"follow", "unfollow", "tag", "untag"}[c-1]
}

// An Operation is a valid operation. Its slices alias the parsed bytes.
type Operation struct {
	Code   Code
	Record []byte // version, type, and at least one byte of data
	Tag    []byte // UTF-8 of 1 to 255 bytes without NUL; nil for Follow and Unfollow
}

// Kind returns the version and type of the record, in the form of snapshots.
func (o Operation) Kind() rules.Kind { return KindOf(o.Record[0], o.Record[1]) }

// KindOf returns the kind of a record. Type 1 means an address in versions whose records hold accounts; snapshots
// have all other types as decimals.
func KindOf(version, number byte) rules.Kind {
	if address := (rules.Kind{Version: uint32(version), Type: rules.TypeAddress}); number == addressNumber && address.Holds() {
		return address
	}
	return rules.Kind{Version: uint32(version), Type: strconv.Itoa(int(number))}
}

// Data returns the record without version and type.
func (o Operation) Data() []byte { return o.Record[recordHeader:] }

// Address returns the account of the operation. ok is false if records of this kind hold no accounts.
func (o Operation) Address() (site.Address, bool) {
	if !isAddress(o.Record) {
		return site.Address{}, false
	}
	return site.Address(o.Data()), true
}

// isAddress reports whether KindOf returns TypeAddress. It does not allocate.
func isAddress(record []byte) bool {
	return record[1] == addressNumber && rules.Kind{Version: uint32(record[0]), Type: rules.TypeAddress}.Holds()
}

// MaxBytes is the maximum size in bytes of an operation in a snapshot. Operations on accounts are much shorter: 24
// bytes and a tag.
const MaxBytes = 64 << 10

// A Reason is why an operation is invalid, whatever precedes it; "" if it is valid.
type Reason string

// The reasons.
const (
	Version      Reason = "operation of another version"
	UnknownCode  Reason = "operation with an unknown code"
	Length       Reason = "operation without data"
	RecordLength Reason = "address record that does not have 22 bytes"
	TagRecord    Reason = "tag of a record that is not an address"
	TagEmpty     Reason = "empty tag"
	TagLength    Reason = "tag of more than 255 bytes"
	TagUTF8      Reason = "tag that is not UTF-8"
	TagNUL       Reason = "tag with a NUL"
)

// Parse parses an operation, or returns why it is ignored.
func Parse(op []byte) (Operation, Reason) {
	switch {
	case len(op) < header:
		return Operation{}, Length
	case op[0] != version:
		return Operation{}, Version
	case Code(op[1]) < Follow || Untag < Code(op[1]):
		return Operation{}, UnknownCode
	case len(op) < shortest:
		return Operation{}, Length
	}
	o := Operation{Code: Code(op[1]), Record: op[header:]}
	if o.Code == Follow || o.Code == Unfollow {
		if isAddress(o.Record) && len(o.Record) != addressRecord {
			return Operation{}, RecordLength
		}
		return o, ""
	}
	switch {
	case !isAddress(o.Record):
		return Operation{}, TagRecord
	case len(o.Record) < addressRecord:
		return Operation{}, RecordLength
	}
	o.Record, o.Tag = o.Record[:addressRecord], o.Record[addressRecord:]
	if ignored := checkTag(o.Tag); ignored != "" {
		return Operation{}, ignored
	}
	return o, ""
}

func checkTag(tag []byte) Reason {
	switch {
	case len(tag) == 0:
		return TagEmpty
	case len(tag) > maxTag:
		return TagLength
	case !utf8.Valid(tag):
		return TagUTF8
	case bytes.IndexByte(tag, 0) >= 0:
		return TagNUL
	}
	return ""
}

// Append appends an operation on an account. tag must be "" for Follow and Unfollow.
func Append(to []byte, code Code, account site.Address, tag string) []byte {
	to = append(to, version, byte(code), rules.UsualVersion, addressNumber)
	return append(append(to, account[:]...), tag...)
}
