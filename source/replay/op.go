package replay

import (
	"bytes"

	"github.com/followpress/followpress/site/op"
)

// recordHeader is the version and the type, which a record begins with.
const recordHeader = 2

// usualHeader is the version and type of most records: those of addresses.
var usualHeader = []byte{1, 1}

func isUsual(o op.Operation) bool { return bytes.HasPrefix(o.Record, usualHeader) }

// parseOp takes an operation apart, or says why it is ignored.
func parseOp(b []byte) (op.Operation, Reason) {
	o, ignored := op.Parse(b)
	return o, Reason(ignored)
}
