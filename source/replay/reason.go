package replay

import "github.com/followpress/followpress/site/op"

// A Reason explains why an event or a record was ignored; "" means that it was not.
type Reason string

// Reasons. Those of operations depend only on the bytes of the operation, not on earlier
// operations.
const (
	OpVersion    = Reason(op.Version)
	OpCode       = Reason(op.UnknownCode)
	OpLength     = Reason(op.Length)
	RecordLength = Reason(op.RecordLength)
	TagRecord    = Reason(op.TagRecord)
	TagEmpty     = Reason(op.TagEmpty)
	TagLength    = Reason(op.TagLength)
	TagUTF8      = Reason(op.TagUTF8)
	TagNUL       = Reason(op.TagNUL)

	LocationLength  Reason = "location that does not have 86 bytes"
	LocationVersion Reason = "location of another version"
	LocationType    Reason = "location of another type"
	LocationPlace   Reason = "location in an unknown chain or contract"

	UserLength    Reason = "user that does not have 20 bytes"
	PrimaryLength Reason = "primary list that does not have 32 bytes"
	OtherKey      Reason = "metadata of another key"
	NoList        Reason = "operation in a slot of no list"
	SharedSlot    Reason = "record of a slot that earlier lists have, beyond the limit"
	UntimedOp     Reason = "operation without a time, omitted from ops"
	LongOp        Reason = "operation of more than 64 KiB, omitted from ops"
	SharedOp      Reason = "row of ops of a slot that earlier lists have, beyond the limit"
	LongRecord    Reason = "record whose data or tags are too long for a snapshot"
)
