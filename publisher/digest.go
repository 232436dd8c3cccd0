package publisher

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A Digester is a bucket whose ETags may be something else than MD5s, as under SSE-KMS,
// and which can tell the MD5 of an object by itself.
type Digester interface {
	Digest(ctx context.Context, key site.Key) (site.MD5, error)
}

// A question is about an entry that a listing neither confirms nor refutes: the size is
// right, and the ETag is not its MD5.
type digestCheck struct {
	entry  int // of those expected
	info   storage.Info
	result digestResult
}

// An answer says what an object is.
type digestResult int

const (
	absent digestResult = iota
	equal
	different
)

// cannotTell reports whether an object may be what it should although its ETag is not.
func (p *retryingBucket) needsDigest(want site.Entry, found storage.Info) bool {
	_, able := p.inner.(Digester)
	return able && !p.md5ETags && found.ETag != want.MD5.String() && (want.Size == anySize || want.Size == found.Size)
}

// ask finds the answers, by the digest of each object.
func (p *retryingBucket) compareDigests(ctx context.Context, expected []site.Entry, unsure []digestCheck, progress Progress) error {
	if len(unsure) == 0 {
		return nil
	}
	progress.Stage("digests", int64(len(unsure)))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, p.concurrency))
	for i := range unsure {
		if groupCtx.Err() != nil {
			break
		}
		group.Go(func() (err error) {
			unsure[i].result, err = p.compareDigest(groupCtx, expected[unsure[i].entry])
			progress.AddBytes(1, 0)
			return err
		})
	}
	err := group.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	} else if err != nil {
		return err
	}
	n := 0
	for _, q := range unsure {
		if q.result == equal {
			n++
		}
	}
	if n > 0 {
		p.log.Warn("ETags of the bucket are no MD5s, as under SSE-KMS: asked for digests one by one", "objects", len(unsure), "right", n)
	}
	return nil
}

func (p *retryingBucket) compareDigest(ctx context.Context, want site.Entry) (digestResult, error) {
	digest, err := p.digest(ctx, want.Key)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return absent, nil
	case digest == want.MD5:
		return equal, err
	}
	return different, err
}

func (p *retryingBucket) digest(ctx context.Context, key site.Key) (digest site.MD5, err error) {
	err = p.do(ctx, attemptTime, "head "+string(key), func(ctx context.Context) (err error) {
		digest, err = p.inner.(Digester).Digest(ctx, key)
		return err
	})
	return digest, err
}

// isOneOf reports whether an object that was listed has one of some digests.
func (p *retryingBucket) hasDigest(ctx context.Context, listed storage.Info, digests []site.MD5) (bool, error) {
	if slices.ContainsFunc(digests, func(d site.MD5) bool { return d.String() == listed.ETag }) {
		return true, nil
	}
	if len(digests) == 0 || !p.needsDigest(site.Entry{Size: anySize}, listed) {
		return false, nil
	}
	digest, err := p.digest(ctx, listed.Key)
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}
	return slices.Contains(digests, digest), err
}
