package output

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/followpress/followpress/generator/internal/whole"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/internal/inorder"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/shards"
)

// An Index is the manifest and the root of a site. After Render, its methods may be called
// concurrently.
type Index struct {
	entries *entryStore
	Root    site.Root
	digests shards.Digests // digests of the manifest shards
	indexes []shards.Index // indexes of the shards
	workers int

	mu     sync.Mutex
	recent []*readPartition // latest first; guarded by mu
}

// A Rendering configures the rendering of a site.
type Rendering struct {
	Of       *whole.Site
	Inputs   *site.Inputs             // for the root; nil if not wanted
	Workers  int                      // goroutines
	Temp     func() (*os.File, error) // creates the file for entries of the manifest; nil if they stay in memory
	Progress Progress
}

// Render renders every object and the manifest into out, and returns the index of the site, which
// the caller must close.
func (r *Rendering) Render(ctx context.Context, out Output) (*Index, error) {
	entries := newEntryStore(r.Of.Config.BasePath, r.Of.Objects(), r.Temp)
	err := renderAll(ctx, r.Of, r.Workers, out, entries, r.Progress)
	if err != nil {
		return nil, errors.Join(err, entries.close())
	}
	x, err := newIndex(ctx, r.Of, r.Inputs, entries, r.Workers, out)
	if err != nil {
		return nil, errors.Join(err, entries.close())
	}
	return x, nil
}

// Again is Render for a site with an index.
func (r *Rendering) Again(ctx context.Context, x *Index, out Output) error {
	if err := r.Objects(ctx, out); err != nil {
		return err
	}
	return x.render(ctx, out)
}

// Objects renders every object into out, without the manifest and the root.
func (r *Rendering) Objects(ctx context.Context, out Output) error {
	return renderAll(ctx, r.Of, r.Workers, out, nil, r.Progress)
}

// newIndex makes the root for the rendered objects, and renders the manifest into out. inputs may
// be nil.
func newIndex(ctx context.Context, s *whole.Site, inputs *site.Inputs, entries *entryStore, workers int, out Output) (*Index, error) {
	x := &Index{entries: entries, workers: workers, digests: shards.NewDigests(entries.digits), Root: NewRoot(s, entries.digits)}
	x.Root.Inputs = inputs
	x.Root.Counts.Objects, x.Root.Counts.Bytes = int(entries.objects.Load()), entries.bytes.Load()
	if err := x.renderShards(ctx, out, x.digests.Set); err != nil {
		return x, err
	}
	x.Root.Manifest, x.indexes = x.digests.Tree()
	return x, x.writeIndexes(out)
}

// NewRoot returns the root of a site without its inputs, its manifest, and the numbers of objects
// and bytes, which are known only after rendering.
func NewRoot(s *whole.Site, shardDigits int) site.Root {
	g := s.Graph
	return site.Root{
		Format: site.Format, AsOf: g.AsOf, Config: s.Config, BucketDigits: s.BucketDigits, TokenDigits: s.TokenDigits, ShardDigits: shardDigits,
		HeaderRules: s.Config.HeaderRules(), Counts: g.Counts(),
	}
}

// partitions yields the partitions of the manifest, each with some successive shards.
func (x *Index) partitions(yield func(int, error) bool) {
	for partition := range x.entries.partitions {
		if !yield(partition, nil) {
			return
		}
	}
}

// render renders the manifest into out.
func (x *Index) render(ctx context.Context, out Output) error {
	if err := x.renderShards(ctx, out, func(string, site.SHA256) error { return nil }); err != nil {
		return err
	}
	return x.writeIndexes(out)
}

// renderShards renders the shards of the manifest into out and calls rendered with the digest of
// each, in order.
func (x *Index) renderShards(ctx context.Context, out Output, rendered func(shard string, digest site.SHA256) error) error {
	type renderedShards struct {
		batch   Batch
		names   []string
		digests []site.SHA256
	}
	return inorder.Do(ctx, x.workers, x.partitions,
		func(partition int, _ *inorder.Ticket[renderedShards]) (renderedShards, error) {
			s := renderedShards{batch: out.Begin()}
			all, err := x.entries.shards(partition)
			if err != nil {
				return s, err
			}
			var text []byte
			var m site.Manifest
			for _, shard := range all {
				m = shard.manifest(m.Objects)
				text = m.Append(text[:0])
				s.names, s.digests = append(s.names, shard.name), append(s.digests, site.Sum256(text))
				if _, ok := out.(Discard); ok { // no need to compress if only digests count
					continue
				}
				body := shards.Pack(text)
				if err := s.batch.Put(entryOf(site.ManifestKey(shard.name), body), body); err != nil {
					return s, err
				}
			}
			return s, nil
		},
		func(s renderedShards) error {
			for i, name := range s.names {
				if err := rendered(name, s.digests[i]); err != nil {
					return err
				}
			}
			return out.Finish(s.batch)
		})
}

// writeIndexes puts the indexes into out, after the shards.
func (x *Index) writeIndexes(out Output) error {
	b := out.Begin()
	for _, index := range x.indexes {
		if err := b.Put(entryOf(site.ManifestKey(index.Name), index.Body), index.Body); err != nil {
			return err
		}
	}
	return out.Finish(b)
}

// Objects returns the number of objects, including manifest and root.
func (x *Index) Objects() int {
	return x.Root.Counts.Objects + len(x.entries.shardNames) + len(x.indexes) + 1
}

// WriteRoot puts the root into out, after everything else.
func (x *Index) WriteRoot(out Output) error {
	body, err := x.Root.Encode()
	if err != nil {
		return err
	}
	b := out.Begin()
	if err := b.Put(entryOf(site.RootKey, body), body); err != nil {
		return err
	}
	return out.Finish(b)
}

// Kinds returns the bytes by kind of object, largest first.
func (x *Index) Kinds() []summary.KindReport { return x.entries.kinds.report() }

// Close frees the temporary file, if there is one. No other method may be called during or after
// it.
func (x *Index) Close() error { return x.entries.close() }

// Get returns a shard or an index, or site.ErrNotFound.
func (x *Index) Get(key site.Key) ([]byte, error) {
	name := strings.TrimPrefix(string(key), string(site.ManifestKey("")))
	for _, index := range x.indexes {
		if index.Name == name {
			return index.Body, nil
		}
	}
	s, err := x.shardEntries(name)
	if err != nil {
		return nil, err
	}
	return shards.Pack(s.manifest(nil).Append(nil)), nil
}

// shard returns the entries of a shard.
func (x *Index) shard(_ context.Context, name string) ([]site.Entry, error) {
	s, err := x.shardEntries(name)
	return slices.Collect(s.all()), err
}

// digest returns the digest of a shard or an index.
func (x *Index) digest(name string) site.SHA256 {
	if len(name) == x.Root.ShardDigits {
		return x.digests.Of(name)
	}
	return x.Root.Manifest[name]
}

// A readPartition caches the manifest shards of one partition.
type readPartition struct {
	number int
	once   sync.Once
	shards []shardEntries
	err    error
}

// shardEntries returns a shard. It reads the partition of the shard once for shards that are
// requested roughly in order.
func (x *Index) shardEntries(name string) (shardEntries, error) {
	n, ok := slices.BinarySearch(x.entries.shardNames, name)
	if !ok {
		return shardEntries{}, fmt.Errorf("%s: %w", site.ManifestKey(name), site.ErrNotFound)
	}
	per := x.entries.shardsPerPartition()
	x.mu.Lock()
	at := slices.IndexFunc(x.recent, func(p *readPartition) bool { return p.number == n/per })
	if at < 0 {
		at = 0
		x.recent = slices.Insert(x.recent[:min(len(x.recent), 1+x.workers/per)], 0, &readPartition{number: n / per})
	}
	p := x.recent[at]
	x.mu.Unlock()
	p.once.Do(func() { p.shards, p.err = x.entries.shards(p.number) })
	if p.err != nil { // the next call reads again
		x.mu.Lock()
		defer x.mu.Unlock()
		x.recent = slices.DeleteFunc(x.recent, func(other *readPartition) bool { return other == p })
		return shardEntries{}, p.err
	}
	return p.shards[n%per], nil
}
