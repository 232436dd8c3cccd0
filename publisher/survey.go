package publisher

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A survey compares what is in the bucket with what should be there, by listing.
type survey struct {
	missing   []site.Entry
	altered   []site.Entry // other bytes
	refreshed []site.Entry // other bytes, because a refresh replaced them
	stale     []site.Entry // right bytes, perhaps other headers
	unknown   []site.Key   // nothing of the site, nor of what is kept beside it
	marked    bool         // a publish is under way or was cut off
	listed    int
}

// anySize is the size of an entry that only has a digest.
const anySize = -1

// takeSurvey lists the bucket. upToDate says whether an object with the right bytes
// also has the right headers.
func takeSurvey(ctx context.Context, bucket *retryingBucket, c site.Config, expected []site.Entry, upToDate func(storage.Info) bool, progress Progress) (*survey, error) {
	index := make(map[site.Key]int, len(expected))
	for i, e := range expected {
		index[e.Key] = i
	}
	var s survey
	seen := make([]bool, len(expected))
	other := map[site.Key]altered{} // that a refresh may have put
	note := func(i int, info storage.Info, right bool) {
		switch {
		case !right:
			s.altered = append(s.altered, expected[i])
			if _, refreshable := c.RefreshOf(info.Key); refreshable && upToDate(info) {
				other[info.Key] = altered{info, expected[i].MD5}
			}
		case !upToDate(info):
			s.stale = append(s.stale, expected[i])
		}
	}
	var unsure []digestCheck
	progress.Stage("list", int64(len(expected)))
	err := bucket.list(ctx, "", func(info storage.Info) error {
		s.listed++
		progress.AddBytes(1, 0)
		i, ok := index[info.Key]
		switch {
		case !ok:
			s.addUnexpected(info.Key)
		case seen[i]: // listed twice
		case bucket.needsDigest(expected[i], info):
			seen[i] = true
			unsure = append(unsure, digestCheck{entry: i, info: info})
		default:
			seen[i] = true
			note(i, info, isSame(expected[i], info))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := bucket.compareDigests(ctx, expected, unsure, progress); err != nil {
		return nil, err
	}
	for _, q := range unsure {
		if q.result == absent {
			seen[q.entry] = false
			continue
		}
		note(q.entry, q.info, q.result == equal)
	}
	for i, e := range expected {
		if !seen[i] {
			s.missing = append(s.missing, e)
		}
	}
	refreshed, err := findRefreshed(ctx, bucket, c, other)
	if err != nil {
		return nil, err
	}
	s.altered = slices.DeleteFunc(s.altered, func(e site.Entry) bool {
		if refreshed[e.Key] {
			s.refreshed = append(s.refreshed, e)
		}
		return refreshed[e.Key]
	})
	return &s, nil
}

// An altered object has other bytes than it should.
type altered struct {
	found storage.Info
	want  site.MD5
}

// refreshedOf says which of the objects that were listed have bytes that a refresh of the
// right ones has put, by what refreshes have kept. Refreshes keep first and put afterwards,
// so what is read now knows of all that was listed.
func findRefreshed(ctx context.Context, bucket *retryingBucket, c site.Config, listed map[site.Key]altered) (map[site.Key]bool, error) {
	refreshed := map[site.Key]bool{}
	if len(listed) == 0 {
		return refreshed, nil
	}
	kept := map[site.Key]bool{}
	err := bucket.list(ctx, site.RefreshPrefix, func(info storage.Info) error {
		kept[info.Key] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxPlanners)
	for _, key := range slices.Sorted(maps.Keys(listed)) {
		object := listed[key]
		refresh, _ := c.RefreshOf(key)
		if !kept[refresh] {
			continue
		}
		group.Go(func() error {
			body, _, err := bucket.read(ctx, refresh)
			if errors.Is(err, storage.ErrNotFound) {
				return nil
			} else if err != nil {
				return err
			}
			stored, err := site.Stored(body)
			if err != nil {
				return nil // it explains nothing; generate says what is wrong with it
			}
			var possible []site.MD5
			for _, r := range stored {
				if r.From == object.want {
					possible = append(possible, r.MD5)
				}
			}
			found, err := bucket.hasDigest(ctx, object.found, possible)
			mu.Lock()
			defer mu.Unlock()
			refreshed[key] = found
			return err
		})
	}
	return refreshed, group.Wait()
}

func isSame(want site.Entry, found storage.Info) bool {
	return found.ETag == want.MD5.String() && (want.Size == anySize || want.Size == found.Size)
}

func (s *survey) addUnexpected(key site.Key) {
	switch {
	case key == site.RootKey, key == site.LockKey:
	case key == site.MarkKey:
		s.marked = true
	case strings.HasPrefix(string(key), string(site.RefreshPrefix)):
	default:
		s.unknown = append(s.unknown, key)
	}
}

// manifestEntries are the shards of the manifest as a root names them.
func manifestEntries(root *site.Root) []site.Entry {
	entries := make([]site.Entry, 0, len(root.Manifest))
	for shard, digest := range root.Manifest {
		entries = append(entries, site.Entry{Key: site.ManifestKey(shard), Size: anySize, MD5: digest})
	}
	slices.SortFunc(entries, func(a, b site.Entry) int { return cmp.Compare(a.Key, b.Key) })
	return entries
}

// entries reads the whole manifest of the site.
func (s *source) entries(ctx context.Context) ([]site.Entry, error) {
	shards := site.HashPrefixes(s.root.ShardDigits)
	parts := make([][]site.Entry, len(shards))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxPlanners)
	for i, shard := range shards {
		group.Go(func() (err error) {
			parts[i], err = s.shard(ctx, shard)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.Concat(parts...), nil
}

// surveyPlan makes a plan of what the listing shows: what a run that was cut off had
// put need not be put again, and what it left that belongs to no site goes.
func (p *planner) surveyPlan(ctx context.Context, found *mark, progress Progress) (*plan, error) {
	if found == nil {
		found = &mark{}
	}
	next := &p.source.root
	entries, err := p.source.entries(ctx)
	if err != nil {
		return nil, err
	}
	expected := append(entries, manifestEntries(next)...)
	s, err := takeSurvey(ctx, p.bucket, next.Config, expected, func(info storage.Info) bool {
		route, ok := next.Config.RouteOf(info.Key)
		if !ok {
			return false
		}
		rules, known := found.rulesAt(info.Modified, route.Pattern, p.live)
		return known && rules == next.HeaderRules[route.Pattern]
	}, progress)
	if err != nil {
		return nil, err
	}
	return p.planOf(s, found.configs(p.live, next)), nil
}

// planOf is what a survey asks for. Of what is unknown only objects go that a site
// with one of the configurations may have.
func (p *planner) planOf(s *survey, configs []site.Config) *plan {
	next := &p.source.root
	result := &plan{manifestsLast: p.live != nil}
	shards := map[string]*shardPlan{}
	for _, group := range []struct {
		entries []site.Entry
		reason  site.Reason
	}{{s.missing, site.Added}, {s.altered, site.Altered}, {s.stale, site.Altered}} {
		for _, e := range group.entries {
			result.addTo(shards, next, site.Change{Entry: e, Reason: group.reason})
		}
	}
	for _, shard := range site.HashPrefixes(next.ShardDigits) {
		if s := shards[shard]; s != nil {
			result.shards = append(result.shards, *s)
		}
	}
	for _, key := range s.unknown {
		if isSiteKey(key, configs) {
			result.deletes = append(result.deletes, key)
		}
	}
	return result
}

// addTo puts a change into the plan of its shard; a manifest shard is not counted as
// an object.
func (p *plan) addTo(shards map[string]*shardPlan, next *site.Root, change site.Change) {
	name, isManifest := strings.CutPrefix(string(change.Key), string(site.ManifestKey("")))
	if !isManifest {
		name = site.ManifestShard(change.Key, next.ShardDigits)
	}
	s := shards[name]
	if s == nil {
		s = &shardPlan{shard: name}
		shards[name] = s
	}
	if isManifest {
		s.manifest = true
		return
	}
	p.add(next.Config, s, change)
}
