package replay

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// The encoding of an operation: version, code, record, and for a tag the tag's text. A record is
// version, type, and data. Only the length of an address record is known.
const (
	opVersion  = 1
	opHeader   = 2
	opShortest = opHeader + recordHeader + 1

	recordHeader  = 2
	addressRecord = recordHeader + len(site.Address{})

	maxTag = 255 // bytes
)

// The codes of operations.
const (
	addRecord = iota + 1
	removeRecord
	addTag
	removeTag
)

// usualHeader is the version and type of most records: those of addresses.
var usualHeader = []byte{1, 1}

// isAddress reports whether a record of a version and type is about an address: type 1 is, of a version by
// which lists hold accounts.
func isAddress(version, number byte) bool {
	return number == usualHeader[1] && rules.Kind{Version: uint32(version), Type: rules.TypeAddress}.Holds()
}

// typeOf is the type of a record as snapshots have it: the decimal of what is no address.
func typeOf(version, number byte) string {
	if isAddress(version, number) {
		return rules.TypeAddress
	}
	return strconv.Itoa(int(number))
}

// An operation is a valid operation. Its slices are parts of what was parsed.
type operation struct {
	code   byte
	record []byte
	tag    []byte
}

func (o operation) isUsual() bool { return bytes.HasPrefix(o.record, usualHeader) }

func (o operation) isAddress() bool { return isAddress(o.record[0], o.record[1]) }

// parseOp takes an operation apart, or says why it is ignored.
func parseOp(op []byte) (operation, Reason) {
	switch {
	case len(op) < opHeader:
		return operation{}, OpLength
	case op[0] != opVersion:
		return operation{}, OpVersion
	case op[1] < addRecord || removeTag < op[1]:
		return operation{}, OpCode
	case len(op) < opShortest:
		return operation{}, OpLength
	}
	o := operation{code: op[1], record: op[opHeader:]}
	if o.code == addRecord || o.code == removeRecord {
		if o.isAddress() && len(o.record) != addressRecord {
			return operation{}, RecordLength
		}
		return o, ""
	}
	switch {
	case !o.isAddress():
		return operation{}, TagRecord
	case len(o.record) < addressRecord:
		return operation{}, RecordLength
	}
	o.record, o.tag = o.record[:addressRecord], o.record[addressRecord:]
	return o, checkTag(o.tag)
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
