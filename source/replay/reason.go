package replay

// A Reason says why an event or a record was ignored; "" if it was not.
type Reason string

// The reasons. Those of operations depend on the bytes of the operation only, not on what came
// before it.
const (
	OpVersion    Reason = "operation of another version"
	OpCode       Reason = "operation with an unknown code"
	OpLength     Reason = "operation without data"
	RecordLength Reason = "address record that does not have 22 bytes"
	TagRecord    Reason = "tag of a record that is not an address"
	TagEmpty     Reason = "empty tag"
	TagLength    Reason = "tag of more than 255 bytes"
	TagUTF8      Reason = "tag that is not UTF-8"
	TagNUL       Reason = "tag with a NUL"

	LocationLength  Reason = "location that does not have 86 bytes"
	LocationVersion Reason = "location of another version"
	LocationType    Reason = "location of another type"
	LocationPlace   Reason = "location in an unknown chain or contract"

	UserLength    Reason = "user that does not have 20 bytes"
	PrimaryLength Reason = "primary list that does not have 32 bytes"
	OtherKey      Reason = "metadata of another key"
	NoList        Reason = "operation in a slot of no list"
	SharedSlot    Reason = "record of a slot that earlier lists have, beyond the limit"
	LongRecord    Reason = "record whose data or tags are too long for a snapshot"
)
