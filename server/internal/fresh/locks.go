package fresh

import (
	"context"
	"hash/crc32"

	"github.com/followpress/followpress/site"
)

// locks order those who write the same data: what is written to the store last is told to the cache last, too. A refresh
// and what restores an earlier one could leave the older object in the cache otherwise, for as long as it is kept there.
type locks [64]chan struct{}

func newLocks() (l locks) {
	for i := range l {
		l[i] = make(chan struct{}, 1)
	}
	return l
}

// lock waits until nobody else writes what belongs to a key, and perhaps to some others.
func (l *locks) lock(ctx context.Context, key site.Key) (unlock func(), err error) {
	held := l[crc32.ChecksumIEEE([]byte(key))%uint32(len(l))]
	select {
	case held <- struct{}{}:
		return func() { <-held }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
