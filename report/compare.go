package report

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/followpress/followpress/internal/inorder"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/site/shards"
)

// A Side is one of the sites to compare, with its name in messages.
type Side struct {
	Site Site
	Name string
}

// Compare compares two sites. It fails if their configurations make them incomparable, or if one of them is damaged;
// the error then names the object.
func Compare(ctx context.Context, from, to Side, o Options) (*Report, error) {
	begun := time.Now()
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	c, err := newComparison(ctx, from, to, o)
	if err != nil {
		return nil, err
	}
	if !c.report.Equal {
		if err := c.walk(ctx); err != nil {
			return nil, err
		}
	}
	if err := c.finish(ctx); err != nil {
		return nil, err
	}
	c.report.Elapsed = time.Since(begun)
	return c.report, nil
}

// A comparison is a run of Compare.
type comparison struct {
	Options
	from, to *source
	config   site.Config
	report   *Report
	memory   *semaphore.Weighted // bytes of the objects being compared

	kinds  map[routes.ID]*ObjectKind // used by one goroutine
	boards map[site.Key]site.Change  // largest leaderboards that changed; used by one goroutine

	mu       sync.Mutex // guards the results of object comparisons
	lists    *top[ListChange]
	accounts counter[site.Address]
	tags     counter[string] // keyed by the tag as JSON
	profiles profileCounter
}

// unknownKind stands for objects without a route in this version.
const unknownKind routes.ID = -1

func newComparison(ctx context.Context, from, to Side, o Options) (*comparison, error) {
	c := &comparison{
		Options: o, memory: semaphore.NewWeighted(o.Memory), kinds: map[routes.ID]*ObjectKind{}, boards: map[site.Key]site.Change{},
		lists: newTop(mostLists, byChange), accounts: newCounter[site.Address](o.limits.accounts), tags: newCounter[string](o.limits.tags),
		profiles: newProfileCounter(o.limits.profiles),
	}
	policy := retrying(o.Patience)
	var err error
	if c.from, err = open(ctx, from.Site, from.Name, policy); err != nil {
		return nil, err
	}
	if c.to, err = open(ctx, to.Site, to.Name, policy); err != nil {
		return nil, err
	}
	if err := checkComparable(c.from, c.to); err != nil {
		return nil, err
	}
	c.config = c.to.root.Config
	c.config.RanksEvery = max(c.config.RanksEvery, c.from.root.Config.RanksEvery)
	c.config.Explorer = c.config.Explorer || c.from.root.Config.Explorer // its objects are known even if they are gone
	c.config.Pages = c.config.Pages || c.from.root.Config.Pages
	c.report = &Report{
		Format: Format, Date: plain(o.Date.UTC().Format(dateFormat)), API: plain(apiOf(c.config)), Brand: brandOf(c.to.root.Config),
		From:     SiteSummary{plain(from.Name), plain(c.from.root.AsOf), c.from.root.Counts},
		To:       SiteSummary{plain(to.Name), plain(c.to.root.AsOf), c.to.root.Counts},
		Explorer: c.to.root.Config.Explorer,
		Equal:    c.from.root.ShardDigits == c.to.root.ShardDigits && maps.Equal(c.from.root.Manifest, c.to.root.Manifest),
	}
	return c, nil
}

// maxPlanners is the maximum number of manifest parts in memory.
const maxPlanners = 8

// walk compares the manifests part by part, as a publish does, and the objects that show what changed.
func (c *comparison) walk(ctx context.Context) error {
	live := shards.NewSplit(c.from.root.ShardDigits, c.from.shard)
	next := shards.NewSplit(c.to.root.ShardDigits, c.to.shard)
	parts := site.HashPrefixes(max(live.Digits(), next.Digits()))
	c.Progress.Stage("compare", int64(len(parts)))
	group, comparing := errgroup.WithContext(ctx)
	group.SetLimit(c.Concurrency)
	err := inorder.Each(comparing, maxPlanners, len(parts), func(ctx context.Context, i int) ([]site.Change, error) {
		if live.Digits() == next.Digits() && c.from.manifest.Digest(parts[i]) == c.to.manifest.Digest(parts[i]) {
			return nil, nil
		}
		before, err := live.Entries(ctx, parts[i])
		if err != nil {
			return nil, err
		}
		after, err := next.Entries(ctx, parts[i])
		if err != nil {
			return nil, err
		}
		return site.Diff(before, after), nil
	}, func(changes []site.Change) error {
		c.Progress.AddBytes(1, 0)
		for _, change := range changes {
			if compare := c.count(change); compare != nil {
				group.Go(func() error { return c.compare(comparing, change, compare) })
			}
		}
		return nil
	})
	if failed := group.Wait(); failed != nil && err == nil {
		err = failed
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// A comparer compares the two bodies of an object. A body is nil if that site lacks the object.
type comparer func(key site.Key, before, after []byte) error

// count counts a change by kind. It returns the comparer of the object's bodies, or nil if they need not be read.
func (c *comparison) count(change site.Change) comparer {
	id := unknownKind
	route, known := c.config.RouteOf(change.Key)
	if known {
		id = route.ID
	}
	kind := c.kinds[id]
	if kind == nil {
		kind = &ObjectKind{Kind: "other", Summary: "objects that this version does not know"}
		if known {
			kind.Kind, kind.Summary = plain(route.Pattern), plain(route.Summary)
		}
		c.kinds[id] = kind
	}
	switch change.Reason {
	case site.Added:
		kind.Added.add(change.Size)
	case site.Gone:
		kind.Removed.add(change.Size)
	default:
		kind.Altered.add(change.Size)
	}
	switch {
	case id == routes.Records:
		return c.compareRecords
	case id == c.profileRoute() && change.Reason == site.Altered && c.isOfAddress(change.Key):
		return c.compareDetails
	case id == routes.LeaderboardLimit && change.Key == site.LeaderboardLimitKey(boardOf(change.Key), c.config.LeaderboardMax):
		c.boards[change.Key] = change
	}
	return nil
}

// profileRoute returns the route of the objects with profiles of accounts.
func (c *comparison) profileRoute() routes.ID {
	if c.config.EFP() {
		return routes.UserDetails
	}
	return routes.Details
}

// isOfAddress reports whether details belong to an address. Details of names are copies.
func (c *comparison) isOfAddress(key site.Key) bool {
	if !c.config.EFP() {
		return true
	}
	user, _, _ := strings.Cut(strings.TrimPrefix(string(key), c.config.BasePath+"/users/"), "/")
	_, err := site.ParseAddress(user)
	return err == nil
}

// tokenOf returns the list of a key below /lists/. It copies the text, because the key aliases its shard.
func (c *comparison) tokenOf(key site.Key) string {
	tokenID, _, _ := strings.Cut(strings.TrimPrefix(string(key), c.config.BasePath+"/lists/"), "/")
	return strings.Clone(tokenID)
}

func (c *comparison) compare(ctx context.Context, change site.Change, compare comparer) error {
	before, after := change.Was, change.Entry
	switch change.Reason {
	case site.Added:
		before = site.Entry{}
	case site.Gone:
		before, after = change.Entry, site.Entry{}
	}
	need := min(before.Size+c.from.room(before.Key)+after.Size+c.to.room(after.Key), c.Memory)
	if before.Size > maxObject || after.Size > maxObject {
		need = 0 // not read
	}
	if err := c.memory.Acquire(ctx, need); err != nil {
		return err
	}
	defer c.memory.Release(need)
	was, err := readIf(ctx, c.from, before)
	if err != nil {
		return err
	}
	is, err := readIf(ctx, c.to, after)
	if err != nil {
		return err
	}
	return compare(change.Key, was, is)
}

// readIf reads the object of an entry, and returns nil for the zero Entry.
func readIf(ctx context.Context, s *source, e site.Entry) ([]byte, error) {
	if e.Key == "" {
		return nil, nil
	}
	return s.read(ctx, e)
}

func (c *comparison) finish(ctx context.Context) error {
	r := c.report
	r.Boards = []Board{}
	for _, board := range c.config.Boards() {
		if change, ok := c.boards[site.LeaderboardLimitKey(board, c.config.LeaderboardMax)]; ok {
			if err := c.compareBoard(ctx, board, change); err != nil {
				return err
			}
		}
	}
	r.Lists.Largest = c.lists.first
	r.Accounts = accountsOf(&c.accounts)
	r.Tags = tagsOf(&c.tags)
	r.Profiles = c.profiles.result()
	c.countManifest()
	r.Objects = []ObjectKind{}
	for _, id := range slices.Sorted(maps.Keys(c.kinds)) {
		if id != unknownKind {
			r.Objects = append(r.Objects, *c.kinds[id])
		}
	}
	if other := c.kinds[unknownKind]; other != nil {
		r.Objects = append(r.Objects, *other)
	}
	c.Progress.Stage("names", 0)
	if err := c.fillNames(ctx); err != nil {
		return err
	}
	r.Read = ReadSummary{
		Shards: int(c.from.shards.Load() + c.to.shards.Load()), Objects: int(c.from.objects.Load() + c.to.objects.Load()),
		Bytes: c.from.bytes.Load() + c.to.bytes.Load(), Refreshed: int(c.from.refreshed.Load() + c.to.refreshed.Load()),
	}
	return nil
}

// countManifest counts the manifest shards and indexes that differ. No manifest has their sizes.
func (c *comparison) countManifest() {
	kind := &ObjectKind{Kind: plain(site.RouteBy(routes.Manifest).Pattern), Summary: plain(site.RouteBy(routes.Manifest).Summary)}
	for _, name := range shards.Names(&c.to.root) {
		if !shards.Has(&c.from.root, name) {
			kind.Added.Objects++
		} else if c.from.digest(name) != c.to.digest(name) {
			kind.Altered.Objects++
		}
	}
	for _, name := range shards.Names(&c.from.root) {
		if !shards.Has(&c.to.root, name) {
			kind.Removed.Objects++
		}
	}
	if kind.Added.Objects+kind.Altered.Objects+kind.Removed.Objects > 0 {
		c.kinds[routes.Manifest] = kind
	}
}
