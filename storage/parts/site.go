package parts

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/singleflight"

	"github.com/followpress/followpress/internal/tarentry"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/shards"
	"github.com/followpress/followpress/storage/internal/lru"
	"github.com/followpress/followpress/storage/internal/object"
	"github.com/followpress/followpress/storage/internal/s3"
)

// ErrBroken means that the parts do not belong to one complete run.
var ErrBroken = errors.New("the parts do not belong to one complete run; write them again")

// A Site is a site in parts. It retries requests. The manifest gives the part and position of each
// object. The header there must match the object exactly, which detects parts of another run.
type Site struct {
	parts    *Place
	lifetime context.Context
	end      context.CancelFunc
	running  sync.WaitGroup // reads that outlive their callers

	mu      sync.Mutex
	current *openSite // under mu; nil until the root is read
}

// An openSite is the site of one root, even after another one has replaced it.
type openSite struct {
	site     *Site
	body     []byte // body of the root
	root     site.Root
	top      map[site.Key][]byte // the root, and the indexes of the manifest
	manifest *shards.Reader
	format   *tarentry.Formatter
	seed     maphash.Seed // random, because keys are input and could be chosen to collide

	files   sync.Map           // name to *partFile
	flights singleflight.Group // for building indexes
	indexes *lru.Cache[string, partIndex]
	chunks  *chunks
}

// A partIndex locates the objects of a part. It is sorted by the hash of the key.
type partIndex []partEntry

type partEntry struct {
	hash  uint64
	block uint32 // where the entry begins
	size  uint32 // size of the body
}

// maxIndexed is the maximum number of entries in cached indexes, of 16 bytes each.
const maxIndexed = 4 << 20

// Site returns the site in these parts. It sends no request.
func (p *Place) Site() *Site {
	s := &Site{parts: p}
	s.lifetime, s.end = context.WithCancel(context.Background())
	return s
}

// Advice returns what to do if the site is damaged.
func (s *Site) Advice() string { return "write the parts again" }

// Close ends background reads and waits for them.
func (s *Site) Close() error {
	s.end()
	s.running.Wait()
	return nil
}

// Get reads an object, or returns ErrNotFound.
func (s *Site) Get(ctx context.Context, key site.Key) ([]byte, error) {
	return s.GetAdmitted(ctx, key, object.AdmitAll)
}

// GetAdmitted is like Get, but first calls admit with the size in bytes, before it allocates memory. It returns
// admit's error, if any.
func (s *Site) GetAdmitted(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	opened, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	return opened.get(ctx, key, admit)
}

// Reopen reads the root again, and switches to a new site if there is one. Reads in progress continue in the old
// site, and fail if its parts were replaced.
func (s *Site) Reopen(ctx context.Context) error {
	next, err := s.readRoot(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil || !bytes.Equal(s.current.body, next.body) {
		s.current = next
	}
	return nil
}

// open returns the current site. The first call reads its root.
func (s *Site) open(ctx context.Context) (*openSite, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		opened, err := s.readRoot(ctx)
		if err != nil {
			return nil, err
		}
		s.current = opened
	}
	return s.current, nil
}

func (s *Site) readRoot(ctx context.Context) (*openSite, error) {
	var body []byte
	var size int64
	err := s.parts.do(ctx, maxRoot, "read "+Root, func(ctx context.Context) error {
		buffer := make([]byte, maxRoot)
		n, version, err := s.parts.store.read(ctx, Root, nil, 0, buffer)
		body, size = buffer[:n], version.Size
		return err
	})
	if errors.Is(err, object.ErrNotFound) {
		return nil, fmt.Errorf("%s has no %s: the run that writes the parts is unfinished or has failed", s.parts.store, Root)
	} else if err != nil {
		return nil, s3.ExplainNoAnswer(fmt.Errorf("read %s: %w", Root, err))
	}
	if size > int64(len(body)) {
		return nil, fmt.Errorf("%s of %s has %d bytes, too many for a root: %w", Root, s.parts.store, size, ErrBroken)
	}
	o := &openSite{site: s, top: map[site.Key][]byte{}, seed: maphash.MakeSeed(), indexes: lru.New[string, partIndex](maxIndexed)}
	if err := o.readTop(body); err != nil {
		return nil, fmt.Errorf("%s of %s has no complete %s: %w", Root, s.parts.store, site.RootKey, err)
	}
	o.body = o.top[site.RootKey]
	o.chunks = newChunks(s, s.parts.chunks)
	if o.root, err = site.ParseRoot(o.body); err != nil {
		return nil, fmt.Errorf("%s of %s: %w", Root, s.parts.store, err)
	}
	if o.format, err = tarentry.ForSite(o.root.AsOf); err != nil {
		return nil, err
	}
	o.manifest, err = shards.Open(ctx, &o.root, o.getManifest)
	return o, err
}

// maxRoot is the maximum size in bytes of the part of the root: 256 indexes of some 10 KiB, the root, headers,
// padding and the end.
const maxRoot = 2*site.MaxRootBytes + 1024*tarentry.Block

// readTop parses the part of the root: the indexes of the manifest, then the root.
func (o *openSite) readTop(part []byte) error {
	for archive := tar.NewReader(bytes.NewReader(part)); ; {
		header, err := archive.Next()
		if err != nil {
			return ErrBroken
		}
		body, err := io.ReadAll(archive) // bounded by the part, which is in memory
		if err != nil {
			return ErrBroken
		}
		o.top[site.Key(header.Name)] = body
		if header.Name == string(site.RootKey) {
			return nil
		}
	}
}

func (o *openSite) get(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	if body, ok := o.top[key]; ok {
		if err := admit(ctx, int64(len(body))); err != nil {
			return nil, err
		}
		return bytes.Clone(body), nil
	}
	if shard, ok := strings.CutPrefix(string(key), string(site.ManifestKey(""))); ok {
		if len(shard) != o.root.ShardDigits || strings.Trim(shard, "0123456789abcdef") != "" {
			return nil, object.ErrNotFound
		}
		if _, err := o.head(ctx, o.file(shard), shard, admit); err != nil {
			return nil, err
		}
		read, err := o.shard(ctx, o.file(shard), shard)
		return read.Body, err
	}
	shard := site.ManifestShard(key, o.root.ShardDigits)
	file := o.file(shard)
	index, err := o.index(ctx, file, shard)
	if err != nil {
		return nil, err
	}
	entry, ok := index.find(maphash.String(o.seed, string(key)))
	if !ok {
		return nil, object.ErrNotFound
	}
	size := int64(entry.size)
	if size > object.MaxBytes {
		return nil, fmt.Errorf("read %s: %d bytes, more than %d MiB", key, size, object.MaxBytes>>20)
	}
	if err := admit(ctx, size); err != nil {
		return nil, err
	}
	want, err := o.format.AppendHeader(nil, string(key), size)
	if err != nil {
		return nil, err
	}
	stored := make([]byte, int64(len(want))+size)
	if err := o.chunks.read(ctx, file, int64(entry.block)*tarentry.Block, stored); err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	body, ok := bytes.CutPrefix(stored, want)
	if !ok {
		return nil, fmt.Errorf("read %s: not at its place in %s: %w", key, o.name(file), ErrBroken)
	}
	return body, nil
}

func (o *openSite) name(f *partFile) string { return f.name + " of " + o.site.parts.store.String() }

// file returns the state of the part of a shard.
func (o *openSite) file(shard string) *partFile {
	name := Name(shard)
	f, ok := o.files.Load(name)
	if !ok {
		f, _ = o.files.LoadOrStore(name, &partFile{name: name, touched: -1})
	}
	return f.(*partFile)
}

// maxShardBytes is the maximum size of a manifest shard.
const maxShardBytes = 64 << 20

// getManifest reads a manifest object: an index, or the shard at the head of a part.
func (o *openSite) getManifest(ctx context.Context, key site.Key) ([]byte, error) {
	if body, ok := o.top[key]; ok {
		return body, nil
	}
	shard := strings.TrimPrefix(string(key), string(site.ManifestKey("")))
	if len(shard) != o.root.ShardDigits { // a missing index, or a delta, which parts do not have
		return nil, object.ErrNotFound
	}
	return o.head(ctx, o.file(shard), shard, object.AdmitAll)
}

// shard reads and checks the manifest shard at the head of a part.
func (o *openSite) shard(ctx context.Context, f *partFile, shard string) (shards.Shard, error) {
	s, err := o.manifest.Shard(ctx, shard)
	if errors.Is(err, shards.ErrDamaged) {
		err = fmt.Errorf("%s lacks the %s listed in %s: %w: %w", o.name(f), site.ManifestKey(shard), Root, err, ErrBroken)
	}
	return s, err
}

// head reads the body of the manifest shard at the head of a part, unchecked.
func (o *openSite) head(ctx context.Context, f *partFile, shard string, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	key := site.ManifestKey(shard)
	head, err := o.chunks.get(ctx, f, 0)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	header, err := tar.NewReader(bytes.NewReader(head)).Next()
	if err != nil || header.Name != string(key) {
		return nil, fmt.Errorf("%s does not begin with %s: %w", o.name(f), key, ErrBroken)
	}
	want, err := o.format.AppendHeader(nil, string(key), header.Size)
	if err != nil {
		return nil, err
	}
	size := f.version().Size
	if header.Size > maxShardBytes || !bytes.HasPrefix(head, want) || header.Size > size-int64(len(want)) {
		return nil, fmt.Errorf("%s has %d bytes and another %s: %w", o.name(f), size, key, ErrBroken)
	}
	if err := admit(ctx, header.Size); err != nil {
		return nil, err
	}
	body := make([]byte, header.Size)
	if err := o.chunks.read(ctx, f, int64(len(want)), body); err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return body, nil
}

// index returns the index of a part, and builds it in the first call.
func (o *openSite) index(ctx context.Context, f *partFile, shard string) (partIndex, error) {
	if index, ok := o.indexes.Get(shard); ok {
		return index, nil
	}
	return await(ctx, o.site, &o.flights, shard, func(ctx context.Context) (partIndex, error) {
		if index, ok := o.indexes.Get(shard); ok {
			return index, nil
		}
		s, err := o.shard(ctx, f, shard)
		if err != nil {
			return nil, err
		}
		index, err := o.makeIndex(f, s)
		if err != nil {
			return nil, err
		}
		o.indexes.Put(shard, index, int64(len(index)))
		return index, nil
	})
}

// makeIndex computes where the objects of a part are, and compares the part's size with the result.
func (o *openSite) makeIndex(f *partFile, s shards.Shard) (partIndex, error) {
	const largest = math.MaxUint32 // limit of an object in bytes and of a part in blocks
	index := make(partIndex, 0, len(s.Objects))
	at := tarentry.Block + s.Object.Size + tarentry.Padding(s.Object.Size)
	for _, e := range s.Objects {
		header, err := o.format.HeaderSize(string(e.Key), e.Size)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.name(f), err)
		}
		if e.Size > largest || at/tarentry.Block > largest {
			return nil, fmt.Errorf("%s: %s has %d bytes: objects have up to 4 GiB, and parts 2 TiB", o.name(f), e.Key, e.Size)
		}
		index = append(index, partEntry{maphash.String(o.seed, string(e.Key)), uint32(at / tarentry.Block), uint32(e.Size)})
		at += header + e.Size + tarentry.Padding(e.Size)
	}
	if size := f.version().Size; size != at {
		return nil, fmt.Errorf("%s has %d bytes, its manifest says %d: %w", o.name(f), size, at, ErrBroken)
	}
	slices.SortFunc(index, func(a, b partEntry) int { return cmp.Compare(a.hash, b.hash) })
	return index, nil
}

func (x partIndex) find(hash uint64) (partEntry, bool) {
	at, ok := slices.BinarySearchFunc(x, hash, func(e partEntry, hash uint64) int { return cmp.Compare(e.hash, hash) })
	if !ok {
		return partEntry{}, false
	}
	return x[at], true
}
