package replay

// The chunks of an arena double from the first size to the last. Longer bytes have a chunk of their
// own.
const (
	firstChunk = 4 << 10
	lastChunk  = 1 << 20
)

// An arena keeps bytes in large chunks, which are never copied as it grows.
type arena [][]byte

// keep copies b into the arena and returns where it is.
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

// at is what keep copied to there.
func (a arena) at(p position) []byte {
	return a[p.chunk][p.from:][:p.length]
}

// A position is a part of an arena.
type position struct{ chunk, from, length uint32 }
