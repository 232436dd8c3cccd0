package publisher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// maxKeysListed bounds the keys of each kind that a verification names; all are counted.
const maxKeysListed = 1000

// A Verification says in what a bucket differs from its manifest.
type Verification struct {
	Dest      string  `json:"dest"`            // set by Note
	Error     string  `json:"error,omitempty"` // set by Note
	AsOf      string  `json:"as_of"`
	Objects   int     `json:"objects"` // that the manifest names, its own shards included
	Listed    int     `json:"listed"`
	Missing   Found   `json:"missing"`
	Altered   Found   `json:"altered"`   // other bytes than the manifest says
	Refreshed Found   `json:"refreshed"` // other bytes, brought by a refresh: as it should be
	Unknown   Found   `json:"unknown"`   // nobody knows them
	Marked    bool    `json:"marked"`    // a publish is under way or was cut off
	Repaired  *Report `json:"repaired,omitempty"`
	Seconds   float64 `json:"seconds"`
}

// Found are keys of one kind.
type Found struct {
	Count int        `json:"count"`
	Keys  []site.Key `json:"keys"` // the first of them, in order
}

func (f *Found) set(keys []site.Key) {
	slices.Sort(keys)
	f.Count = len(keys)
	f.Keys = slices.Clone(keys[:min(len(keys), maxKeysListed)])
}

// Good reports whether the bucket is what its manifest says.
func (v *Verification) Good() bool {
	return v.Missing.Count == 0 && v.Altered.Count == 0 && v.Unknown.Count == 0
}

// Verify compares a bucket with its own manifest, by listing: sizes and ETags. It
// writes nothing.
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
		return nil, fmt.Errorf("there is no %s in the bucket: publish a site first, or check --dest", site.RootKey)
	} else if err != nil {
		return nil, err
	}
	root, err := site.ParseRoot(body)
	if err != nil {
		return nil, fmt.Errorf("the bucket: %w: publish the site to put it right", err)
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
	// What a shard names that cannot be read is not known; it is no stranger either.
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

// readManifest reads all shards of the bucket's manifest. Those that are missing or
// altered are unreadable: the listing will name them.
func readManifest(ctx context.Context, bucket *retryingBucket, root *site.Root, o Options) (entries []site.Entry, unreadable map[string]bool, err error) {
	shards := site.HashPrefixes(root.ShardDigits)
	parts := make([][]site.Entry, len(shards))
	bad := make([]bool, len(shards))
	o.Progress.Stage("manifest", int64(len(shards)))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(min(o.Concurrency, maxPlanners))
	for i, shard := range shards {
		group.Go(func() error {
			part, err := readLiveShard(ctx, bucket, root, shard)
			if bad[i] = errors.Is(err, errInconsistent); err != nil && !bad[i] {
				return err
			}
			parts[i] = part
			o.Progress.AddBytes(1, 0)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	unreadable = map[string]bool{}
	for i, shard := range shards {
		unreadable[shard] = bad[i]
	}
	return slices.Concat(parts...), unreadable, nil
}

// Repair puts back what Verify finds missing or altered, from the site that the bucket
// should hold, and deletes what has the form of a site's object and is unknown. What
// belongs to somebody else it leaves alone. After an error the verification is not nil
// if anything may have been put back or deleted.
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

// repair looks with the site's manifest, which is whole, not with the bucket's.
func (r *run) repair(ctx context.Context) (*Verification, error) {
	state, err := r.readState(ctx)
	if err != nil {
		return nil, err
	}
	if string(state.body) != string(r.source.body) {
		return nil, errors.New("the bucket holds another site than this one: publish it instead, which compares everything that differs")
	}
	if state.mark != nil {
		return nil, errors.New("a publish to the bucket was cut off, or its requests may still arrive: publish the site instead, which looks at everything")
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

// Left is how many unknown objects a repair left alone.
func (v *Verification) Left() int {
	if v.Repaired == nil {
		return v.Unknown.Count
	}
	return v.Unknown.Count - v.Repaired.Done.Deleted
}

// String is the verification for a person.
func (v *Verification) String() string {
	var b strings.Builder
	if v.AsOf == "" {
		return "" // it came to nothing
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
		b.WriteString("a publish is under way or was cut off, or requests of one may still arrive: publish again, which looks at everything\n")
	}
	if r := v.Repaired; r != nil {
		fmt.Fprintf(&b, "repaired  %10d objects put, %d manifest shards; %d deleted, %d unknown ones left: they are none of a site's\n",
			r.Done.Put, r.Done.Manifests, r.Done.Deleted, v.Left())
	}
	return b.String()
}

// Note adds what only the caller knows, as Report.Note does.
func (v *Verification) Note(dest string, err error) {
	v.Dest = dest
	if err != nil {
		v.Error = err.Error()
	}
}

// Markdown is the verification as a table, for the summary of a CI job.
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
