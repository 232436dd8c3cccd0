package serve

import (
	"context"
	"errors"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/checked"
)

// Checks are the flags about what of a site is believed.
type Checks struct {
	Key           []string `sep:"none" placeholder:"PUBLIC" help:"Serve only what the publisher with this public key has signed, and answer 502 otherwise; may be repeated, and then any of the keys will do."`
	AllowRollback bool     `help:"With --key, also serve an older site than was seen before. Set it for as long as it takes to go back to one."`
	RefreshedKey  []string `sep:"none" placeholder:"PUBLIC" help:"With --key, also serve profiles and badges that a refresh has put into the bucket, if this key has signed them (--refresh-key); may be repeated. The key of --refresh-key needs no mention."`
}

func (c *Command) check() error {
	_, err := c.keys()
	switch {
	case err != nil:
		return err
	case len(c.Key) == 0 && (c.AllowRollback || len(c.RefreshedKey) > 0):
		return errors.New("--allow-rollback and --refreshed-key are for --key")
	case len(c.Key) == 0 && c.RefreshKey != "":
		return errors.New("--refresh-key needs --key: else it would sign what somebody has altered in the bucket")
	case len(c.Key) > 0 && c.Refresh().Refreshes() && c.RefreshKey == "":
		return errors.New("with --key, what is refreshed would not be served, as nobody has signed it: leave out the upstreams, or add --refresh-key")
	}
	_, err = c.refreshers()
	return err
}

// refreshers are the keys that sign what refreshes put.
func (c *Command) refreshers() (note.Keys, error) {
	signing, err := c.Signing(c.RefreshedKey...)
	if err != nil || signing.Signer != nil {
		return signing.Keys, err
	}
	return command.PublicKeys("refreshed-key", c.RefreshedKey)
}

func (c *Checks) keys() (note.Keys, error) {
	return command.PublicKeys("key", c.Key)
}

// checked returns a store that returns only what was signed, and the bytes that are left of those of the cache.
func (c *Checks) checked(store storage.Site, keys, refreshers note.Keys, cacheBytes uint64) (server.Store, uint64) {
	// What the manifest lists is held too, so that few misses of the cache read a shard.
	forManifest := cacheBytes / 4
	s := checked.New(store, keys, checked.Options{
		AllowRollback: c.AllowRollback, Refreshers: refreshers, ManifestBytes: int(min(forManifest, 1<<30)),
	})
	if bucket, ok := store.(storage.Bucket); ok {
		return refreshable{s, bucket}, cacheBytes - forManifest
	}
	return s, cacheBytes - forManifest
}

// A refreshable is a checked site that refreshes may write to.
type refreshable struct {
	*checked.Site
	bucket storage.Bucket
}

// Put is that of the bucket.
func (r refreshable) Put(ctx context.Context, o storage.Object, condition storage.Condition) (etag string, err error) {
	return r.bucket.Put(ctx, o, condition)
}

// List is that of the bucket.
func (r refreshable) List(ctx context.Context, prefix, after site.Key, found func(storage.Info) error) error {
	return r.bucket.List(ctx, prefix, after, found)
}
