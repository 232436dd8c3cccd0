package lock

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// ErrInterleaved means that another publisher wrote the root or the note during the run. The bucket
// may then hold objects of both sites.
var ErrInterleaved = errors.New("another publisher wrote the root during this run")

// Replace puts an object of the next site if condition holds, and returns the condition for
// replacing it again. If the server has no conditional writes, it calls unlocked and puts the
// object anyway. If another run has replaced the object, Replace writes the mark, which that run
// has deleted, and returns ErrInterleaved.
func Replace(ctx context.Context, bucket *requests.Bucket, o storage.Object, condition storage.Condition, next *site.Root, unlocked func()) (storage.Condition, error) {
	etag, err := bucket.Put(ctx, o, condition)
	if errors.Is(err, storage.ErrUnsupported) {
		unlocked()
		etag, err = bucket.Put(ctx, o, storage.Always)
	}
	if !errors.Is(err, storage.ErrCondition) && !errors.Is(err, storage.ErrNotFound) {
		return storage.Condition(etag), err
	}
	// An earlier attempt may have succeeded although its answer was lost.
	if body, info, err := bucket.Read(ctx, o.Key); err == nil && bytes.Equal(body, o.Body) {
		return storage.Condition(info.ETag), nil
	}
	_, marked := WriteMark(ctx, bucket, nil, nil, next)
	return condition, errors.Join(fmt.Errorf("put %s: %w; the bucket may hold objects of both, so publish again", o.Key, ErrInterleaved), marked)
}
