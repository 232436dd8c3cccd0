package requests

import (
	"context"
	"errors"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// AnySize is the size of an entry of which only the digest is known.
const AnySize = -1

// NeedsDigest reports whether an object may have the right bytes although its ETag differs.
func (b *Bucket) NeedsDigest(want site.Entry, found storage.Info) bool {
	_, able := b.inner.(Digester)
	return able && !b.md5ETags && found.ETag != want.MD5.String() && (want.Size == AnySize || want.Size == found.Size)
}

// Digest requests the MD5 of an object. The store must be a Digester.
func (b *Bucket) Digest(ctx context.Context, key site.Key) (digest site.MD5, err error) {
	err = b.Do(ctx, AttemptTime, "head "+string(key), func(ctx context.Context) (err error) {
		digest, err = b.inner.(Digester).Digest(ctx, key)
		return err
	})
	return digest, err
}

// DigestOf returns the digest of a listed object: its ETag, or the requested digest if the ETag may
// not be an MD5. It returns "" if the object is gone.
func (b *Bucket) DigestOf(ctx context.Context, listed storage.Info) (string, error) {
	if !b.NeedsDigest(site.Entry{Size: AnySize}, listed) {
		return listed.ETag, nil
	}
	digest, err := b.Digest(ctx, listed.Key)
	if errors.Is(err, storage.ErrNotFound) {
		return "", nil
	}
	return digest.String(), err
}

// Keeps reports whether the bucket has an object with these bytes, by the listing, or by a digest
// where ETags are not MD5s.
func (b *Bucket) Keeps(ctx context.Context, want site.Entry, listed map[site.Key]storage.Info) (bool, error) {
	info, ok := listed[want.Key]
	if !ok || info.Size != want.Size {
		return false, nil
	}
	if want.MD5 == (site.MD5{}) || info.ETag == want.MD5.String() {
		return true, nil
	}
	if !b.NeedsDigest(want, info) {
		return false, nil
	}
	digest, err := b.Digest(ctx, want.Key)
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}
	return digest == want.MD5, err
}
