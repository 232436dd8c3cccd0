// Package current knows the site that is being served: it reads the root of the store, and switches
// to a new site.
package current

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/followpress/followpress/server/internal/answer"
	"github.com/followpress/followpress/server/internal/cache"
	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/server/internal/gate"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/settings"
	"github.com/followpress/followpress/storage"
)

// A Site is the site being served, as last read.
type Site struct {
	answer.Site
	Checked  time.Time // when the root was last read
	Settings []string  // the value of settings.Header
	// Description makes the OpenAPI document of a site without OpenAPIKey, once.
	Description func() (*cache.Object, error)

	info      storage.Info // describes the root; zero if the store does not know
	settled   bool         // every later root has another info
	templates *sync.Map    // objects for addresses not in the graph: from site.Key to []byte
}

// Same reports whether the root was not replaced since was, as far as the store can tell.
func (v *Site) Same(was *Site) bool {
	return was != nil && v.Root.Equal(was.Root) && (fetch.SamePut(v.info, was.info) || v.info.ETag == "")
}

// A Reader reads the root. It is safe for concurrent use.
type Reader struct {
	Fetcher  *fetch.Fetcher
	Cache    *cache.Cache
	Waiting  *gate.Gate                             // requests waiting for a read of the root
	Describe func(site.Config) ([]byte, error)      // nil for none
	Log      func(ctx context.Context) *slog.Logger // the logger of a request

	reading sync.Mutex // held while the root is read
	shared  singleflight.Group
	site    atomic.Pointer[Site]
}

// Site returns the site being served; nil until the root was read.
func (c *Reader) Site() *Site { return c.site.Load() }

// betweenReloads is the minimum time between two reads of the root caused by requests.
const betweenReloads = 100 * time.Millisecond

// Reload reads the root and returns the site. If another request is reading the root, or read it
// less than betweenReloads ago, Reload returns the last known site without waiting.
func (c *Reader) Reload(ctx context.Context) *Site {
	if !c.reading.TryLock() {
		return c.Site()
	}
	defer c.reading.Unlock()
	if v := c.Site(); time.Since(v.Checked) < betweenReloads {
		return v
	}
	if err := c.read(ctx); err != nil {
		c.Log(ctx).Warn("cannot read the root", "error", err)
	}
	return c.Site()
}

// Doubted returns the site after reading the root again. A client that checks signatures asks for
// the next note when an object does not match: the cache may then hold objects of the previous
// site, and the store those of a newer one. Requests share a read, which starts betweenReloads
// after the last one. If too many wait, the returned site may be older.
func (c *Reader) Doubted(ctx context.Context) *Site {
	if !c.Waiting.TryTake(1) {
		return c.Site()
	}
	defer c.Waiting.Give(1)
	for since := time.Now(); ; {
		read := c.shared.DoChan("", func() (any, error) {
			time.Sleep(betweenReloads - time.Since(c.Site().Checked))
			c.reading.Lock()
			defer c.reading.Unlock()
			begun := time.Now()
			return begun, c.read(context.WithoutCancel(ctx))
		})
		select {
		case r := <-read:
			if r.Err != nil {
				c.Log(ctx).Warn("cannot read the root", "error", r.Err)
			} else if r.Val.(time.Time).Before(since) {
				continue // this read began before the call
			}
		case <-ctx.Done():
		}
		return c.Site()
	}
}

// Read reads the root and switches to a new site.
func (c *Reader) Read(ctx context.Context) error {
	c.reading.Lock()
	defer c.reading.Unlock()
	return c.read(ctx)
}

func (c *Reader) read(ctx context.Context) error {
	v := c.Site()
	if v == nil {
		v = &Site{Site: answer.Site{Root: &site.Root{}}}
	}
	root, info, err := c.Fetcher.Root(ctx, v.info)
	if errors.Is(err, fetch.ErrUnchanged) {
		root, info = v.Root, v.info
	} else if err != nil {
		return err
	}
	next := *v
	next.Root, next.info, next.settled, next.Checked = root, info, c.Fetcher.Settled(info), time.Now()
	// If the root was replaced, another site may have been live in between, and the cache may hold
	// its objects. Times have a resolution of one second: a root read before it settled may have
	// been replaced within that second, so it counts as new once settled.
	if next.Same(v) && (v.settled || !next.settled) {
		next.settled = v.settled
		c.site.Store(&next)
		return nil
	}
	next.Version++
	next.templates = c.readTemplates(ctx, root)
	next.Settings = []string{settings.Digest(root.Config)}
	next.Description = sync.OnceValues(func() (*cache.Object, error) {
		body, err := c.Describe(root.Config)
		return cache.NewObject(body), err
	})
	c.site.Store(&next)
	c.Cache.Clear()
	return nil
}

// readTemplates reads the objects for addresses not in the graph ahead of requests. Requests read
// what it could not.
func (c *Reader) readTemplates(ctx context.Context, root *site.Root) *sync.Map {
	var templates sync.Map
	if !root.Config.EFP() {
		return &templates
	}
	var reads sync.WaitGroup
	for _, object := range site.UserObjects() {
		reads.Go(func() {
			key := site.UnknownKey(object)
			if body, err := c.Fetcher.Get(ctx, key); err == nil {
				templates.Store(key, bytes.Clone(body))
			}
		})
	}
	reads.Wait()
	return &templates
}

// Unknown returns the answer for an address that is not in the graph, from the template at key
// (site.UnknownKey). The site keeps all templates: they are few and small.
func (c *Reader) Unknown(ctx context.Context, v *Site, key site.Key, address string) (*cache.Object, error) {
	template, ok := v.templates.Load(key)
	if !ok {
		o, err := c.Cache.Get(ctx, cache.Key{Version: v.Version, Key: key})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		defer o.Release()
		template = bytes.Clone(o.Body)
		v.templates.Store(key, template)
	}
	return cache.NewObject(bytes.ReplaceAll(template.([]byte), []byte(site.UnknownAddress), []byte(address))), nil
}
