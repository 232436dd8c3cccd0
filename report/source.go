package report

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/refresh"
	"github.com/followpress/followpress/site/shards"
	"github.com/followpress/followpress/storage"
)

// A Site is a site to compare: a folder, a tar file or a bucket of package storage.
type Site = storage.Reader

// Size limits of objects in bytes, far above what followpress writes.
const (
	maxRoot   = site.MaxRootBytes
	maxShard  = 4 << 20
	maxObject = 256 << 20
	maxBucket = 16 << 20 // maximum bucket of users
)

// A source reads one of the sites.
type source struct {
	site storage.Retrying
	name string // for messages
	root site.Root

	manifest *shards.Reader

	shards, objects, bytes, refreshed atomic.Int64 // read so far
}

func open(ctx context.Context, from Site, name string, retry storage.Retry) (*source, error) {
	s := &source{site: storage.Retrying{From: from, Retry: retry}, name: name}
	body, err := s.get(ctx, site.RootKey, maxRoot)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, fmt.Errorf("%s: there is no site: it has no %s", name, site.RootKey)
	} else if err != nil {
		return nil, s.explain(site.RootKey, err)
	}
	if s.root, err = site.ParseRoot(body); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, s.openManifest(ctx)
}

func (s *source) openManifest(ctx context.Context) (err error) {
	s.manifest, err = shards.Open(ctx, &s.root, func(ctx context.Context, key site.Key) ([]byte, error) {
		body, err := s.get(ctx, key, maxShard)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			err = s.explain(key, err)
		}
		return body, err
	})
	return err
}

func (s *source) get(ctx context.Context, key site.Key, most int64) ([]byte, error) {
	body, err := s.site.GetBounded(ctx, key, most)
	s.bytes.Add(int64(len(body)))
	return body, err
}

const damagedHint = "the site is damaged or was just replaced; try again, then run followpress verify"

// explain adds the site and the object to an error, and a hint if it is damaged.
func (s *source) explain(key site.Key, err error) error {
	if errors.Is(err, storage.ErrDamaged) || errors.Is(err, storage.ErrNotFound) || errors.Is(err, site.ErrMalformed) || errors.Is(err, storage.ErrTooLarge) {
		return fmt.Errorf("%s: %s: %w: %s", s.name, key, err, damagedHint)
	}
	return fmt.Errorf("%s: %s: %w", s.name, key, err)
}

// digest returns the digest of a manifest shard or index.
func (s *source) digest(name string) site.SHA256 {
	if len(name) == s.root.ShardDigits {
		return s.manifest.Digest(name)
	}
	return s.root.Manifest[name]
}

func (s *source) shard(ctx context.Context, shard string) ([]site.Entry, error) {
	m, err := s.manifest.Shard(ctx, shard)
	if errors.Is(err, shards.ErrDamaged) {
		return nil, fmt.Errorf("%s: %w: %s", s.name, err, damagedHint)
	} else if err != nil {
		return nil, err
	}
	s.shards.Add(1)
	return m.Objects, nil
}

// room returns by how much a refreshed object may exceed the size of its entry.
func (s *source) room(key site.Key) int64 {
	if len(s.root.Config.RefreshesOf(key)) == 0 {
		return 0
	}
	return 1<<20 + 4*int64(s.root.Config.MaxProfileText)
}

// read reads the object of an entry. The body has the digest of the entry, or is a replacement stored by a refresh.
func (s *source) read(ctx context.Context, e site.Entry) ([]byte, error) {
	if e.Size > maxObject {
		return nil, s.explain(e.Key, fmt.Errorf("%d bytes, expected at most %d: %w", e.Size, maxObject, storage.ErrTooLarge))
	}
	body, err := s.get(ctx, e.Key, e.Size+s.room(e.Key))
	if err != nil {
		return nil, s.explain(e.Key, err)
	}
	s.objects.Add(1)
	sum := site.Sum(body)
	if int64(len(body)) == e.Size && sum == e.MD5 {
		return body, nil
	}
	for _, key := range s.root.Config.RefreshesOf(e.Key) {
		kept, err := s.get(ctx, key, e.Size+s.room(e.Key)) // has the new data, and the original object
		if errors.Is(err, storage.ErrNotFound) {
			continue
		} else if err != nil {
			return nil, s.explain(key, err)
		}
		stored, err := refresh.Replacements(kept)
		if err != nil {
			return nil, s.explain(key, fmt.Errorf("%w: %w", site.ErrMalformed, err))
		}
		for _, r := range stored {
			if r.MD5 == sum && r.From == e.MD5 {
				s.refreshed.Add(1)
				return body, nil
			}
		}
	}
	return nil, s.explain(e.Key, storage.ErrDamaged)
}

// readUnlisted reads an object without its entry, to avoid reading a whole shard. The body is nil if the object is
// missing.
func (s *source) readUnlisted(ctx context.Context, key site.Key, most int64) ([]byte, error) {
	body, err := s.get(ctx, key, most)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, s.explain(key, err)
	}
	s.objects.Add(1)
	return body, nil
}

// checkComparable returns an error unless the objects of two sites mean the same. It names the first setting that
// differs. An explorer makes no difference.
func checkComparable(from, to *source) error {
	a, b := from.root.Config, to.root.Config
	for _, member := range []struct {
		name   string
		of, in any
	}{
		{"api", apiOf(a), apiOf(b)}, {"base_path", a.BasePath, b.BasePath}, {"names", namesOf(a), namesOf(b)},
		{"badges_field", a.BadgesField, b.BadgesField}, {"leaderboard_max", a.LeaderboardMax, b.LeaderboardMax},
		{"max_profile_text", a.MaxProfileText, b.MaxProfileText}, {"max_profile", a.ProfileLimits().Whole, b.ProfileLimits().Whole}, {"profile_url", a.ProfileURL, b.ProfileURL},
	} {
		if member.of != member.in {
			return fmt.Errorf("the sites cannot be compared: %s is %v in %s and %v in %s; generate both with the same flags",
				member.name, member.of, from.name, member.in, to.name)
		}
	}
	return nil
}

func apiOf(c site.Config) string {
	if c.EFP() {
		return site.APIEFP
	}
	return site.APISpec
}

func namesOf(c site.Config) string {
	if c.Names == "" {
		return site.NamesCopies
	}
	return c.Names
}
