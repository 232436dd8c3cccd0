package replay

// The chunks of an arena double in size from the first to the last. Longer data gets its own chunk.
const (
	firstChunk = 4 << 10
	lastChunk  = 1 << 20
)

// An arena keeps bytes in large chunks, which are never copied as it grows.
type arena [][]byte

// keep copies b into the arena and returns its position.
func (a *arena) keep(b []byte) position {
	last := len(*a) - 1
	if last < 0 || cap((*a)[last])-len((*a)[last]) < len(b) {
		last++
		size := min(firstChunk<<min(last, 16), lastChunk)
		*a = append(*a, make([]byte, 0, max(size, len(b))))
	}
	at := position{uint32(last), uint32(len((*a)[last])), uint32(len(b))}
	(*a)[last] = append((*a)[last], b...)
	return at
}

// at returns the bytes at a position.
func (a arena) at(p position) []byte {
	return a[p.chunk][p.from:][:p.length]
}

// A position locates bytes in an arena.
type position struct{ chunk, from, length uint32 }
