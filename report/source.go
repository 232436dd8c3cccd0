package report

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/followpress/followpress/internal/retry"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/refresh"
	"github.com/followpress/followpress/site/shards"
	"github.com/followpress/followpress/storage"
)

// A Site is a site to compare: a folder, a tar file or a bucket of package storage.
type Site interface {
	// GetAdmitted reads an object, or returns storage.ErrNotFound. It calls admit with the size in
	// bytes before it allocates memory, and returns the error of admit, if any. It is called from
	// many goroutines.
	GetAdmitted(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error)
}

// Limits of what is read, in bytes. Nothing that followpress writes comes near them.
const (
	maxRoot    = site.MaxRootBytes
	maxShard   = 4 << 20
	maxObject  = 256 << 20
	maxNetwork = 4 << 20
	maxBucket  = 16 << 20 // of users
)

// A source reads one of the sites.
type source struct {
	site  Site
	name  string // for people
	retry retry.Policy
	root  site.Root

	manifest *shards.Reader

	shards, objects, bytes, refreshed atomic.Int64 // read so far
}

func open(ctx context.Context, from Site, name string, policy retry.Policy) (*source, error) {
	s := &source{site: from, name: name, retry: policy}
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

type sizeError struct{ size, most int64 }

func (e *sizeError) Error() string {
	return fmt.Sprintf("it has %d bytes, expected at most %d", e.size, e.most)
}

func (s *source) get(ctx context.Context, key site.Key, most int64) (body []byte, err error) {
	err = s.retry.Do(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, attemptTime)
		defer cancel()
		body, err = s.site.GetAdmitted(ctx, key, func(_ context.Context, size int64) error {
			if size > most {
				return &sizeError{size, most}
			}
			return nil
		})
		return err
	})
	if err == nil && int64(len(body)) > most { // of a size that the server has not said
		err = &sizeError{int64(len(body)), most}
	}
	s.bytes.Add(int64(len(body)))
	return body, err
}

const damagedHint = "the site is damaged or was replaced meanwhile: try again, and see what followpress verify says of a bucket"

// explain says which object of which site an error is about, and what to do if it is damaged.
func (s *source) explain(key site.Key, err error) error {
	var size *sizeError
	if errors.Is(err, storage.ErrDamaged) || errors.Is(err, storage.ErrNotFound) || errors.Is(err, site.ErrMalformed) || errors.As(err, &size) {
		return fmt.Errorf("%s: %s: %w: %s", s.name, key, err, damagedHint)
	}
	return fmt.Errorf("%s: %s: %w", s.name, key, err)
}

// digest is the digest of a shard or an index of the manifest.
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

// room is how much larger than its entry an object may be that a refresh has replaced.
func (s *source) room(key site.Key) int64 {
	if len(s.root.Config.RefreshesOf(key)) == 0 {
		return 0
	}
	return 1<<20 + 4*int64(s.root.Config.MaxProfileText)
}

// read reads the object of an entry. The body has the digest of the entry, or is one that a refresh
// has stored in its place.
func (s *source) read(ctx context.Context, e site.Entry) ([]byte, error) {
	if e.Size > maxObject {
		return nil, s.explain(e.Key, &sizeError{e.Size, maxObject})
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
		kept, err := s.get(ctx, key, e.Size+s.room(e.Key)) // it has the new data, and what was there before
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

// readUnlisted reads an object without its entry, whose shard need not be read just for that.
// The body is nil if there is none.
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
