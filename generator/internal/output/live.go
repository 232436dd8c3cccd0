package output

import (
	"context"
	"errors"
	"fmt"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/shards"
)

// A Live is the site at the output before the run.
type Live struct {
	root     site.Root
	rootBody []byte
	read     func(site.Key) ([]byte, error)
	manifest *shards.Reader // nil before openManifest
}

// ErrManifest means that the manifest of the live site cannot be read.
var ErrManifest = errors.New("unreadable manifest")

// openManifest opens the manifest, if it is not open yet.
func (l *Live) openManifest(ctx context.Context) (err error) {
	if l.manifest != nil {
		return nil
	}
	l.manifest, err = shards.Open(ctx, &l.root, func(ctx context.Context, key site.Key) ([]byte, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return l.read(key)
	})
	return unreadable(ctx, err)
}

// shard returns the entries of a shard of the manifest.
func (l *Live) shard(ctx context.Context, name string) ([]site.Entry, error) {
	s, err := l.manifest.Shard(ctx, name)
	return s.Objects, unreadable(ctx, err)
}

func unreadable(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return fmt.Errorf("%w: %w", ErrManifest, err)
}

// digest returns the digest of a shard or an index.
func (l *Live) digest(name string) site.SHA256 {
	if len(name) == l.root.ShardDigits {
		return l.manifest.Digest(name)
	}
	return l.root.Manifest[name]
}

// openLive reads the root of the live site. It returns nil if there is none that this version can
// read.
func openLive(read func(site.Key) ([]byte, error)) *Live {
	body, err := read(site.RootKey)
	if err != nil {
		return nil
	}
	root, err := site.ParseRoot(body)
	if err != nil {
		return nil
	}
	return &Live{root: root, rootBody: body, read: read}
}
