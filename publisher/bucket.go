package publisher

import (
	"context"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A Bucket is the part of object storage that the publisher uses. Package storage documents
// the methods and their errors. They are called from many goroutines.
type Bucket interface {
	Read(ctx context.Context, key site.Key) ([]byte, storage.Info, error)
	Put(ctx context.Context, o storage.Object, condition storage.Condition) (etag string, err error)
	Delete(ctx context.Context, keys []site.Key) error
	List(ctx context.Context, prefix, after site.Key, found func(storage.Info) error) error
	// Now returns the time by the bucket's clock, which also sets Info.Modified.
	Now() time.Time
}

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
