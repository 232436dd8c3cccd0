package fresh

import (
	"context"
	"hash/crc32"

	"github.com/followpress/followpress/site"
)

// locks serialize writers of the same data, so that the last write to the store is also the last to
// reach the cache. Otherwise a refresh racing a restored older one could leave the older object in
// the cache.
type locks [64]chan struct{}

func newLocks() (l locks) {
	for i := range l {
		l[i] = make(chan struct{}, 1)
	}
	return l
}

// lock waits until no other writer holds the lock of key. Different keys may share a lock.
func (l *locks) lock(ctx context.Context, key site.Key) (unlock func(), err error) {
	held := l[crc32.ChecksumIEEE([]byte(key))%uint32(len(l))]
	select {
	case held <- struct{}{}:
		return func() { <-held }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
