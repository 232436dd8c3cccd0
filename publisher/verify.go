package publisher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// maxKeysListed bounds the keys of each kind in a verification; all are counted.
const maxKeysListed = 1000

// A Verification says how a bucket differs from its manifest.
type Verification struct {
	Dest      string  `json:"dest"`            // set by Note
	Error     string  `json:"error,omitempty"` // set by Note
	AsOf      string  `json:"as_of"`
	Objects   int     `json:"objects"` // named by the manifest, including its own shards
	Listed    int     `json:"listed"`  // objects in the bucket
	Missing   Found   `json:"missing"`
	Altered   Found   `json:"altered"`   // with other bytes than the manifest says
	Refreshed Found   `json:"refreshed"` // with other bytes that a refresh has put, which is no error
	Unknown   Found   `json:"unknown"`   // not named by the manifest, nor used by followpress otherwise
	Marked    bool    `json:"marked"`    // whether a publish is running or was cut off
	Repaired  *Report `json:"repaired,omitempty"`
	Seconds   float64 `json:"seconds"`
}

// Found lists the keys of one kind.
type Found struct {
	Count int        `json:"count"`
	Keys  []site.Key `json:"keys"` // the first 1,000 of them, sorted
}

func (f *Found) set(keys []site.Key) {
	slices.Sort(keys)
	f.Count = len(keys)
	f.Keys = slices.Clone(keys[:min(len(keys), maxKeysListed)])
}

// Good reports whether the bucket equals its manifest, refreshed objects aside.
func (v *Verification) Good() bool {
	return v.Missing.Count == 0 && v.Altered.Count == 0 && v.Unknown.Count == 0
}

// Verify compares a bucket with its own manifest, by a listing of sizes and ETags. It writes
// nothing. Where ETags are not MD5s, it requests digests one by one. It is an error if the
// bucket has no readable root; differences are not errors.
func Verify(ctx context.Context, bucket Bucket, o Options) (*Verification, error) {
	begun := time.Now()
	o, err := o.WithDefaults()
	if err != nil {
		return nil, err
	}
	l := newLifetimes(ctx)
	defer l.end()
	v, err := verify(l.soft, newRetryingBucket(l.hard, bucket, o, new(atomic.Int64)), o)
	if err != nil {
		return nil, err
	}
	v.Seconds = time.Since(begun).Seconds()
	return v, nil
}

func verify(ctx context.Context, bucket *retryingBucket, o Options) (*Verification, error) {
	body, _, err := bucket.read(ctx, site.RootKey)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, fmt.Errorf("the bucket has no %s: publish a site first, or check --dest", site.RootKey)
	} else if err != nil {
		return nil, err
	}
	root, err := site.ParseRoot(body)
	if err != nil {
		return nil, fmt.Errorf("the bucket: %w: publish the site to repair it", err)
	}
	entries, unreadable, err := readManifest(ctx, bucket, &root, o)
	if err != nil {
		return nil, err
	}
	expected := append(entries, manifestEntries(&root)...)
	s, err := takeSurvey(ctx, bucket, root.Config, expected, func(storage.Info) bool { return true }, o.Progress)
	if err != nil {
		return nil, err
	}
	// Objects of an unreadable manifest shard are neither right nor unknown.
	s.unknown = slices.DeleteFunc(s.unknown, func(key site.Key) bool {
		return unreadable[site.ManifestShard(key, root.ShardDigits)] && isSiteKey(key, []site.Config{root.Config})
	})
	return s.verification(&root, len(expected)), nil
}

func (s *survey) verification(root *site.Root, objects int) *Verification {
	v := &Verification{AsOf: root.AsOf, Objects: objects, Listed: s.listed, Marked: s.marked}
	v.Missing.set(keysOf(s.missing))
	v.Altered.set(keysOf(s.altered))
	v.Refreshed.set(keysOf(s.refreshed))
	v.Unknown.set(s.unknown)
	return v
}

func keysOf(entries []site.Entry) []site.Key {
	keys := make([]site.Key, len(entries))
	for i, e := range entries {
		keys[i] = e.Key
	}
	return keys
}

// readManifest reads all shards of the bucket's manifest. Missing or altered ones are returned
// as unreadable; the listing will name them.
func readManifest(ctx context.Context, bucket *retryingBucket, root *site.Root, o Options) (entries []site.Entry, unreadable map[string]bool, err error) {
	shards := site.HashPrefixes(root.ShardDigits)
	parts := make([][]site.Entry, len(shards))
	bad := make([]bool, len(shards))
	o.Progress.Stage("manifest", int64(len(shards)))
	err = parallel(ctx, min(o.Concurrency, maxPlanners), len(shards), func(ctx context.Context, i int) (err error) {
		parts[i], err = readLiveShard(ctx, bucket, root, shards[i])
		if bad[i] = errors.Is(err, errInconsistent); err != nil && !bad[i] {
			return err
		}
		o.Progress.AddBytes(1, 0)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	unreadable = map[string]bool{}
	for i, shard := range shards {
		unreadable[shard] = bad[i]
	}
	return slices.Concat(parts...), unreadable, nil
}

// Repair puts objects that Verify finds missing or altered, and deletes unknown ones whose
// keys have the form of a site's. Other unknown objects stay. The site must be the one that
// the bucket holds. After an error, the verification is nil if nothing was changed.
func Repair(ctx context.Context, from Site, to Bucket, o Options) (v *Verification, err error) {
	begun := time.Now()
	if o, err = o.WithDefaults(); err != nil {
		return nil, err
	}
	report := NewReport()
	r, err := newRun(ctx, from, to, o, report)
	if err != nil {
		return nil, err
	}
	defer r.end()
	release, err := r.lock(r.soft)
	if err != nil {
		return nil, err
	}
	v, err = r.repair(r.soft)
	release()
	if v == nil {
		return nil, err
	}
	if report.Live = true; err == nil {
		report.Outcome = Published
	}
	report.end(begun)
	v.Repaired, v.Seconds = report, time.Since(begun).Seconds()
	return v, err
}

// repair compares with the site's manifest, which is complete, unlike perhaps the bucket's.
func (r *run) repair(ctx context.Context) (*Verification, error) {
	state, err := r.readState(ctx)
	if err != nil {
		return nil, err
	}
	if string(state.body) != string(r.source.body) {
		return nil, errors.New("the bucket holds another site: run followpress publish instead, which compares everything that differs")
	}
	if state.mark != nil {
		return nil, errors.New("a publish to the bucket was cut off, or its requests may still arrive: run followpress publish instead, which compares the site with a listing")
	}
	planner := &planner{source: r.source, bucket: r.bucket, live: state.root, concurrency: r.options.Concurrency}
	entries, err := r.source.entries(ctx)
	if err != nil {
		return nil, err
	}
	expected := append(entries, manifestEntries(&r.source.root)...)
	s, err := takeSurvey(ctx, r.bucket, r.source.root.Config, expected, func(storage.Info) bool { return true }, r.options.Progress)
	if err != nil {
		return nil, err
	}
	v := s.verification(&r.source.root, len(expected))
	plan := planner.planOf(s, []site.Config{r.source.root.Config})
	r.report.plan(plan, r.options.MaxChanged)
	transfer := &transfer{source: r.source, bucket: r.bucket, concurrency: r.options.Concurrency, bulk: r.options.Bulk,
		report: r.report, progress: r.options.Progress}
	if err := transfer.put(ctx, plan); err != nil {
		return v, err
	}
	return v, r.durably(ctx, func() error { return transfer.deleteKeys(ctx, plan.deletes) })
}

// Left is the number of unknown objects after a repair.
func (v *Verification) Left() int {
	if v.Repaired == nil {
		return v.Unknown.Count
	}
	return v.Unknown.Count - v.Repaired.Done.Deleted
}

// String formats the verification for a person.
func (v *Verification) String() string {
	var b strings.Builder
	if v.AsOf == "" {
		return "" // it failed early
	}
	fmt.Fprintf(&b, "manifest  %10d objects, as of %s\nlisted    %10d objects\n", v.Objects, v.AsOf, v.Listed)
	for _, kind := range []struct {
		name  string
		found Found
	}{{"missing", v.Missing}, {"altered", v.Altered}, {"unknown", v.Unknown}, {"refreshed", v.Refreshed}} {
		fmt.Fprintf(&b, "%-9s %10d\n", kind.name, kind.found.Count)
		for i, key := range kind.found.Keys {
			if i == 10 {
				fmt.Fprintf(&b, "          … and %d more\n", kind.found.Count-i)
				break
			}
			fmt.Fprintf(&b, "          %s\n", key)
		}
	}
	if v.Marked {
		b.WriteString("a publish is running or was cut off, or its requests may still arrive: publish again to compare with a listing\n")
	}
	if r := v.Repaired; r != nil {
		fmt.Fprintf(&b, "repaired  %10d objects put, %d manifest shards; %d deleted, %d unknown objects of others left\n",
			r.Done.Put, r.Done.Manifests, r.Done.Deleted, v.Left())
	}
	return b.String()
}

// Note sets what only the caller knows, like Report.Note.
func (v *Verification) Note(dest string, err error) {
	v.Dest = dest
	if err != nil {
		v.Error = err.Error()
	}
}

// Markdown formats the verification as a table, for the summary of a CI job.
func (v *Verification) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s: %s\n\n", v.Dest, map[bool]string{true: "verified", false: "verified, with errors"}[v.Error == ""])
	fmt.Fprintf(&b, "| objects | missing | altered | unknown | refreshed |\n|---:|---:|---:|---:|---:|\n| %d | %d | %d | %d | %d |\n\n",
		v.Objects, v.Missing.Count, v.Altered.Count, v.Unknown.Count, v.Refreshed.Count)
	if r := v.Repaired; r != nil {
		fmt.Fprintf(&b, "repaired: %d objects and %d manifest shards put, %d deleted\n\n", r.Done.Put, r.Done.Manifests, r.Done.Deleted)
	}
	if v.Error != "" {
		fmt.Fprintf(&b, "error: %s\n\n", strings.ReplaceAll(v.Error, "\n", " "))
	}
	return b.String()
}
