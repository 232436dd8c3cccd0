package publisher

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A Digester is a Bucket whose ETags may not be MD5s, as under SSE-KMS. Digest returns the MD5 of
// an object's body, or storage.ErrNotFound.
type Digester interface {
	Digest(ctx context.Context, key site.Key) (site.MD5, error)
}

// needsDigest reports whether an object may have the right bytes although its ETag is different.
func (b *retryingBucket) needsDigest(want site.Entry, found storage.Info) bool {
	_, able := b.inner.(Digester)
	return able && !b.md5ETags && found.ETag != want.MD5.String() && (want.Size == anySize || want.Size == found.Size)
}

// A digestCount counts the objects that a listing cannot classify: their size is right, and their
// ETag may not be an MD5.
type digestCount struct {
	unsure int
	right  atomic.Int64
}

func (c *digestCount) log(log *slog.Logger) {
	if n := c.right.Load(); n > 0 {
		log.Warn("ETags of the bucket are not MD5s, as under SSE-KMS: requested digests one by one", "objects", c.unsure, "right", n)
	}
}

// compareDigests sets the state of objects that the listing cannot classify, with a request per object.
func (s *survey) compareDigests(ctx context.Context, unsure []*compared) error {
	if len(unsure) == 0 {
		return nil
	}
	if s.digests.unsure == 0 {
		s.progress.Stage("digests", 0)
	}
	s.digests.unsure += len(unsure)
	return parallel(ctx, s.bucket.concurrency, len(unsure), func(ctx context.Context, i int) error {
		o := unsure[i]
		digest, err := s.bucket.digest(ctx, o.Key)
		if errors.Is(err, storage.ErrNotFound) {
			return nil // missing, since it was listed
		} else if err != nil {
			return err
		}
		if digest == o.MD5 {
			s.digests.right.Add(1)
		}
		s.classify(o, *o.info, digest == o.MD5)
		s.progress.AddBytes(1, 0)
		return nil
	})
}

func (b *retryingBucket) digest(ctx context.Context, key site.Key) (digest site.MD5, err error) {
	err = b.do(ctx, attemptTime, "head "+string(key), func(ctx context.Context) (err error) {
		digest, err = b.inner.(Digester).Digest(ctx, key)
		return err
	})
	return digest, err
}

// digestOf returns the digest of a listed object: its ETag, or what the bucket answers where that may
// not be an MD5. It is "" if the object has gone since.
func (b *retryingBucket) digestOf(ctx context.Context, listed storage.Info) (string, error) {
	if !b.needsDigest(site.Entry{Size: anySize}, listed) {
		return listed.ETag, nil
	}
	digest, err := b.digest(ctx, listed.Key)
	if errors.Is(err, storage.ErrNotFound) {
		return "", nil
	}
	return digest.String(), err
}
