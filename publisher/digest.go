package publisher

import (
	"context"
	"errors"
	"slices"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A Digester is a Bucket whose ETags may not be MD5s, as under SSE-KMS. Digest returns the MD5 of
// an object's body, or storage.ErrNotFound.
type Digester interface {
	Digest(ctx context.Context, key site.Key) (site.MD5, error)
}

// A digestCheck is for an object that a listing cannot classify: its size is right, and its ETag
// may not be an MD5.
type digestCheck struct {
	entry  int // index of the expected entry
	info   storage.Info
	result digestResult
}

// A digestResult is the result of a digestCheck.
type digestResult int

const (
	absent digestResult = iota
	equal
	different
)

// needsDigest reports whether an object may have the right bytes although its ETag is different.
func (b *retryingBucket) needsDigest(want site.Entry, found storage.Info) bool {
	_, able := b.inner.(Digester)
	return able && !b.md5ETags && found.ETag != want.MD5.String() && (want.Size == anySize || want.Size == found.Size)
}

// compareDigests sets the result of each check, with a request per object.
func (b *retryingBucket) compareDigests(ctx context.Context, expected []site.Entry, unsure []digestCheck, progress Progress) error {
	if len(unsure) == 0 {
		return nil
	}
	progress.Stage("digests", int64(len(unsure)))
	err := parallel(ctx, b.concurrency, len(unsure), func(ctx context.Context, i int) (err error) {
		unsure[i].result, err = b.compareDigest(ctx, expected[unsure[i].entry])
		progress.AddBytes(1, 0)
		return err
	})
	if err != nil {
		return err
	}
	n := 0
	for _, q := range unsure {
		if q.result == equal {
			n++
		}
	}
	if n > 0 {
		b.log.Warn("ETags of the bucket are not MD5s, as under SSE-KMS: requested digests one by one", "objects", len(unsure), "right", n)
	}
	return nil
}

func (b *retryingBucket) compareDigest(ctx context.Context, want site.Entry) (digestResult, error) {
	digest, err := b.digest(ctx, want.Key)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return absent, nil
	case digest == want.MD5:
		return equal, err
	}
	return different, err
}

func (b *retryingBucket) digest(ctx context.Context, key site.Key) (digest site.MD5, err error) {
	err = b.do(ctx, attemptTime, "head "+string(key), func(ctx context.Context) (err error) {
		digest, err = b.inner.(Digester).Digest(ctx, key)
		return err
	})
	return digest, err
}

// hasDigest reports whether a listed object has one of the digests.
func (b *retryingBucket) hasDigest(ctx context.Context, listed storage.Info, digests []site.MD5) (bool, error) {
	if slices.ContainsFunc(digests, func(d site.MD5) bool { return d.String() == listed.ETag }) {
		return true, nil
	}
	if len(digests) == 0 || !b.needsDigest(site.Entry{Size: anySize}, listed) {
		return false, nil
	}
	digest, err := b.digest(ctx, listed.Key)
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}
	return slices.Contains(digests, digest), err
}
