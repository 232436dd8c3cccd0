package publisher

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/tags"
	"github.com/followpress/followpress/storage"
)

// A source reads the site to publish.
type source struct {
	site   Site
	root   site.Root
	body   []byte // of the root
	advice string // if the site is damaged
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
	s := &source{from, root, body, "generate the site again, with --rebuild"}
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

func (s *source) shard(ctx context.Context, shard string) ([]site.Entry, error) {
	object, err := s.manifest(ctx, shard)
	if err != nil {
		return nil, err
	}
	m, err := site.ParseManifest(shard, object.Body)
	if err != nil {
		return nil, fmt.Errorf("the site: %w", err)
	}
	return m.Objects, nil
}

// manifest reads the object of a manifest shard, and checks it against the root.
func (s *source) manifest(ctx context.Context, shard string) (storage.Object, error) {
	key := site.ManifestKey(shard)
	body, err := s.site.Get(ctx, key)
	if err != nil {
		return storage.Object{}, s.broken(key, err)
	}
	object := s.object(site.Entry{Key: key, Size: int64(len(body)), MD5: s.root.Manifest[shard]}, body)
	if site.Sum(body) != object.MD5 {
		return storage.Object{}, s.broken(key, storage.ErrDamaged)
	}
	return object, nil
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
