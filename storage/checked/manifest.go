package checked

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/followpress/followpress/internal/panics"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/shards"
	"github.com/followpress/followpress/storage"
)

// An item is a compact manifest entry, without its key.
type item struct {
	name   [16]byte // first bytes of the key's SHA-256, so that nobody can choose them
	size   int64
	sha256 site.SHA256
}

func nameOf(key site.Key) (name [16]byte) {
	sum := sha256.Sum256([]byte(key))
	return [16]byte(sum[:])
}

func (i item) matches(body []byte) bool {
	return int64(len(body)) == i.size && site.Sum256(body) == i.sha256
}

// The memory of an item, and of a shard in addition to its items, in bytes.
const (
	itemBytes  = 16 + 8 + 32
	shardBytes = 256
)

// A shardOf identifies a manifest shard of a root.
type shardOf struct {
	root site.SHA256
	name string
}

// A version is a verified root with its manifest.
type version struct {
	root   *site.Root
	body   []byte      // body of the root
	digest site.SHA256 // digest of the root

	opening  turn           // held while the manifest is opened
	manifest *shards.Reader // nil until it is opened; under opening
	until    time.Time      // when to open the manifest again because an index is damaged; zero for never; under opening
	reopened *rate.Limiter  // reopenings because of damaged shards
}

// damagedFor is how long a damaged index is not read again. Without this limit, every request would read all indexes.
const damagedFor = 5 * time.Second

// mostReopened is the maximum number of reopenings because of damaged shards: at once, and again within damagedFor.
const mostReopened = 16

// Size limits of manifest objects in bytes. An index has 256 digests of 64 digits each. Keys have at most some
// hundred bytes, and shards are of similar size.
const (
	maxIndex    = 64 << 10
	maxDelta    = 256 << 10
	leastShard  = 64 << 10
	shardPerKey = 2 << 10
	mostShard   = 16 << 20
)

// most returns the maximum size of a manifest object.
func (v *version) most(key site.Key) int64 {
	name := strings.TrimPrefix(string(key), string(site.ManifestKey("")))
	switch {
	case strings.HasPrefix(string(key), string(site.DeltaKey(""))):
		return maxDelta
	case len(name) != v.root.ShardDigits:
		return maxIndex
	}
	perShard := int64(max(v.root.Counts.Objects, 0)) >> (4 * v.root.ShardDigits)
	return min(leastShard+min(perShard, mostShard)*shardPerKey, mostShard)
}

// reader returns the manifest, and opens it if needed. A manifest with a damaged index is opened again after
// damagedFor.
func (s *Site) reader(ctx context.Context, v *version) (*shards.Reader, error) {
	if err := v.opening.take(ctx); err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	defer v.opening.give()
	if v.manifest != nil && (v.until.IsZero() || time.Now().Before(v.until)) {
		return v.manifest, nil
	}
	r, err := shards.Open(ctx, v.root, func(ctx context.Context, key site.Key) ([]byte, error) { return s.partOfManifest(ctx, v, key) })
	if err != nil {
		return nil, err
	}
	v.manifest, v.until = r, time.Time{}
	for _, name := range shards.Indexes(v.root) {
		if _, err := r.Index(name); err != nil {
			v.until = time.Now().Add(damagedFor)
		}
	}
	return r, nil
}

// partOfManifest reads a manifest object. An announced site's objects are read below site.NextPrefix first, because
// they may not be in place yet.
func (s *Site) partOfManifest(ctx context.Context, v *version, key site.Key) ([]byte, error) {
	for _, n := range s.state.Load().next {
		if n.version != v {
			continue
		}
		body, err := s.bounded(ctx, site.NextKey(n.counter, key), v.most(key))
		if !errors.Is(err, storage.ErrNotFound) {
			return body, asDamage(err)
		}
	}
	body, err := s.bounded(ctx, key, v.most(key))
	return body, asDamage(err)
}

// asDamage marks a manifest object that is too large as damaged.
func asDamage(err error) error {
	if errors.Is(err, storage.ErrTooLarge) {
		return fmt.Errorf("%w: %w", err, shards.ErrDamaged)
	}
	return err
}

// shard returns the items of a shard. Concurrent calls share one read. An error that wraps shards.ErrDamaged means that
// the shard differs from the root.
func (s *Site) shard(ctx context.Context, v *version, name string) ([]item, error) {
	id := shardOf{v.digest, name}
	for {
		if items, ok := s.held.Get(id); ok {
			return items, nil
		}
		mine := false
		reading := s.flights.DoChan(fmt.Sprint(id), func() (_ any, err error) {
			mine = true
			defer panics.Catch(&err)
			if items, ok := s.held.Get(id); ok {
				return items, nil
			}
			entries, err := s.readShard(ctx, v, name)
			if err != nil {
				return nil, err
			}
			return s.hold(id, entries), nil
		})
		select {
		case read := <-reading:
			if isOver(read.Err) && !mine && ctx.Err() == nil {
				continue // the context of the reading call ended, not this one
			}
			items, _ := read.Val.([]item)
			return items, read.Err
		case <-ctx.Done():
			return nil, fmt.Errorf("read %s: %w", site.ManifestKey(name), context.Cause(ctx))
		}
	}
}

// hold keeps the items of a shard in memory.
func (s *Site) hold(id shardOf, entries []site.Entry) []item {
	items := itemsOf(entries)
	s.held.Put(id, items, int64(shardBytes+len(items)*itemBytes))
	return items
}

func itemsOf(entries []site.Entry) []item {
	items := make([]item, len(entries))
	for n, e := range entries {
		items[n] = item{nameOf(e.Key), e.Size, e.SHA256}
	}
	slices.SortFunc(items, func(a, b item) int { return bytes.Compare(a.name[:], b.name[:]) })
	return items
}

func isOver(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// readShard reads the entries of a shard.
func (s *Site) readShard(ctx context.Context, v *version, name string) ([]site.Entry, error) {
	select {
	case s.reading <- struct{}{}:
		defer func() { <-s.reading }()
	case <-ctx.Done():
		return nil, fmt.Errorf("read %s: %w", site.ManifestKey(name), context.Cause(ctx))
	}
	r, err := s.reader(ctx, v)
	if err != nil {
		return nil, err
	}
	shard, err := r.Shard(ctx, name)
	if errors.Is(err, shards.ErrDamaged) {
		s.forget(v, r)
	}
	return shard.Objects, err
}

// forget makes the next caller open the manifest again: its deltas may come from a time when the bucket stored the
// same site differently. A limit prevents that a damaged bucket causes this for every object.
func (s *Site) forget(v *version, r *shards.Reader) {
	v.opening <- struct{}{}
	defer v.opening.give()
	if v.manifest == r && v.until.IsZero() && v.reopened.Allow() {
		v.manifest = nil
	}
}

// listed returns what a version lists for a key.
func (s *Site) listed(ctx context.Context, v *version, key site.Key) (item, bool, error) {
	items, err := s.shard(ctx, v, site.ManifestShard(key, v.root.ShardDigits))
	if err != nil {
		return item{}, false, err
	}
	name := nameOf(key)
	n, ok := slices.BinarySearchFunc(items, name, func(i item, name [16]byte) int { return bytes.Compare(i.name[:], name[:]) })
	if !ok {
		return item{}, false, nil
	}
	return items[n], true, nil
}

// manifestObject returns a manifest object of a version as stored. A delta is valid if each of its patches produces
// the shard that the root names.
func (s *Site) manifestObject(ctx context.Context, v *version, key site.Key) ([]byte, error) {
	r, err := s.reader(ctx, v)
	if err != nil {
		return nil, err
	}
	name, isDelta := strings.CutPrefix(string(key), string(site.DeltaKey("")))
	if !isDelta {
		name = strings.TrimPrefix(string(key), string(site.ManifestKey("")))
	}
	switch {
	case isDelta && len(name) == v.root.ShardDigits && shards.Group(name) == name && isHex(name):
		return s.delta(ctx, v, r, name)
	case isDelta || !isHex(name) || !shards.Has(v.root, name):
		return nil, storage.ErrNotFound
	case len(name) == v.root.ShardDigits:
		shard, err := r.Shard(ctx, name)
		return shard.Body, err
	}
	is, err := r.Index(name)
	if err != nil {
		return nil, err
	}
	body, err := s.partOfManifest(ctx, v, key)
	if err == nil && site.NewEntry(key, body) != is {
		err = fmt.Errorf("read %s: %w", key, shards.ErrDamaged)
	}
	return body, err
}

func (s *Site) delta(ctx context.Context, v *version, r *shards.Reader, name string) ([]byte, error) {
	key := site.DeltaKey(name)
	body, err := s.partOfManifest(ctx, v, key)
	if err != nil {
		return nil, cmp.Or(asNotFound(err), err)
	}
	delta, err := shards.ParseDelta(name, body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, shards.ErrDamaged)
	}
	needed, wrong := false, false
	for _, p := range delta.Shards {
		shard, err := r.Shard(ctx, p.Shard)
		if err != nil {
			return nil, err
		}
		want := shards.NewPatch(p.Shard, shard.Put, shard.Objects, r.Digest(p.Shard))
		needed = needed || shard.Patched
		wrong = wrong || !shard.Patched || p.SHA256 != want.SHA256 || !slices.Equal(p.Objects, want.Objects) || !slices.Equal(p.Gone, want.Gone)
	}
	switch {
	case !needed: // a leftover of another site
		return nil, storage.ErrNotFound
	case wrong:
		return nil, fmt.Errorf("read %s: %w", key, shards.ErrDamaged)
	}
	return body, nil
}

func asNotFound(err error) error {
	if errors.Is(err, storage.ErrNotFound) {
		return storage.ErrNotFound
	}
	return nil
}

func isHex(name string) bool {
	return name != "" && len(name) <= 4 && strings.Trim(name, "0123456789abcdef") == ""
}
