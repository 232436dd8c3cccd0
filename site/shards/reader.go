package shards

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/site"
)

// A Get reads an object. Its error wraps site.ErrNotFound if the object is missing, and ErrDamaged if it is too large
// to read. It must be safe for concurrent use.
type Get func(ctx context.Context, key site.Key) ([]byte, error)

// ErrDamaged means that a manifest object is not the one that the root names: it is missing or altered, or another
// site is being published. Other errors come from Get.
var ErrDamaged = errors.New("it is not what _site names")

// A Reader reads the manifest of a site, with or without deltas. It is safe for concurrent use.
type Reader struct {
	root    *site.Root
	get     Get
	digests Digests              // digests of the shards; zero below a damaged index
	indexes map[string]readIndex // by name
	trusted bool                 // digests do not depend on the indexes
	deltas  recent[readDelta]    // by group
}

type readIndex struct {
	object site.Entry
	err    error // if it is damaged
}

// A readDelta is the delta of a group and its stored entry. Both are zero if there is none.
type readDelta struct {
	delta  *Delta
	object site.Entry
}

// maxDeltas is the number of cached deltas: shards are read roughly in order.
const maxDeltas = 16

// indexesAtOnce is the maximum number of indexes read concurrently.
const indexesAtOnce = 16

// Open returns a reader for the manifest of a root. It reads the indexes, up to 256 objects. A damaged index makes
// Shard fail for its shards.
func Open(ctx context.Context, root *site.Root, get Get) (*Reader, error) {
	r := &Reader{root: root, get: get, indexes: map[string]readIndex{}, deltas: recent[readDelta]{most: maxDeltas}}
	if root.Manifest == nil {
		return r, nil
	}
	r.digests = NewDigests(root.ShardDigits)
	names := Indexes(root)
	if names == nil {
		for shard, digest := range root.Manifest {
			if err := r.digests.Set(shard, digest); err != nil {
				return nil, fmt.Errorf("read %s: %w", site.RootKey, err)
			}
		}
		return r, nil
	}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(indexesAtOnce)
	for _, name := range names {
		group.Go(func() error {
			index, err := r.readIndex(ctx, name)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			r.indexes[name] = index
			return nil
		})
	}
	return r, group.Wait()
}

func (r *Reader) readIndex(ctx context.Context, name string) (readIndex, error) {
	key := site.ManifestKey(name)
	body, err := r.get(ctx, key)
	switch {
	case errors.Is(err, site.ErrNotFound):
		return readIndex{site.Entry{Key: key}, fmt.Errorf("read %s: %w: %w", key, err, ErrDamaged)}, nil
	case errors.Is(err, ErrDamaged):
		return readIndex{site.Entry{Key: key}, err}, nil
	case err != nil:
		return readIndex{}, err
	}
	index := readIndex{object: site.NewEntry(key, body)}
	text, err := unpack(key, body, maxIndex)
	switch {
	case err != nil:
		index.err = fmt.Errorf("%w: %w", err, ErrDamaged)
	case site.Sum256(text) != r.root.Manifest[name]:
		index.err = fmt.Errorf("read %s: %w", key, ErrDamaged)
	default:
		// Indexes set disjoint digests, so they may be parsed concurrently.
		if err := parseIndex(name, text, r.digests); err != nil {
			index.err = fmt.Errorf("%w: %w", err, ErrDamaged)
		}
	}
	return index, nil
}

// Digest returns the digest of a shard's text according to the root or index. It is zero if the index is damaged.
func (r *Reader) Digest(shard string) site.SHA256 { return r.digests.Of(shard) }

// Index returns the object of an index, and an error that wraps ErrDamaged if it is damaged.
func (r *Reader) Index(name string) (site.Entry, error) {
	index := r.indexes[name]
	return index.object, index.err
}

// A Shard is a manifest shard.
type Shard struct {
	Objects []site.Entry // sorted by key
	Put     []site.Entry // entries of the stored shard, before any patch
	Object  site.Entry   // the stored shard
	Body    []byte       // the stored shard
	Patched bool         // a delta has changed it
}

// Shard reads a shard. An error that wraps ErrDamaged names the object that differs from the root.
func (r *Reader) Shard(ctx context.Context, name string) (Shard, error) {
	key := site.ManifestKey(name)
	if index, err := r.indexOf(name); err != nil {
		return Shard{}, fmt.Errorf("read %s: its index %s: %w", key, site.ManifestKey(index), err)
	}
	body, err := r.get(ctx, key)
	if errors.Is(err, site.ErrNotFound) {
		return Shard{}, fmt.Errorf("read %s: %w: %w", key, err, ErrDamaged)
	} else if err != nil {
		return Shard{}, err
	}
	s := Shard{Object: site.NewEntry(key, body), Body: body}
	text, err := unpack(key, body, maxShard)
	if err != nil {
		return s, fmt.Errorf("%w: %w", err, ErrDamaged)
	}
	want := r.Digest(name)
	isCurrent := site.Sum256(text) == want
	var patch *Patch
	if !isCurrent {
		delta, _, err := r.Delta(ctx, name)
		if err != nil {
			return s, err
		}
		if patch = delta.Patch(name); patch == nil || patch.SHA256 != want {
			r.deltas.forget(Group(name)) // a newer delta may exist by the next call
			return s, fmt.Errorf("read %s: %w", key, ErrDamaged)
		}
	}
	m, err := site.ParseManifest(name, text)
	if err != nil {
		return s, fmt.Errorf("%w: %w", err, ErrDamaged)
	}
	s.Objects, s.Put = m.Objects, m.Objects
	if isCurrent {
		return s, nil
	}
	m.Objects = patch.apply(m.Objects)
	if site.Sum256(m.Append(nil)) != want {
		return s, fmt.Errorf("read %s: with the changes of %s, %w", key, site.DeltaKey(Group(name)), ErrDamaged)
	}
	s.Objects, s.Patched = m.Objects, true
	return s, nil
}

// Trust makes r use the digests of another reader of the same root whose indexes are undamaged. Call it before
// reading shards.
func (r *Reader) Trust(other *Reader) { r.digests, r.trusted = other.digests, true }

// indexOf returns the index of a shard, "" if the root names shards, and an error if the index is damaged and needed.
func (r *Reader) indexOf(shard string) (index string, err error) {
	if len(r.indexes) == 0 || r.trusted {
		return "", nil
	}
	index = shard[:site.RootDigits(r.root.ShardDigits)]
	return index, r.indexes[index].err
}

// Delta reads the delta of a shard's group, nil if there is none, and its stored entry. It may belong to another
// site: a patch applies only if it has the shard's digest.
func (r *Reader) Delta(ctx context.Context, shard string) (*Delta, site.Entry, error) {
	name := Group(shard)
	d, err := r.deltas.get(ctx, name, func() (d readDelta, err error) {
		key := site.DeltaKey(name)
		body, err := r.get(ctx, key)
		if errors.Is(err, site.ErrNotFound) {
			return d, nil
		} else if err != nil {
			return d, err
		}
		d.object = site.NewEntry(key, body)
		if d.delta, err = ParseDelta(name, body); err != nil {
			return d, fmt.Errorf("%w: %w", err, ErrDamaged)
		}
		return d, nil
	})
	return d.delta, d.object, err
}
