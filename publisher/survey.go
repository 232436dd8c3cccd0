package publisher

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A survey compares a listing of the bucket with the expected objects.
type survey struct {
	missing   []site.Entry
	altered   []site.Entry // with other bytes
	refreshed []site.Entry // with other bytes that a refresh has put
	stale     []site.Entry // with the right bytes, but perhaps other headers
	unknown   []site.Key   // not expected, nor one of the objects beside the site
	marked    bool         // whether there is a mark
	listed    int          // number of listed objects
}

// anySize is the size of an entry of which only the digest is known.
const anySize = -1

// takeSurvey lists the bucket. upToDate reports whether an object also has the right headers.
func takeSurvey(ctx context.Context, bucket *retryingBucket, c site.Config, expected []site.Entry, upToDate func(storage.Info) bool, progress Progress) (*survey, error) {
	index := make(map[site.Key]int, len(expected))
	for i, e := range expected {
		index[e.Key] = i
	}
	var s survey
	seen := make([]bool, len(expected))
	mayBeRefreshed := map[site.Key]altered{}
	classify := func(i int, info storage.Info, right bool) {
		switch {
		case !right:
			s.altered = append(s.altered, expected[i])
			if len(c.RefreshesOf(info.Key)) > 0 && upToDate(info) {
				mayBeRefreshed[info.Key] = altered{info, expected[i].MD5}
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
		case seen[i]: // a listing may repeat an object
		case bucket.needsDigest(expected[i], info):
			seen[i] = true
			unsure = append(unsure, digestCheck{entry: i, info: info})
		default:
			seen[i] = true
			classify(i, info, isSame(expected[i], info))
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
		classify(q.entry, q.info, q.result == equal)
	}
	for i, e := range expected {
		if !seen[i] {
			s.missing = append(s.missing, e)
		}
	}
	refreshed, err := findRefreshed(ctx, bucket, c, mayBeRefreshed)
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

// An altered object has other bytes than the manifest says.
type altered struct {
	found storage.Info
	want  site.MD5
}

// findRefreshed reports which altered objects have bytes that a refresh has put, according to the
// data that refreshes store below _refresh/. A refresh stores its data before it puts the
// object, so the data explains every object that was listed before.
func findRefreshed(ctx context.Context, bucket *retryingBucket, c site.Config, listed map[site.Key]altered) (map[site.Key]bool, error) {
	refreshed := map[site.Key]bool{}
	if len(listed) == 0 {
		return refreshed, nil
	}
	stored := map[site.Key]bool{}
	err := bucket.list(ctx, site.RefreshPrefix, func(info storage.Info) error {
		stored[info.Key] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	keys := slices.Sorted(maps.Keys(listed))
	return refreshed, parallel(ctx, maxPlanners, len(keys), func(ctx context.Context, i int) error {
		object := listed[keys[i]]
		var possible []site.MD5
		for _, refresh := range c.RefreshesOf(keys[i]) {
			if !stored[refresh] {
				continue
			}
			body, _, err := bucket.read(ctx, refresh)
			if errors.Is(err, storage.ErrNotFound) {
				continue
			} else if err != nil {
				return err
			}
			refreshes, err := site.Stored(body)
			if err != nil {
				continue // the object counts as altered; generate reports this error
			}
			for _, r := range refreshes {
				if r.From == object.want {
					possible = append(possible, r.MD5)
				}
			}
		}
		if len(possible) == 0 {
			return nil
		}
		found, err := bucket.hasDigest(ctx, object.found, possible)
		mu.Lock()
		defer mu.Unlock()
		refreshed[keys[i]] = found
		return err
	})
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

// manifestEntries returns the manifest shards that a root names.
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
	err := parallel(ctx, maxPlanners, len(shards), func(ctx context.Context, i int) (err error) {
		parts[i], err = s.shard(ctx, shards[i])
		return err
	})
	return slices.Concat(parts...), err
}

// surveyPlan makes a plan from a listing. Objects that a run has put before it was cut off need
// not be put again; leftovers that do not belong to the site are deleted.
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

// planOf makes a plan from a survey. Of the unknown objects it deletes those whose keys have the
// form of a site with one of the configurations.
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

// addTo files a change under its shard. A manifest shard does not count as an object.
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
