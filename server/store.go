package server

import (
	"context"

	"github.com/followpress/followpress/site"
)

// A Store holds a site: a folder, a tar file, memory or a bucket. Its methods are
// called from many goroutines.
type Store interface {
	// Get reads a whole object; storage.ErrNotFound if the site has none with that
	// key. Any other error means that it could not tell. The caller must not change
	// the body.
	Get(ctx context.Context, key site.Key) ([]byte, error)
}
