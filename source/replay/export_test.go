package replay

// KeepOpsIn makes chunks of ops have at most that many rows, so that small histories have many.
func (x *Rows) KeepOpsIn(chunks int) { x.ops.most = chunks }

// OpsKept returns how many rows of ops are kept, and of how many lists.
func (x *Rows) OpsKept() (rows, lists int) {
	for _, c := range x.ops.chunks {
		rows += c.rows.Len()
	}
	return rows, len(x.ops.marks)
}

// LimitSharing makes the limits of what lists share smaller, until restore is called.
func LimitSharing(always, most int) (restore func()) {
	a, m := alwaysShared, mostShared
	alwaysShared, mostShared = always, most
	return func() { alwaysShared, mostShared = a, m }
}
