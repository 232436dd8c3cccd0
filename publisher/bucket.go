package publisher

import (
	"context"

	"github.com/followpress/followpress/site"
)

// A setUpper is a Bucket that SetUp can create and open to readers.
type setUpper interface {
	Create(ctx context.Context) (created bool, err error)
	AllowRead(ctx context.Context, patterns []string) error
	AllowOrigins(ctx context.Context) error
}

// A Site is the site to publish: a folder, a tar file or parts. Get is called from many goroutines
// and returns storage.ErrNotFound for an object that does not exist.
type Site interface {
	Get(ctx context.Context, key site.Key) ([]byte, error)
}
