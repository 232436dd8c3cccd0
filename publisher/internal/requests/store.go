package requests

import (
	"context"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A Store is the part of object storage that the publisher uses. Package storage documents
// the methods and their errors. They are called from many goroutines.
type Store interface {
	Read(ctx context.Context, key site.Key) ([]byte, storage.Info, error)
	Put(ctx context.Context, o storage.Object, condition storage.Condition) (etag string, err error)
	Delete(ctx context.Context, keys []site.Key) error
	List(ctx context.Context, prefix, after site.Key, found func(storage.Info) error) error
	// Now returns the time by the bucket's clock, which also sets Info.Modified.
	Now() time.Time
}

// Progress reports how far a run has come. Its methods are called from many goroutines.
type Progress interface {
	// Stage begins a part of the run. total is the sum of n over all AddBytes of this stage, or 0
	// if unknown.
	Stage(name string, total int64)
	// AddBytes reports n more finished items, of that many bytes.
	AddBytes(n, bytes int64)
}

// An Unpacker is a Store whose server may unpack an archive of many objects.
type Unpacker interface {
	Unpacks(ctx context.Context, objects []storage.Object) (bool, error)
	PutMany(ctx context.Context, objects []storage.Object) error
}

// A Digester is a Store whose ETags may not be MD5s, as under SSE-KMS. Digest returns the MD5 of
// an object's body, or storage.ErrNotFound.
type Digester interface {
	Digest(ctx context.Context, key site.Key) (site.MD5, error)
}

// A Syncer is a Store whose writes become durable only by Sync, such as a local folder.
type Syncer interface {
	Sync(ctx context.Context) error
}

// A Lease bounds the time in which requests may be sent.
type Lease interface {
	// Context returns a child of parent that ends with the lease, or ErrNotHeld if the lease has ended.
	Context(parent context.Context) (context.Context, context.CancelFunc, error)
	Held() bool
}

// Durably runs a step and makes its writes durable, so that even after a power failure no later
// step exists without it.
func (b *Bucket) Durably(ctx context.Context, step func() error) error {
	if err := step(); err != nil {
		return err
	}
	if to, ok := b.inner.(Syncer); ok {
		return to.Sync(ctx)
	}
	return nil
}
