// Package survey compares a bucket with the objects that a manifest names, by a listing, and by
// digests one by one where the listing has none.
package survey

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/followpress/followpress/publisher/internal/origin"
	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/publisher/internal/spool"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/kept"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/site/refresh"
	"github.com/followpress/followpress/site/shards"
	"github.com/followpress/followpress/storage"
)

// A Survey compares a listing of the bucket with the objects that a manifest names. It keeps the
// listing in a scratch, in parts of the manifest, and compares part by part, so that memory does
// not grow with the number of objects.
type Survey struct {
	Bucket   *requests.Bucket
	Root     *site.Root
	Manifest *shards.Reader          // names the objects
	Own      *shards.Reader          // describes how the bucket stores the manifest itself
	Ours     bool                    // whether Manifest belongs to the site to publish, where damage is an error
	UpToDate func(storage.Info) bool // whether an object also has the right headers
	Configs  []site.Config           // configurations of the sites whose objects the bucket may have
	Exclude  []string                // patterns of foreign keys to ignore
	Found    func(Finding)           // receives every difference; shards come in order, unknown objects first
	Progress requests.Progress
	Memory   int // bytes that a scratch keeps in memory

	Refreshers note.Keys // see publisher.Options

	// Results.
	Expected  int  // number of objects that the manifest names
	Manifests int  // number of objects of the manifest itself
	Listed    int  // number of listed objects
	Marked    bool // whether there is a mark

	digests   digestCount
	refreshes *refreshSet // nil until needed
	signed    bool        // whether the bucket is signed; set with refreshes
}

// A Finding is an object that differs between the bucket and the manifest.
type Finding struct {
	site.Entry        // the expected entry; only the key if the object is not expected
	Shard      string // manifest shard that names it, or would; a shard belongs to itself
	State      objectState
}

// An objectState describes how an object of the bucket differs from the manifest.
type objectState uint8

// The states of objects.
const (
	Missing objectState = iota
	right
	Altered   // other bytes
	Refreshed // other bytes that a refresh has put
	Stale     // the right bytes, but perhaps other headers
	Unknown   // not expected, with a key of a site
	Announced // below _next/, used only while a publish runs
	Foreign   // not expected, with a key that followpress does not use
)

// Take lists the bucket and compares it with the manifest.
func (s *Survey) Take(ctx context.Context) error {
	listing := spool.New(s.Bucket.Log, s.Memory)
	defer listing.Close()
	parts := site.HashPrefixes(listingDigits)
	objects := listing.List(len(parts))
	s.Progress.Stage("list", int64(s.Root.Counts.Objects+len(shards.Names(s.Root))))
	err := s.Bucket.List(ctx, "", func(info storage.Info) error {
		s.Listed++
		s.Progress.AddBytes(1, 0)
		part, _ := slices.BinarySearch(parts, s.partOf(info.Key))
		objects.AddInfo(part, info)
		return nil
	})
	if err != nil {
		return err
	}
	// The shards of a group are compared together. They name up to 16,000 objects, or a 256th of
	// all.
	groups := 1 << (4 * shards.GroupDigits(s.Root.ShardDigits))
	names := site.HashPrefixes(s.Root.ShardDigits)
	s.Progress.Stage("manifest", int64(len(names)))
	for i := range groups {
		group := names[i*len(names)/groups : (i+1)*len(names)/groups]
		if err := s.compare(ctx, group, objects, i*len(parts)/groups, (i+1)*len(parts)/groups); err != nil {
			return err
		}
	}
	s.digests.log(s.Bucket.Log)
	return nil
}

// listingDigits makes 256 parts of a listing, regardless of the size of the site: the bucket may
// hold many more foreign objects.
const listingDigits = 2

// partOf returns the part of the listing that an object belongs to: the part of the shard that
// names it.
func (s *Survey) partOf(key site.Key) string {
	if shard, ok := s.shardOf(key); ok {
		return (shard + "0")[:listingDigits]
	}
	return site.ManifestShard(key, listingDigits)
}

// shardOf returns the shard that an object of the manifest is compared with: a shard itself, the
// first shard of an index, or the first shard of the group of a delta.
func (s *Survey) shardOf(key site.Key) (shard string, ok bool) {
	name, ok := strings.CutPrefix(string(key), string(site.ManifestKey("")))
	if !ok {
		return "", false
	}
	name, isDelta := strings.CutPrefix(name, "delta/")
	if strings.Trim(name, "0123456789abcdef") != "" || !isDelta && !shards.Has(s.Root, name) || isDelta && len(name) != s.Root.ShardDigits {
		return "", false
	}
	return name + strings.Repeat("0", s.Root.ShardDigits-len(name)), true
}

// A compared object is named by a shard, with its state in the listing.
type compared struct {
	Finding
	damaged bool // an object of the manifest that differs from the root
	listed  bool
	info    *storage.Info // listed object, if its state needs more requests; else nil
}

// compare compares some shards with the parts [first, end) of the listing, which hold their
// objects.
func (s *Survey) compare(ctx context.Context, shards []string, listed *spool.Spool, first, end int) error {
	before := s.Expected
	objects, unreadable, err := s.readShards(ctx, shards)
	if err != nil {
		return err
	}
	s.Manifests += len(objects) - (s.Expected - before)
	index := make(map[site.Key]int, len(objects))
	for i := range objects {
		index[objects[i].Key] = i
	}
	var unsure []*compared
	for part := first; part < end; part++ {
		var unexpected []site.Key
		for info, err := range listed.Infos(part) {
			if err != nil {
				return err
			}
			i, ok := index[info.Key]
			if !ok {
				unexpected = append(unexpected, info.Key)
				continue
			}
			o := &objects[i]
			if o.listed { // a listing may repeat an object
				continue
			}
			o.listed = true
			if s.Bucket.NeedsDigest(o.Entry, info) {
				o.info = &info
				unsure = append(unsure, o)
			} else {
				s.classify(o, info, isSame(o.Entry, info))
			}
		}
		s.findUnknown(unexpected, unreadable)
	}
	if err := s.compareDigests(ctx, unsure); err != nil {
		return err
	}
	if err := s.findRefreshed(ctx, objects); err != nil {
		return err
	}
	for i := range objects {
		o := &objects[i].Finding
		if objects[i].damaged && o.State == right {
			o.State = Altered
		}
		if o.State != right {
			s.Found(*o)
		}
	}
	return nil
}

// readShards returns the objects that the shards of a group name, the manifest objects that belong
// to these shards, and the errors of unreadable shards.
func (s *Survey) readShards(ctx context.Context, names []string) (objects []compared, unreadable map[string]error, err error) {
	read, own := make([]shards.Shard, len(names)), make([]shards.Shard, len(names))
	failed, damaged := make([]error, len(names)), make([]error, len(names))
	err = requests.Parallel(ctx, min(s.Bucket.Concurrency, MaxShards), len(names), func(ctx context.Context, i int) (err error) {
		read[i], err = s.Manifest.Shard(ctx, names[i])
		if errors.Is(err, shards.ErrDamaged) && !s.Ours {
			failed[i], err = err, nil
		}
		own[i], damaged[i] = read[i], failed[i]
		if s.Own != s.Manifest && err == nil {
			own[i], err = s.Own.Shard(ctx, names[i])
			if errors.Is(err, shards.ErrDamaged) {
				damaged[i], err = err, nil
			}
		}
		s.Progress.AddBytes(1, 0)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	unreadable = map[string]error{}
	patched := false
	for i, shard := range names {
		if len(objects) == 0 {
			objects = make([]compared, 0, len(names)*(len(read[i].Objects)*9/8+2))
		}
		s.Expected += len(read[i].Objects)
		for _, e := range read[i].Objects {
			objects = append(objects, compared{Finding: Finding{Entry: e, Shard: shard}})
		}
		patched = patched || own[i].Patched
		indexed := s.addIndex(shard, &objects)
		if failed[i] != nil {
			unreadable[shard] = failed[i]
		}
		if indexed == nil || s.Ours { // else the right content of the shard is unknown
			entry := own[i].Object
			entry.Key = site.ManifestKey(shard)
			objects = append(objects, compared{Finding: Finding{Entry: entry, Shard: shard}, damaged: damaged[i] != nil})
		}
	}
	if patched {
		_, delta, err := s.Own.Delta(ctx, names[0])
		if err != nil && !errors.Is(err, shards.ErrDamaged) {
			return nil, nil, err
		}
		objects = append(objects, compared{Finding: Finding{Entry: delta, Shard: names[0]}, damaged: err != nil})
	}
	return objects, unreadable, nil
}

// addIndex adds the index of a shard if the shard is its first one, and returns an error if the
// index is damaged.
func (s *Survey) addIndex(shard string, to *[]compared) error {
	digits := site.RootDigits(s.Root.ShardDigits)
	if digits == s.Root.ShardDigits {
		return nil // there are none
	}
	index, err := s.Own.Index(shard[:digits])
	if strings.Trim(shard[digits:], "0") == "" {
		*to = append(*to, compared{Finding: Finding{Entry: index, Shard: shard}, damaged: err != nil})
	}
	return err
}

func (s *Survey) classify(o *compared, info storage.Info, same bool) {
	switch {
	case !same:
		o.State, o.info = Altered, &info
	case !s.UpToDate(info):
		o.State = Stale
	default:
		o.State = right
	}
}

// findUnknown reports the objects that no shard names. Objects of an unreadable shard are neither
// right nor unknown.
func (s *Survey) findUnknown(keys []site.Key, unreadable map[string]error) {
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		shard, isManifest := s.shardOf(key)
		if !isManifest {
			shard = site.ManifestShard(key, s.Root.ShardDigits)
		}
		switch {
		case key == site.RootKey, key == site.LockKey, key == site.NoteKey:
		case key == site.MarkKey:
			s.Marked = true
		case strings.HasPrefix(string(key), string(site.RefreshPrefix)), strings.HasPrefix(string(key), string(site.ReportsPrefix)),
			strings.HasPrefix(string(key), string(kept.Prefix)):
		case strings.HasPrefix(string(key), string(site.NextPrefix)):
			s.Found(Finding{Entry: site.Entry{Key: site.Key(strings.Clone(string(key)))}, Shard: shard, State: Announced})
		case unreadable[shard] != nil && isSiteKey(key, []site.Config{s.Root.Config}):
		default:
			state := Unknown
			if !isSiteKey(key, s.Configs) {
				if excluded(key, s.Exclude) {
					continue
				}
				state = Foreign
			}
			key = site.Key(strings.Clone(string(key))) // part of a long text, which need not stay in memory
			s.Found(Finding{Entry: site.Entry{Key: key}, Shard: shard, State: state})
		}
	}
}

// excluded reports whether a key, or a folder that it is in, matches a pattern of path.Match.
func excluded(key site.Key, patterns []string) bool {
	for name := string(key); ; {
		for _, pattern := range patterns {
			if ok, _ := path.Match(strings.TrimSuffix(pattern, "/"), name); ok {
				return true
			}
		}
		end := strings.LastIndexByte(name, '/')
		if end < 0 {
			return false
		}
		name = name[:end]
	}
}

// refreshSet is the set of objects below _refresh/, by hashes of their keys.
type refreshSet struct {
	seed   maphash.Seed
	hashes []uint64 // sorted
}

// mayHave reports whether an object may exist. It is almost always exact.
func (k *refreshSet) mayHave(key site.Key) bool {
	_, found := slices.BinarySearch(k.hashes, maphash.String(k.seed, string(key)))
	return found
}

func listRefreshes(ctx context.Context, bucket *requests.Bucket) (*refreshSet, error) {
	k := &refreshSet{seed: maphash.MakeSeed()}
	err := bucket.List(ctx, site.RefreshPrefix, func(info storage.Info) error {
		k.hashes = append(k.hashes, maphash.String(k.seed, string(info.Key)))
		return nil
	})
	slices.Sort(k.hashes)
	return k, err
}

// findRefreshed finds the altered objects whose bytes a refresh has put, according to the data
// below _refresh/. A refresh stores its data before it puts the object, so the data explain every
// object listed earlier.
func (s *Survey) findRefreshed(ctx context.Context, objects []compared) error {
	var candidates []*compared
	for i := range objects {
		if o := &objects[i]; o.State == Altered && len(s.Root.Config.RefreshesOf(o.Key)) > 0 && s.UpToDate(*o.info) {
			candidates = append(candidates, o)
		}
	}
	if len(candidates) == 0 {
		return nil
	}
	if s.refreshes == nil {
		refreshes, err := listRefreshes(ctx, s.Bucket)
		if err != nil {
			return err
		}
		_, _, err = s.Bucket.Read(ctx, site.NoteKey)
		if s.signed = err == nil; !s.signed && !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		s.refreshes = refreshes
	}
	return requests.Parallel(ctx, MaxShards, len(candidates), func(ctx context.Context, i int) error {
		o := candidates[i]
		digest, err := s.Bucket.DigestOf(ctx, *o.info) // before reading the data that explain it
		if err != nil {
			return err
		}
		possible, err := s.refreshesOf(ctx, o.Entry)
		if slices.ContainsFunc(possible, func(d site.MD5) bool { return d.String() == digest }) {
			o.State = Refreshed
		}
		return err
	})
}

// refreshesOf returns the digests that refreshes may have given an object.
func (s *Survey) refreshesOf(ctx context.Context, want site.Entry) (possible []site.MD5, err error) {
	for _, key := range s.Root.Config.RefreshesOf(want.Key) {
		if !s.refreshes.mayHave(key) {
			continue
		}
		body, _, err := s.Bucket.Read(ctx, key)
		if errors.Is(err, storage.ErrNotFound) {
			continue
		} else if err != nil {
			return nil, err
		}
		if s.signed {
			if body, err = s.Refreshers.OpenEntry(key, body, time.Now()); err != nil {
				continue // the object counts as altered
			}
		}
		refreshes, err := refresh.Replacements(body)
		if err != nil {
			continue // the object counts as altered; generate reports this error
		}
		for _, r := range refreshes {
			if r.From == want.MD5 {
				possible = append(possible, r.MD5)
			}
		}
	}
	return possible, nil
}

func isSame(want site.Entry, found storage.Info) bool {
	return found.ETag == want.MD5.String() && (want.Size == requests.AnySize || want.Size == found.Size)
}

// A digestCount counts the objects that a listing cannot classify: their size is right, and their
// ETag may not be an MD5.
type digestCount struct {
	unsure int
	right  atomic.Int64
}

func (c *digestCount) log(log *slog.Logger) {
	if n := c.right.Load(); n > 0 {
		log.Warn("ETags of the bucket are not MD5s, as under SSE-KMS: requested digests one by one", "objects", c.unsure, "right", n)
	}
}

// compareDigests sets the state of objects that the listing cannot classify, with a request per
// object.
func (s *Survey) compareDigests(ctx context.Context, unsure []*compared) error {
	if len(unsure) == 0 {
		return nil
	}
	if s.digests.unsure == 0 {
		s.Progress.Stage("digests", 0)
	}
	s.digests.unsure += len(unsure)
	return requests.Parallel(ctx, s.Bucket.Concurrency, len(unsure), func(ctx context.Context, i int) error {
		o := unsure[i]
		digest, err := s.Bucket.Digest(ctx, o.Key)
		if errors.Is(err, storage.ErrNotFound) {
			return nil // deleted since the listing
		} else if err != nil {
			return err
		}
		if digest == o.MD5 {
			s.digests.right.Add(1)
		}
		s.classify(o, *o.info, digest == o.MD5)
		s.Progress.AddBytes(1, 0)
		return nil
	})
}

// isSiteKey reports whether a key has the form of an object of a site with one of the
// configurations.
func isSiteKey(key site.Key, configs []site.Config) bool {
	for _, c := range configs {
		if _, ok := c.RouteOf(key); ok {
			return true
		}
	}
	return key == site.PackKey
}

// MaxShards bounds the manifest shards in memory, each with some thousand entries.
const MaxShards = 16

// OpenManifest opens the manifest of the site in the bucket.
func OpenManifest(ctx context.Context, bucket *requests.Bucket, root *site.Root) (*shards.Reader, error) {
	return shards.Open(ctx, root, func(ctx context.Context, key site.Key) ([]byte, error) {
		body, _, err := bucket.Read(ctx, key)
		if errors.Is(err, storage.ErrTooLarge) {
			err = fmt.Errorf("%w: %w", err, shards.ErrDamaged)
		}
		return body, err
	})
}

// HasManifest reports whether a bucket without a root has a manifest: then somebody removed the
// root.
func HasManifest(ctx context.Context, bucket *requests.Bucket) (bool, error) {
	for shard := "0"; len(shard) <= maxProbedDigits; shard += "0" {
		_, _, err := bucket.Read(ctx, site.ManifestKey(shard))
		if !errors.Is(err, storage.ErrNotFound) {
			return err == nil, err
		}
	}
	return false, nil
}

// maxProbedDigits covers all manifests without indexes.
const maxProbedDigits = 3

// Overwritten lists the objects whose bytes the first site in a bucket would change. Equal objects
// may be left from an earlier site.
func Overwritten(ctx context.Context, bucket *requests.Bucket, next *origin.Site) (keys []site.Key, err error) {
	byShard := map[string][]storage.Info{} // few: objects in the way of a first site are a mistake
	err = bucket.List(ctx, "", func(info storage.Info) error {
		if info.Key == site.RootKey {
			keys = append(keys, info.Key) // put since this run looked for it
		} else if _, ok := next.Root.Config.RouteOf(info.Key); ok {
			shard := site.ManifestShard(info.Key, next.Root.ShardDigits)
			byShard[shard] = append(byShard[shard], info)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for shard, infos := range byShard {
		read, err := next.Shard(ctx, shard)
		if err != nil {
			return nil, err
		}
		entries := read.Objects
		for _, info := range infos {
			i := slices.IndexFunc(entries, func(e site.Entry) bool { return e.Key == info.Key })
			if i < 0 {
				continue // not an object of this site
			}
			digest, err := bucket.DigestOf(ctx, info)
			if err != nil {
				return nil, err
			}
			if digest != entries[i].MD5.String() {
				keys = append(keys, info.Key)
			}
		}
	}
	return keys, nil
}

// OverwrittenAmong lists the added objects whose keys the bucket uses for other bytes.
func OverwrittenAmong(ctx context.Context, bucket *requests.Bucket, added []site.Entry) (keys []site.Key, err error) {
	for _, e := range added {
		body, _, err := bucket.Read(ctx, e.Key)
		switch {
		case errors.Is(err, storage.ErrNotFound):
		case err != nil:
			return nil, err
		case site.Sum(body) != e.MD5:
			keys = append(keys, e.Key)
		}
	}
	return keys, nil
}
