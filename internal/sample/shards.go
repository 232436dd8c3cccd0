package sample

import (
	"math"
	"math/rand/v2"
	"sync"
)

// Shards draws random items from shards whose sizes are unknown until they are read, each item with
// the same probability. All shards have the same number of places, more than items; a place without
// an item is drawn again. An item may be drawn more than once, so that Bound holds. Shards without
// a drawn place need not be read.
type Shards struct {
	places int // places per shard
	mu     sync.Mutex
	sizes  []int // items by shard; notRead until it is read
	unread int
}

const notRead = -1

// NewShards returns shards with the given total number of items. Items must be distributed to
// shards at random, as by a digest.
func NewShards(shards, items int) *Shards {
	mean := float64(items) / float64(shards)
	s := &Shards{places: int(math.Ceil(mean+8*math.Sqrt(mean))) + 10, sizes: make([]int, shards), unread: shards}
	for i := range s.sizes {
		s.sizes[i] = notRead
	}
	return s
}

// mostPlaces limits the places drawn at a time, which are held in memory.
const mostPlaces = 100_000

// Draw returns up to n random places, by shard. Places beyond the items of a shard do not count:
// the caller draws that number again. Draw returns none if there are no items.
func (s *Shards) Draw(n int) map[int][]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unread == 0 {
		s.places = 0
		for _, size := range s.sizes {
			s.places = max(s.places, size)
		}
	}
	drawn := map[int][]int{}
	for n = min(n, mostPlaces); n > 0 && s.places > 0; {
		shard, place := rand.IntN(len(s.sizes)), rand.IntN(s.places) //nolint:gosec // randomly seeded, so unpredictable
		if size := s.sizes[shard]; size == notRead || place < size {
			drawn[shard] = append(drawn[shard], place)
			n--
		}
	}
	return drawn
}

// Read records the number of items of a shard. It returns false if the shard has more items than
// places: then the draw is not uniform.
func (s *Shards) Read(shard, items int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sizes[shard] == notRead {
		s.sizes[shard] = items
		s.unread--
	}
	return items <= s.places
}
