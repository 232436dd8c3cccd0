package publisher

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/shards"
	"github.com/followpress/followpress/site/tags"
	"github.com/followpress/followpress/storage"
)

// A source reads the site to publish.
type source struct {
	site   Site
	root   site.Root
	body   []byte // of the root
	advice string // if the site is damaged

	opening sync.Mutex
	opened  *shards.Reader // of the manifest; nil until it is needed; under opening
}

// An adviser is a site whose errors say what to do, and that has other advice if it is damaged.
type adviser interface{ Advice() string }

func openSource(ctx context.Context, from Site) (*source, error) {
	body, err := from.Get(ctx, site.RootKey)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, fmt.Errorf("the site has no %s: generate it first", site.RootKey)
	} else if err != nil {
		return nil, fmt.Errorf("read the site: %w", err)
	}
	root, err := site.ParseRoot(body)
	if err != nil {
		return nil, fmt.Errorf("the site: %w", err)
	}
	s := &source{site: from, root: root, body: body, advice: "generate the site again, with --rebuild"}
	if other, ok := from.(adviser); ok {
		s.advice = other.Advice()
	}
	return s, nil
}

// tag gives the objects tags (site.Config.Tags), which who publishes chooses, and with them another root.
func (s *source) tag(tags string) (err error) {
	if s.root.Config.Tags == tags || !s.hasRules() {
		return nil
	}
	s.root.Config.Tags = tags
	s.root.HeaderRules = s.root.Config.HeaderRules()
	s.body, err = s.root.Encode()
	return err
}

// hasRules reports whether the headers of the site's objects are those of this version.
func (s *source) hasRules() bool {
	return maps.Equal(s.root.HeaderRules, s.root.Config.HeaderRules())
}

// manifest returns the reader of the manifest. The first call opens it: an unchanged site need not.
func (s *source) manifest(ctx context.Context) (*shards.Reader, error) {
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.opened != nil {
		return s.opened, nil
	}
	r, err := shards.Open(ctx, &s.root, s.getManifest)
	if err != nil {
		return nil, err
	}
	for _, name := range shards.Indexes(&s.root) {
		if _, err := r.Index(name); err != nil {
			return nil, s.damaged(err)
		}
	}
	s.opened = r
	return r, nil
}

func (s *source) getManifest(ctx context.Context, key site.Key) ([]byte, error) {
	body, err := s.site.Get(ctx, key)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		err = s.broken(key, err)
	}
	return body, err
}

func (s *source) damaged(err error) error {
	if errors.Is(err, shards.ErrDamaged) {
		return fmt.Errorf("the site: %w: %s", err, s.advice)
	}
	return err
}

// shard reads a shard of the manifest, and checks it against the root.
func (s *source) shard(ctx context.Context, name string) (shards.Shard, error) {
	r, err := s.manifest(ctx)
	if err != nil {
		return shards.Shard{}, err
	}
	shard, err := r.Shard(ctx, name)
	return shard, s.damaged(err)
}

// manifestObject reads the object of a shard or an index of the manifest.
func (s *source) manifestObject(ctx context.Context, name string) (storage.Object, error) {
	if len(name) == s.root.ShardDigits {
		shard, err := s.shard(ctx, name)
		if err != nil {
			return storage.Object{}, err
		}
		return s.object(shard.Object, shard.Body), nil
	}
	r, err := s.manifest(ctx)
	if err != nil {
		return storage.Object{}, err
	}
	entry, err := r.Index(name)
	if err != nil {
		return storage.Object{}, s.damaged(err)
	}
	return s.read(ctx, entry)
}

// read reads the object of an entry. It checks the size; the bucket checks the digest.
func (s *source) read(ctx context.Context, entry site.Entry) (storage.Object, error) {
	body, err := s.site.Get(ctx, entry.Key)
	if err != nil {
		return storage.Object{}, s.broken(entry.Key, err)
	}
	if int64(len(body)) != entry.Size {
		return storage.Object{}, s.broken(entry.Key, storage.ErrDamaged)
	}
	return s.object(entry, body), nil
}

func (s *source) object(entry site.Entry, body []byte) storage.Object {
	object := storage.Object{Entry: entry, Body: body}
	if route, ok := s.root.Config.RouteOf(entry.Key); ok {
		object.ContentType, object.CacheControl = route.ContentType, route.CacheControl
		object.Metadata = tags.Metadata(s.root.Config, entry.Key)
	}
	return object
}

func (s *source) broken(key site.Key, err error) error {
	if _, ok := s.site.(adviser); ok && !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, storage.ErrDamaged) {
		return fmt.Errorf("the site's %s: %w", key, err)
	}
	return fmt.Errorf("the site's %s: %w: %s", key, err, s.advice)
}
