package replay

import (
	"bytes"

	"github.com/followpress/followpress/site/op"
)

// recordHeader is the length of a record's version and type.
const recordHeader = 2

// usualHeader is the version and type of records of addresses, the most common kind.
var usualHeader = []byte{1, 1}

func isUsual(o op.Operation) bool { return bytes.HasPrefix(o.Record, usualHeader) }

// parseOp splits an operation, or returns the reason why it is ignored.
func parseOp(b []byte) (op.Operation, Reason) {
	o, ignored := op.Parse(b)
	return o, Reason(ignored)
}
