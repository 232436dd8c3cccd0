package publisher

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/site/shards"
)

// A simulatedSite is one of the sites that simulated publishers publish.
type simulatedSite struct {
	memorySite
	root    site.Root
	entries map[site.Key]site.MD5 // all objects, including the shards of the manifest
	answers []site.Key            // keys that readers request
	older   bool                  // made by an older version, with other headers

	snapshot afero.Fs // source of the site
}

// headers returns the headers of an object of the site.
func (s simulatedSite) headers(key site.Key) (contentType, cacheControl string) {
	route, ok := s.root.Config.RouteOf(key)
	switch {
	case !ok:
		return "", ""
	case s.older:
		return route.ContentType, olderHeader(key, route.CacheControl)
	}
	return route.ContentType, route.CacheControl
}

// olderHeader returns the header that an older version put.
func olderHeader(key site.Key, cacheControl string) string {
	if key == site.RootKey || strings.Contains(string(key), "/lists/") {
		return "older, " + cacheControl
	}
	return cacheControl
}

// olderVersion returns the site as made by an older version.
func (s simulatedSite) olderVersion() simulatedSite {
	s.older = true
	s.memorySite, s.entries = maps.Clone(s.memorySite), maps.Clone(s.entries)
	s.root.HeaderRules = maps.Clone(s.root.HeaderRules)
	for key := range s.entries {
		if route, ok := s.root.Config.RouteOf(key); ok {
			if older := olderHeader(key, route.CacheControl); older != route.CacheControl {
				s.root.HeaderRules[route.Pattern] = site.Sum([]byte(older))
			}
		}
	}
	body, err := s.root.Encode()
	if err != nil {
		panic(err)
	}
	s.memorySite[site.RootKey], s.entries[site.RootKey] = string(body), site.Sum(body)
	return s
}

// longList has a long search, in two shards or three.
const longList = "4"

var longSearch = site.SearchShardKey(longList, 0)

// lists are the lists that every site has.
var lists = []string{"1", "2", "3"}

// simulatedSites are rendered from snapshots that differ in what changes from night to night.
var simulatedSites = sync.OnceValue(func() []simulatedSite { return sitesOf(site.APISpec) })

// wholeSites are the same sites with the whole API, in which a refresh replaces several objects.
var wholeSites = sync.OnceValue(func() []simulatedSite { return sitesOf(site.APIEFP) })

// wholeAPI is the first schedule with sites of the whole API.
const wholeAPI = 1 << 32

// sites returns the sites of a schedule. With two versions, the second half are of the older one.
func (w *world) sites() []simulatedSite {
	sites := simulatedSites()
	if w.seed >= wholeAPI {
		sites = wholeSites()
	}
	if !w.versions {
		return sites[:len(sites)/2]
	}
	return sites
}

func sitesOf(api string) (sites []simulatedSite) {
	for i, change := range []func(snapshot map[string]string, o *generator.Options){
		func(map[string]string, *generator.Options) {},
		func(s map[string]string, _ *generator.Options) { // a list less
			s["lists"] = strings.Replace(s["lists"], "\n"+listRow(4), "", 1)
		},
		func(s map[string]string, _ *generator.Options) { // a list more, others follow
			s["lists"] += "\n" + listRow(5)
			if api == site.APISpec {
				s["records"] += follows(site.SearchShardSize)
			}
			s["records"] += "\n" + recordRow(2, 6) + "\n" + recordRow(5, 1)
		},
		func(s map[string]string, _ *generator.Options) { // another name
			s["accounts"] = strings.ReplaceAll(s["accounts"], "two.eth", "second.eth")
		},
		func(_ map[string]string, o *generator.Options) { o.Config.BasePath = "api/v2" },
	} {
		snapshot := map[string]string{"meta": fmt.Sprintf(`{"format":1,"as_of":"1999-12-%02dT00:00:00Z"}`, i+1)}
		for l := range 4 {
			snapshot["lists"] += "\n" + listRow(l+1)
		}
		for a := range 6 {
			snapshot["accounts"] += "\n" + accountRow(a+1)
		}
		for _, follow := range [][2]int{{1, 2}, {1, 3}, {1, 4}, {2, 1}, {2, 3}, {3, 1}, {4, 5}} {
			snapshot["records"] += "\n" + recordRow(follow[0], follow[1])
		}
		if api == site.APISpec { // the whole API has too many objects for each account
			snapshot["records"] += follows(0)
		}
		o := generator.Options{Config: site.Config{LeaderboardMax: 10, API: api}}
		change(snapshot, &o)
		sites = append(sites, rendered(snapshot, o))
	}
	for _, s := range slices.Clone(sites) {
		sites = append(sites, s.olderVersion())
	}
	return sites
}

func address(n int) string { return fmt.Sprintf("0x%040x", n) }

func listRow(n int) string { return fmt.Sprintf(`{"token_id":"%d","owner":%q}`, n, address(n)) }

func accountRow(n int) string {
	name := []string{"one", "two", "three", "four", "five", "six"}[n-1]
	return fmt.Sprintf(`{"address":%q,"primary_list":"%d","ens":{"name":"%s.eth","avatar":"a","fresh":1}}`, address(n), n, name)
}

// follows returns records of the long list for a search shard, and a few more.
func follows(after int) string {
	var b strings.Builder
	for i := range site.SearchShardSize {
		b.WriteString("\n" + recordRow(4, 10+after+i))
	}
	return b.String()
}

func recordRow(list, follows int) string {
	return fmt.Sprintf(`{"token_id":"%d","version":1,"record_type":"address","data":%q,"tags":[]}`, list, address(follows))
}

func rendered(snapshot map[string]string, o generator.Options) simulatedSite {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	files := afero.NewMemMapFs()
	for table, rows := range snapshot {
		name := table + ".ndjson"
		if table == "meta" {
			name = "meta.json"
		}
		must(afero.WriteFile(files, name, []byte(strings.TrimSpace(rows)), 0o644))
	}
	for _, table := range []string{"events", "badges"} {
		must(afero.WriteFile(files, table+".ndjson", nil, 0o644))
	}
	out, _, err := generator.ToMemory(context.Background(), files, o)
	must(err)
	objects, err := memsite.Read(out)
	must(err)
	s := simulatedSite{memorySite: objects, entries: map[site.Key]site.MD5{}, snapshot: files}
	for key, body := range objects {
		s.entries[key] = site.Sum([]byte(body))
		if key != site.RootKey && !strings.HasPrefix(string(key), string(site.ManifestKey(""))) {
			s.answers = append(s.answers, key)
		}
	}
	slices.Sort(s.answers)
	s.root, err = site.ParseRoot([]byte(objects[site.RootKey]))
	must(err)
	return s
}

// A follower reads like a client, at any moment: from the root to the manifest, the leaderboards
// and the buckets of users, and from these to the objects that they name.
type follower struct{ leads map[site.MD5][]site.Key }

var (
	addresses    = regexp.MustCompile(`"address":"(0x[0-9a-f]{40})"`)
	tokens       = regexp.MustCompile(`:"([0-9]+)"`)
	shardsMember = regexp.MustCompile(`"shards":([0-9]+)`)
)

// newFollower computes which objects the objects of all sites refer to.
var newFollower = sync.OnceValue(func() *follower {
	f := &follower{map[site.MD5][]site.Key{}}
	for _, s := range slices.Concat(simulatedSites(), wholeSites()) {
		for _, key := range slices.Sorted(maps.Keys(s.memorySite)) {
			sum := s.entries[key]
			// An object common to two sites leads only to what both have.
			leads := slices.DeleteFunc(s.leads(key), func(to site.Key) bool { return s.memorySite[to] == "" })
			if before, ok := f.leads[sum]; ok {
				leads = slices.DeleteFunc(leads, func(to site.Key) bool { return !slices.Contains(before, to) })
			}
			f.leads[sum] = leads
		}
	}
	return f
})

// leads returns the keys that an object of a site refers to.
func (s simulatedSite) leads(key site.Key) (to []site.Key) {
	route, ok := s.root.Config.RouteOf(key)
	if !ok {
		return nil
	}
	body := []byte(s.memorySite[key])
	switch route.ID {
	case routes.Root:
		for _, board := range s.root.Config.Boards() {
			to = append(to, s.root.Config.LeaderboardKey(board))
		}
		for _, bucket := range site.HashPrefixes(s.root.BucketDigits) {
			to = append(to, site.UserBucketKey(bucket))
		}
	case routes.Leaderboard, routes.LeaderboardLimit:
		for _, match := range addresses.FindAllSubmatch(body, -1) {
			to = append(to, s.root.Config.UserKey(string(match[1])))
		}
	case routes.UserBucket:
		for _, match := range tokens.FindAllSubmatch(body, -1) {
			to = append(to, s.root.Config.ListKey(string(match[1]), site.SearchFollowing), site.SearchShardKey(string(match[1]), 0))
		}
	case routes.SearchShard:
		match := shardsMember.FindSubmatch(body)
		token, n, _ := site.ParseSearchShardKey(key)
		if count, err := strconv.Atoi(string(match[1])); err == nil && n == 0 {
			for i := range count {
				to = append(to, site.SearchShardKey(token, i))
			}
		}
	}
	return to
}

// look follows the root after an object was put or deleted.
func (f *follower) look(w *world, r *arrival, key site.Key, o *stored) {
	if w.late {
		return // late requests may do any harm that is detected
	}
	f.lookAtManifest(w, r, key, o)
	if o != nil && len(f.leads[o.sum]) == 0 {
		return
	}
	root, ok := w.objects[site.RootKey]
	if !ok {
		return
	}
	f.follow(w, r, site.RootKey, root)
	for _, lead := range f.leads[root.sum] {
		if o, ok := w.objects[lead]; ok {
			f.follow(w, r, lead, o)
			if first, ok := w.objects[longSearch]; ok && slices.Contains(f.leads[o.sum], longSearch) {
				f.follow(w, r, longSearch, first)
			}
		}
	}
}

// lookAtManifest checks three promises: manifest objects name existing objects; a root is put after
// its whole manifest; no object in the root's manifest is deleted. A reader trusts only the root.
func (f *follower) lookAtManifest(w *world, r *arrival, key site.Key, o *stored) {
	there := func(from site.Key, entries []site.Entry) {
		if _, ok := w.objects[site.RootKey]; !ok {
			return // no reader gets there
		}
		for _, e := range entries {
			if _, ok := w.objects[e.Key]; !ok && !w.damaged[e.Key] {
				w.fail("%s: after %s, %s leads to %s, which is not there", r.name, r.what, from, e.Key)
			}
		}
	}
	name, isManifest := strings.CutPrefix(string(key), string(site.ManifestKey("")))
	switch {
	case o == nil && !isManifest && key != site.RootKey:
		s, ok := w.rooted()
		if _, names := s.entries[key]; ok && names && !w.damaged[key] && w.manifestError(s, site.ManifestShard(key, s.root.ShardDigits)) == nil {
			w.fail("%s: after %s, the manifest leads to %s, which is not there", r.name, r.what, key)
		}
	case o == nil && isManifest, o != nil && key == site.RootKey:
		s, ok := w.rooted()
		if !ok {
			return
		}
		for _, shard := range site.HashPrefixes(s.root.ShardDigits) {
			if err := w.manifestError(s, shard); err != nil && !w.damaged[site.ManifestKey(shard)] && !w.harmed[site.ManifestKey(shard)] {
				w.fail("%s: after %s, the root leads to no manifest: %v", r.name, r.what, err)
			}
		}
	case o != nil && isManifest:
		if first, ok := strings.CutPrefix(name, "delta/"); ok {
			delta, err := shards.ParseDelta(first, o.body)
			if err != nil {
				w.fail("%s: after %s: %v", r.name, r.what, err)
				return
			}
			for _, p := range delta.Shards {
				there(key, p.Objects)
			}
		} else if m, err := shards.Parse(name, o.body); err == nil {
			there(key, m.Objects)
		}
	}
}

// rooted returns the site whose root is in the bucket.
func (w *world) rooted() (s simulatedSite, ok bool) {
	root, ok := w.objects[site.RootKey]
	if !ok {
		return simulatedSite{}, false
	}
	for _, s := range w.sites() {
		if s.entries[site.RootKey] == root.sum {
			return s, true
		}
	}
	return simulatedSite{}, false
}

// manifestError returns why a reader cannot trust the stored shard of a site's manifest, or nil.
func (w *world) manifestError(s simulatedSite, shard string) error {
	manifest, err := shards.Open(context.Background(), &s.root, func(_ context.Context, key site.Key) ([]byte, error) {
		o, ok := w.objects[key]
		if !ok {
			return nil, site.ErrNotFound
		}
		return o.body, nil
	})
	if err != nil {
		return err
	}
	_, err = manifest.Shard(context.Background(), shard)
	return err
}

func (f *follower) follow(w *world, r *arrival, from site.Key, o stored) {
	for _, to := range f.leads[o.sum] {
		if _, ok := w.objects[to]; !ok && !w.damaged[to] {
			w.fail("%s: after %s, %s leads to %s, which is not there", r.name, r.what, from, to)
		}
	}
}
