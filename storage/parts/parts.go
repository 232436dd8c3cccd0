// Package parts reads and writes sites in parts, which many machines write: one file for each shard of the manifest,
// with that shard and its objects, and one for the root and the indexes of the manifest. Parts are pieces of one tar
// file: "cat part-* > site.tar" makes a site. Headers follow from key, size and time alone, so a shard of the
// manifest determines where its objects are.
//
// The API may change in any release.
package parts

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/internal/retry"
	"github.com/followpress/followpress/internal/tarentry"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/shards"
	"github.com/followpress/followpress/storage/internal/location"
	"github.com/followpress/followpress/storage/internal/object"
	"github.com/followpress/followpress/storage/internal/s3"
)

const (
	prefix = "part-"
	// Root is the name of the part with the root. It is written last: without it, the parts are no site.
	Root = prefix + "root"
	// Report is the name of the report of the run that wrote the parts. It is not a part.
	Report = "report.json"
	// runFile names the file with the ID of the run that writes the parts.
	runFile = "run"
)

// Name returns the name of the part of a manifest shard. All these names sort before Root.
func Name(shard string) string { return prefix + shard }

// IsName reports whether name is the name of a part.
func IsName(name string) bool {
	shard, ok := strings.CutPrefix(name, prefix)
	if !ok || name == Root {
		return ok
	}
	digits := strings.Repeat("0", len(shard)%2) + shard
	_, err := hex.DecodeString(digits)
	return err == nil && shard != "" && shard == strings.ToLower(shard)
}

// all ends the text that names all parts in a folder or below a prefix. It is not a pattern: shells must not expand
// it.
const all = "/" + prefix + "*"

// At returns the place of the parts that a text like FOLDER/part-* or s3://BUCKET/PREFIX/part-* names, for Open. ok
// is false for other texts.
func At(text string) (place string, ok bool) {
	if text == all[1:] {
		return ".", true
	}
	place, ok = strings.CutSuffix(text, all)
	if ok && place == "" {
		place = "/"
	}
	return place, ok
}

// In returns the text that names the parts in a folder, for At.
func In(folder string) string { return filepath.Join(folder, all[1:]) }

// HeldBy reports whether a folder holds parts, perhaps of an unfinished run.
func HeldBy(folder string) bool {
	return slices.ContainsFunc([]string{Root, Name("0"), Name("00"), Name("000"), Name("0000")}, func(name string) bool {
		_, err := os.Lstat(filepath.Join(folder, name))
		return err == nil
	})
}

// Append appends the part of a manifest shard to b. manifest is the body of the shard, objects are the listed ones
// sorted by key, and asOf comes from the root. Equal arguments give equal bytes.
func Append(b []byte, asOf, shard string, manifest []byte, objects iter.Seq2[site.Key, []byte]) ([]byte, error) {
	format, err := tarentry.ForSite(asOf)
	if err != nil {
		return b, err
	}
	if b, err = format.Append(b, string(site.ManifestKey(shard)), manifest); err != nil {
		return b, err
	}
	var last site.Key
	for key, body := range objects {
		if key <= last || site.ManifestShard(key, len(shard)) != shard {
			return b, fmt.Errorf("%s: %q after %q: objects must be sorted and belong to the shard", Name(shard), key, last)
		}
		if b, err = format.Append(b, string(key), body); err != nil {
			return b, err
		}
		last = key
	}
	return b, nil
}

// AppendRoot appends the part of the root to b: the indexes of the manifest, the root, and the end of the tar file.
func AppendRoot(b []byte, asOf string, root []byte, indexes []shards.Index) ([]byte, error) {
	format, err := tarentry.ForSite(asOf)
	if err != nil {
		return b, err
	}
	for _, index := range indexes {
		if b, err = format.Append(b, string(site.ManifestKey(index.Name)), index.Body); err != nil {
			return b, err
		}
	}
	if b, err = format.Append(b, string(site.RootKey), root); err != nil {
		return b, err
	}
	return tarentry.AppendEnd(b), nil
}

// A Place stores the parts of one site: a folder, or a bucket below a prefix. It retries temporary failures. A writer
// calls Begin, then Put for each shard, then Finish. Put may be called on any machine that has joined the run, and
// repeatedly.
type Place struct {
	store  store
	chunks int64 // memory for a reader's chunks, in bytes
	retry  retry.Policy
	run    string // "" for a reader, and for a writer before Begin
}

// A store keeps the files of a Place.
type store interface {
	String() string
	// list calls found with each name, including leftovers of killed writers.
	list(ctx context.Context, found func(name string) error) error
	get(ctx context.Context, name string) ([]byte, error) // ErrNotFound if missing
	// read fills a buffer from an offset of a part, and returns the number of bytes read and the part's version.
	// It fails with ErrBroken if the version is not the wanted one; nil accepts any.
	read(ctx context.Context, name string, want *object.Version, offset int64, into []byte) (n int64, is object.Version, err error)
	put(ctx context.Context, name string, body []byte) error
	remove(ctx context.Context, names []string) error // missing ones are not errors
	isLeftover(name string) bool
	sync() error // makes names durable
}

// Retries of requests for parts, and the limits of one attempt. Tests shorten them.
var (
	patience     = 2 * time.Minute
	firstBackoff = 200 * time.Millisecond
)

const (
	longestBackoff = 10 * time.Second
	attemptTime    = 30 * time.Second // in addition to the time for the body
	bytesPerSecond = 256 << 10        // minimum rate of a server
	listingBytes   = 16 << 20         // rough size of a listing of all parts
)

// Open returns a place for parts: s3://BUCKET, s3://BUCKET/PREFIX, file:///FOLDER or the path of a folder, which need
// not exist. It sends no request.
func Open(ctx context.Context, text string, o s3.Options) (*Place, error) {
	at, err := location.ParsePlace(text)
	if err != nil {
		return nil, err
	}
	p := &Place{retry: retry.Policy{Retryable: object.Temporary, First: firstBackoff, Longest: longestBackoff, Patience: patience,
		Hint: "check the endpoint, and that the server is up", Log: o.Log}}
	if at.Folder != "" {
		p.store, p.chunks = folder(at.Folder), chunksOfFolder
		return p, nil
	}
	opened, err := s3.Open(ctx, at.Bucket, at.Prefix, o)
	if err != nil {
		return nil, err
	}
	p.store, p.chunks = bucket{opened}, chunksOfBucket
	return p, nil
}

// Begin starts a new run and returns its ID. It removes the root of an earlier run, so that parts of two runs are
// never read as one site, and makes other running writers fail. It fails if the place holds anything but parts.
func (p *Place) Begin(ctx context.Context) (run string, err error) {
	names, err := p.names(ctx)
	if err != nil {
		return "", err
	}
	p.run = rand.Text()
	err = p.do(ctx, 0, "put "+runFile, func(ctx context.Context) error { return p.store.put(ctx, runFile, []byte(p.run)) })
	if err != nil {
		return "", err
	}
	if err := p.Remove(ctx, Root, Report); err != nil {
		return "", err
	}
	if err := p.sync(); err != nil {
		return "", err
	}
	return p.run, p.Remove(ctx, slices.DeleteFunc(names, func(name string) bool { return !p.store.isLeftover(name) })...)
}

// Join makes p a writer of a run begun elsewhere, perhaps on another machine. Call it before other methods.
func (p *Place) Join(run string) { p.run = run }

// check returns an error unless this run is the last one begun.
func (p *Place) check(ctx context.Context) error {
	switch last, err := p.Get(ctx, runFile); {
	case errors.Is(err, object.ErrNotFound):
		return fmt.Errorf("%s has no file %q; was it removed while parts were written?", p.store, runFile)
	case err != nil:
		return err
	case string(last) != p.run:
		return fmt.Errorf("another run has begun to write parts to %s", p.store)
	}
	return nil
}

// names lists the parts and leftovers of the place, and fails if it finds other files.
func (p *Place) names(ctx context.Context) (names []string, err error) {
	err = p.do(ctx, listingBytes, "list "+p.store.String(), func(ctx context.Context) error {
		names = nil
		return p.store.list(ctx, func(name string) error {
			if name == Report || name == runFile {
				return nil
			}
			if !IsName(name) && !p.store.isLeftover(name) {
				return fmt.Errorf("%s holds %q, which is not a part of a site; name a place with nothing else", p.store, name)
			}
			names = append(names, name)
			return nil
		})
	})
	return names, err
}

// Put stores or replaces a part atomically. It fails if another run has begun.
func (p *Place) Put(ctx context.Context, name string, body []byte) error {
	if !IsName(name) && name != Report {
		return fmt.Errorf("put %q: not the name of a part", name)
	}
	if err := p.check(ctx); err != nil {
		return err
	}
	return p.do(ctx, int64(len(body)), "put "+name, func(ctx context.Context) error { return p.store.put(ctx, name, body) })
}

// Get reads a part, or returns ErrNotFound.
func (p *Place) Get(ctx context.Context, name string) (body []byte, err error) {
	err = p.do(ctx, object.MaxAdmitted, "get "+name, func(ctx context.Context) (err error) {
		body, err = p.store.get(ctx, name)
		return err
	})
	return body, err
}

// Remove removes parts. Missing ones are not errors.
func (p *Place) Remove(ctx context.Context, names ...string) error {
	for some := range slices.Chunk(names, s3.MaxDelete) {
		err := p.do(ctx, 0, "remove "+some[0], func(ctx context.Context) error { return p.store.remove(ctx, some) })
		if errors.Is(err, object.ErrUnsupported) && len(some) > 1 { // the server deletes one object per request
			group, each := errgroup.WithContext(ctx)
			group.SetLimit(removesAtOnce)
			for _, name := range some {
				group.Go(func() error { return p.Remove(each, name) })
			}
			err = group.Wait()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removesAtOnce is the maximum number of concurrent delete requests.
const removesAtOnce = 16

// Finish completes a site. It checks that the place has the parts of all shards that the root names, removes parts of
// earlier runs with other shards, and puts the part of the root with the indexes.
func (p *Place) Finish(ctx context.Context, root []byte, indexes []shards.Index) error {
	parsed, err := site.ParseRoot(root)
	if err != nil {
		return err
	}
	if err := p.check(ctx); err != nil {
		return err
	}
	names, err := p.names(ctx)
	if err != nil {
		return err
	}
	absent := map[string]bool{}
	for _, shard := range site.HashPrefixes(parsed.ShardDigits) {
		absent[Name(shard)] = true
	}
	var stale []string
	for _, name := range names {
		if !absent[name] && name != Root {
			stale = append(stale, name)
		}
		delete(absent, name)
	}
	if len(absent) > 0 {
		first := slices.Min(slices.Collect(maps.Keys(absent)))
		return fmt.Errorf("%s has no %s, and %d parts are missing; were they removed during the run?", p.store, first, len(absent))
	}
	if err := p.Remove(ctx, stale...); err != nil {
		return err
	}
	body, err := AppendRoot(nil, parsed.AsOf, root, indexes)
	if err != nil {
		return err
	}
	if err := p.sync(); err != nil {
		return err
	}
	if err := p.Put(ctx, Root, body); err != nil {
		return err
	}
	return p.sync()
}

func (p *Place) sync() error {
	if err := p.store.sync(); err != nil {
		return fmt.Errorf("sync %s: %w", p.store, err)
	}
	return nil
}

// do retries a request that transfers about that many bytes until it succeeds, fails permanently, or patience ends.
func (p *Place) do(ctx context.Context, bytes int64, request string, attempt func(context.Context) error) error {
	return p.retry.Do(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, attemptTime+time.Duration(bytes/bytesPerSecond)*time.Second)
		defer cancel()
		return attempt(ctx)
	}, "request", request)
}
