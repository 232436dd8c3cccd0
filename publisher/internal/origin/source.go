// Package origin reads the site to publish, and checks its manifest against its root.
package origin

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

// A Site reads the site to publish.
type Site struct {
	site   objects
	Root   site.Root
	Body   []byte // body of the root
	Advice string // remedy if the site is damaged

	opening sync.Mutex
	opened  *shards.Reader // reader of the manifest, guarded by opening; nil until needed
}

// objects is where the site is stored. Get returns storage.ErrNotFound for a missing object.
type objects interface {
	Get(ctx context.Context, key site.Key) ([]byte, error)
}

// An adviser is a site whose errors name their remedy, with its own advice for a damaged site.
type adviser interface{ Advice() string }

// Open reads the root of a site. The error names a remedy if the root is missing or unreadable.
func Open(ctx context.Context, from objects) (*Site, error) {
	body, err := from.Get(ctx, site.RootKey)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, fmt.Errorf("the site has no %s; generate it first", site.RootKey)
	} else if err != nil {
		return nil, fmt.Errorf("read the site: %w", err)
	}
	root, err := site.ParseRoot(body)
	if err != nil {
		return nil, fmt.Errorf("the site: %w", err)
	}
	s := &Site{site: from, Root: root, Body: body, Advice: "generate the site again, with --rebuild"}
	if other, ok := from.(adviser); ok {
		s.Advice = other.Advice()
	}
	return s, nil
}

// Tag sets the tags of the objects (site.Config.Tags), a choice of the publisher, which changes the
// root.
func (s *Site) Tag(tags string) (err error) {
	if s.Root.Config.Tags == tags || !s.HasRules() {
		return nil
	}
	s.Root.Config.Tags = tags
	s.Root.HeaderRules = s.Root.Config.HeaderRules()
	s.Body, err = s.Root.Encode()
	return err
}

// HasRules reports whether the site's header rules are those of this version.
func (s *Site) HasRules() bool {
	return maps.Equal(s.Root.HeaderRules, s.Root.Config.HeaderRules())
}

// Manifest returns the reader of the manifest. The first call opens it; an unchanged site does not
// need it.
func (s *Site) Manifest(ctx context.Context) (*shards.Reader, error) {
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.opened != nil {
		return s.opened, nil
	}
	r, err := shards.Open(ctx, &s.Root, s.getManifest)
	if err != nil {
		return nil, err
	}
	for _, name := range shards.Indexes(&s.Root) {
		if _, err := r.Index(name); err != nil {
			return nil, s.Damaged(err)
		}
	}
	s.opened = r
	return r, nil
}

func (s *Site) getManifest(ctx context.Context, key site.Key) ([]byte, error) {
	body, err := s.site.Get(ctx, key)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		err = s.broken(key, err)
	}
	return body, err
}

// Damaged adds the site's advice to a shards.ErrDamaged error, and returns other errors unchanged.
func (s *Site) Damaged(err error) error {
	if errors.Is(err, shards.ErrDamaged) {
		return fmt.Errorf("the site: %w; %s", err, s.Advice)
	}
	return err
}

// Shard reads a shard of the manifest, and checks it against the root.
func (s *Site) Shard(ctx context.Context, name string) (shards.Shard, error) {
	r, err := s.Manifest(ctx)
	if err != nil {
		return shards.Shard{}, err
	}
	shard, err := r.Shard(ctx, name)
	return shard, s.Damaged(err)
}

// ManifestObject reads the object of a shard or an index of the manifest.
func (s *Site) ManifestObject(ctx context.Context, name string) (storage.Object, error) {
	if len(name) == s.Root.ShardDigits {
		shard, err := s.Shard(ctx, name)
		if err != nil {
			return storage.Object{}, err
		}
		return s.Object(shard.Object, shard.Body), nil
	}
	r, err := s.Manifest(ctx)
	if err != nil {
		return storage.Object{}, err
	}
	entry, err := r.Index(name)
	if err != nil {
		return storage.Object{}, s.Damaged(err)
	}
	return s.Read(ctx, entry)
}

// Read reads the object of an entry. It checks the size; the bucket checks the digest.
func (s *Site) Read(ctx context.Context, entry site.Entry) (storage.Object, error) {
	body, err := s.site.Get(ctx, entry.Key)
	if err != nil {
		return storage.Object{}, s.broken(entry.Key, err)
	}
	if int64(len(body)) != entry.Size {
		return storage.Object{}, s.broken(entry.Key, storage.ErrDamaged)
	}
	return s.Object(entry, body), nil
}

// Object returns an object to put, with the headers and tags of its route.
func (s *Site) Object(entry site.Entry, body []byte) storage.Object {
	object := storage.Object{Entry: entry, Body: body}
	if route, ok := s.Root.Config.RouteOf(entry.Key); ok {
		object.ContentType, object.CacheControl = route.ContentType, route.CacheControl
		object.Metadata = tags.Metadata(s.Root.Config, entry.Key)
	}
	return object
}

func (s *Site) broken(key site.Key, err error) error {
	if _, ok := s.site.(adviser); ok && !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, storage.ErrDamaged) {
		return fmt.Errorf("the site's %s: %w", key, err)
	}
	return fmt.Errorf("the site's %s: %w; %s", key, err, s.Advice)
}
