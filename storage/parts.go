package storage

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/internal/retry"
	"github.com/followpress/followpress/internal/tarentry"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/shards"
)

// A site in parts is a site that many machines have written: a file for each shard of the manifest,
// with that shard and its objects, and one for the root and the indexes of the manifest. Parts are pieces of one tar file, so that
// "cat part-* > site.tar" makes a site. Headers follow from key, size and time alone, so a shard of
// the manifest tells where its objects are.

const (
	partPrefix = "part-"
	// RootPart is the name of the part with the root. It is written last: without it, there is no site.
	RootPart = partPrefix + "root"
	// PartsReport is the name of the report of the run that wrote the parts. It is no part.
	PartsReport = "report.json"
	// partsRun is the name of the file with the ID of the run that writes the parts.
	partsRun = "run"
)

// PartName is the name of the part of a shard of the manifest. In the order of names, those of all
// shards come before RootPart.
func PartName(shard string) string { return partPrefix + shard }

func isPartName(name string) bool {
	shard, ok := strings.CutPrefix(name, partPrefix)
	if !ok || name == RootPart {
		return ok
	}
	digits := strings.Repeat("0", len(shard)%2) + shard
	_, err := hex.DecodeString(digits)
	return err == nil && shard != "" && shard == strings.ToLower(shard)
}

// AppendPart appends the part of a shard of the manifest. manifest is the body of that shard, and
// objects are what it lists, sorted by key. asOf is that of the root. Equal arguments give equal
// bytes.
func AppendPart(b []byte, asOf, shard string, manifest []byte, objects iter.Seq2[site.Key, []byte]) ([]byte, error) {
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
			return b, fmt.Errorf("%s: %q after %q: objects must be sorted, and belong into the shard", PartName(shard), key, last)
		}
		if b, err = format.Append(b, string(key), body); err != nil {
			return b, err
		}
		last = key
	}
	return b, nil
}

// AppendRootPart appends the part of the root, with the indexes of the manifest and the end of the tar file.
func AppendRootPart(b []byte, asOf string, root []byte, indexes []shards.Index) ([]byte, error) {
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

// Parts is a place for the parts of one site: a folder, or a bucket below a prefix. Its requests are
// repeated if they fail temporarily. A writer calls Begin, then Put for each shard, from any number
// of machines that have joined its run and as often as it likes, and Finish once all parts are there.
type Parts struct {
	place partsPlace
	retry retry.Policy
	run   string // "" for a reader
}

// A partsPlace keeps the files of Parts.
type partsPlace interface {
	String() string
	// list calls found with each name. Leftovers of killed writers are listed too.
	list(ctx context.Context, found func(name string) error) error
	get(ctx context.Context, name string) ([]byte, error) // ErrNotFound if it is absent
	// read fills buffers with what a part has from an offset on, and returns how much that was, and the
	// part's version. It fails with ErrParts if the version is not the wanted one; nil takes any.
	read(ctx context.Context, name string, want *partVersion, offset int64, into ...[]byte) (n int64, is partVersion, err error)
	put(ctx context.Context, name string, body []byte) error
	remove(ctx context.Context, names []string) error // missing ones are no error
	isLeftover(name string) bool
	sync() error // makes names durable
}

// Retries of requests for parts, and the limits of one attempt.
var (
	partsPatience     = 2 * time.Minute
	partsFirstBackoff = 200 * time.Millisecond
)

const (
	partsBackoff     = 10 * time.Second
	partsAttempt     = 30 * time.Second // besides its body
	partsBytesPerSec = 256 << 10        // slower servers are given up
	partsListing     = 16 << 20         // bytes of a listing of all parts, about
)

// OpenParts returns a place for parts: s3://BUCKET, s3://BUCKET/PREFIX, file:///FOLDER or the path of
// a folder, which need not exist. It sends no request.
func OpenParts(ctx context.Context, location string, o S3Options) (*Parts, error) {
	at, err := ParsePlace(location)
	if err != nil {
		return nil, err
	}
	if at.Folder != "" {
		return newParts(partsFolder(at.Folder), o.Log), nil
	}
	bucket, err := OpenS3(ctx, at, o)
	if err != nil {
		return nil, err
	}
	return newParts(partsBucket{bucket}, o.Log), nil
}

func newParts(place partsPlace, log *slog.Logger) *Parts {
	return &Parts{place: place, retry: partsRetry(log)}
}

func partsRetry(log *slog.Logger) retry.Policy {
	return retry.Policy{Retryable: Temporary, First: partsFirstBackoff, Longest: partsBackoff, Patience: partsPatience,
		Hint: "check the endpoint, and that the server is up", Log: log}
}

// Begin makes the place ready for a new run, and returns the ID of the run. It removes the root of an earlier one, so
// that nobody reads parts of two runs as one site, and from now on other runs fail that still write. It is an error if
// the place holds anything but parts.
func (p *Parts) Begin(ctx context.Context) (run string, err error) {
	names, err := p.names(ctx)
	if err != nil {
		return "", err
	}
	p.run = rand.Text()
	err = p.do(ctx, 0, "put "+partsRun, func(ctx context.Context) error { return p.place.put(ctx, partsRun, []byte(p.run)) })
	if err != nil {
		return "", err
	}
	if err := p.Remove(ctx, RootPart, PartsReport); err != nil {
		return "", err
	}
	if err := p.sync(); err != nil {
		return "", err
	}
	return p.run, p.Remove(ctx, slices.DeleteFunc(names, func(name string) bool { return !p.place.isLeftover(name) })...)
}

// Join makes p a writer of a run that has begun, perhaps on another machine. Call it before anything else.
func (p *Parts) Join(run string) { p.run = run }

// check returns an error unless the run is the last one that has begun.
func (p *Parts) check(ctx context.Context) error {
	switch last, err := p.Get(ctx, partsRun); {
	case errors.Is(err, ErrNotFound):
		return fmt.Errorf("%s has no file %q any more: was it removed while parts were written?", p.place, partsRun)
	case err != nil:
		return err
	case string(last) != p.run:
		return fmt.Errorf("another run has begun to write parts to %s: this one ends", p.place)
	}
	return nil
}

// names lists the place, without the files of the run. It is an error if there is anything else than parts and leftovers.
func (p *Parts) names(ctx context.Context) (names []string, err error) {
	err = p.do(ctx, partsListing, "list "+p.place.String(), func(ctx context.Context) error {
		names = nil
		return p.place.list(ctx, func(name string) error {
			if name == PartsReport || name == partsRun {
				return nil
			}
			if !isPartName(name) && !p.place.isLeftover(name) {
				return fmt.Errorf("%s holds %q, which is no part of a site: name a place that has nothing else", p.place, name)
			}
			names = append(names, name)
			return nil
		})
	})
	return names, err
}

// Put stores a part in one step, in the place of an earlier one. A part that a killed writer has
// begun is not there. It is an error if another run has begun since.
func (p *Parts) Put(ctx context.Context, name string, body []byte) error {
	if !isPartName(name) && name != PartsReport {
		return fmt.Errorf("put %q: it is no name of a part", name)
	}
	if err := p.check(ctx); err != nil {
		return err
	}
	return p.do(ctx, int64(len(body)), "put "+name, func(ctx context.Context) error { return p.place.put(ctx, name, body) })
}

// Get reads a part, or returns ErrNotFound.
func (p *Parts) Get(ctx context.Context, name string) (body []byte, err error) {
	err = p.do(ctx, maxAdmittedSize, "get "+name, func(ctx context.Context) (err error) {
		body, err = p.place.get(ctx, name)
		return err
	})
	return body, err
}

// Remove removes parts. Missing ones are no error.
func (p *Parts) Remove(ctx context.Context, names ...string) error {
	for some := range slices.Chunk(names, MaxDelete) {
		err := p.do(ctx, 0, "remove "+some[0], func(ctx context.Context) error { return p.place.remove(ctx, some) })
		if errors.Is(err, ErrUnsupported) && len(some) > 1 { // the server takes one per request
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

// removesAtOnce are requests in flight that remove a part.
const removesAtOnce = 16

// Finish makes a site of the parts: it checks that the parts of all shards that the root names are
// there, removes parts of earlier runs with other shards, and puts the part of the root with the indexes.
func (p *Parts) Finish(ctx context.Context, root []byte, indexes []shards.Index) error {
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
		absent[PartName(shard)] = true
	}
	var stale []string
	for _, name := range names {
		if !absent[name] && name != RootPart {
			stale = append(stale, name)
		}
		delete(absent, name)
	}
	if len(absent) > 0 {
		first := slices.Min(slices.Collect(maps.Keys(absent)))
		return fmt.Errorf("%s has no %s, and %d parts are missing: was it removed while it was written?", p.place, first, len(absent))
	}
	if err := p.Remove(ctx, stale...); err != nil {
		return err
	}
	body, err := AppendRootPart(nil, parsed.AsOf, root, indexes)
	if err != nil {
		return err
	}
	if err := p.sync(); err != nil {
		return err
	}
	if err := p.Put(ctx, RootPart, body); err != nil {
		return err
	}
	return p.sync()
}

func (p *Parts) sync() error {
	if err := p.place.sync(); err != nil {
		return fmt.Errorf("sync %s: %w", p.place, err)
	}
	return nil
}

// do attempts a request that moves some bytes until it succeeds, cannot be repeated, or patience
// ends.
func (p *Parts) do(ctx context.Context, bytes int64, request string, attempt func(context.Context) error) error {
	return p.retry.Do(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, partsAttempt+time.Duration(bytes/partsBytesPerSec)*time.Second)
		defer cancel()
		return attempt(ctx)
	}, "request", request)
}
