package pipeline

import (
	"maps"
	"slices"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/followpress/followpress/beam/internal/dofn"
)

// Statistics are data, not metrics of the engine: the root and the report depend on them, so they
// must be exact even if bundles are repeated. Each stage sums its counts by bundle, under a name.

// Names of statistics used outside the report. Names ending in a slash are prefixes.
const (
	statAccounts  = "accounts"  // addresses anywhere in the graph
	statAddresses = "addresses" // addresses with a row or a list, or held by a list
	statLists     = "lists"
	statPrimaries = "primary_lists"
	statRecords   = "records"
	statFollows   = "follows"
	statNames     = "names"
	statObjects   = "objects"    // to be rendered by stages
	statRanked    = "ranked"     // accounts with a nonzero count
	statFollowed  = "followed"   // accounts with a follower
	statFollowers = "followers/" // accounts by their number of followers
	statFollowing = "following/"
	statTag       = "tag/"    // records of primary lists by tag
	statGrowth    = "growth/" // follows and unfollows by primary lists, by day and code
	statMonth     = "month/"  // records of primary lists, by beginning of the month in which they were added
)

// A tally counts by name within a bundle.
type tally map[string]int64

func (t *tally) add(name string, n int64) {
	if n == 0 {
		return
	}
	if *t == nil {
		*t = tally{}
	}
	(*t)[name] += n
}

// flush emits the counts and resets them.
func (t *tally) flush(emit func(string, int64)) {
	for _, name := range slices.Sorted(maps.Keys(*t)) {
		emit(name, (*t)[name])
	}
	clear(*t)
}

func init() {
	register.Emitter2[string, []byte]()
	register.Emitter2[string, int64]()
	register.Emitter1[[]byte]()
	register.Iter1[[]byte]()
	register.Iter2[string, int64]()
	dofn.Register3x0(&tagFn{})
	dofn.Register3x0(&sameFn{})
	dofn.Register3x0(&withoutTagsFn{})
	register.Function2x1(addInt64)
}

func addInt64(a, b int64) int64 { return a + b }

// sumStats sums statistics. Those of tags, whose number is unbounded, are only in all.
func sumStats(s beam.Scope, some ...beam.PCollection) (all, withoutTags beam.PCollection) {
	s = s.Scope("statistics")
	all = beam.CombinePerKey(s, addInt64, beam.Flatten(s, some...))
	return all, beam.ParDo(s, &withoutTagsFn{}, all)
}

// A withoutTagsFn selects the statistics that every worker needs at once, all except those for
// topTagsFn.
type withoutTagsFn struct{}

func (*withoutTagsFn) ProcessElement(name string, n int64, emit func(string, int64)) {
	if !strings.HasPrefix(name, statTag) {
		emit(name, n)
	}
}

// A tagFn puts a byte before each value, so that values of several kinds can be grouped by key
// together: beam.CoGroupByKey would read all of them once for each kind.
type tagFn struct{ Tag byte }

func (f *tagFn) ProcessElement(key string, value []byte, emit func(string, []byte)) {
	emit(key, append(append(make([]byte, 0, 1+len(value)), f.Tag), value...))
}

func tagged(s beam.Scope, tag byte, values beam.PCollection) beam.PCollection {
	return beam.ParDo(s, &tagFn{tag}, values)
}

// grouped groups values of all kinds by key.
func grouped(s beam.Scope, kinds ...beam.PCollection) beam.PCollection {
	return beam.GroupByKey(s, beam.Flatten(s, kinds...))
}

// A sameFn passes values on. Flink's runner fails if a collection that goes into a Flatten is also
// used elsewhere ("should have exactly one producing PTransformNode", Beam 2.62).
type sameFn struct{}

func (*sameFn) ProcessElement(key string, value []byte, emit func(string, []byte)) { emit(key, value) }
