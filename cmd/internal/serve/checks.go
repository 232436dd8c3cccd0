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

// Checks are the flags for checking a site's signature.
type Checks struct {
	Key           []string `sep:"none" placeholder:"PUBLIC" help:"Serve only data signed by this public key, and answer 502 otherwise; repeatable, any key suffices."`
	AllowRollback bool     `help:"With --key, also serve a site older than one served before. Set it only while you go back to one."`
	RefreshedKey  []string `sep:"none" placeholder:"PUBLIC" help:"With --key, also serve refreshed profiles and badges signed by this key; repeatable. --refresh-key is included."`
}

func (c *Command) check() error {
	_, err := c.keys()
	switch {
	case err != nil:
		return err
	case len(c.Key) == 0 && (c.AllowRollback || len(c.RefreshedKey) > 0):
		return errors.New("--allow-rollback and --refreshed-key need --key")
	case len(c.Key) == 0 && c.RefreshKey != "":
		return errors.New("--refresh-key needs --key: otherwise it would sign objects that others altered in the bucket")
	case len(c.Key) > 0 && c.Refresh().Refreshes() && c.RefreshKey == "":
		return errors.New("with --key, unsigned refreshed data is never served; leave out the upstreams, or add --refresh-key")
	}
	_, err = c.refreshers()
	return err
}

// refreshers returns the keys that sign refreshed objects.
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

// checked returns a store limited to signed objects, and the bytes left for the cache.
func (c *Checks) checked(store storage.Site, keys, refreshers note.Keys, cacheBytes uint64) (server.Store, uint64) {
	// Cache manifest shards too, so that few misses read one.
	forManifest := cacheBytes / 4
	s := checked.New(store, keys, checked.Options{
		AllowRollback: c.AllowRollback, Refreshers: refreshers, ManifestBytes: int(min(forManifest, 1<<30)),
	})
	if bucket, ok := store.(storage.Bucket); ok {
		return refreshable{s, bucket}, cacheBytes - forManifest
	}
	return s, cacheBytes - forManifest
}

// A refreshable is a checked site with a bucket for refreshes.
type refreshable struct {
	*checked.Site
	bucket storage.Bucket
}

// Put writes to the bucket.
func (r refreshable) Put(ctx context.Context, o storage.Object, condition storage.Condition) (etag string, err error) {
	return r.bucket.Put(ctx, o, condition)
}

// List lists the bucket.
func (r refreshable) List(ctx context.Context, prefix, after site.Key, found func(storage.Info) error) error {
	return r.bucket.List(ctx, prefix, after, found)
}
