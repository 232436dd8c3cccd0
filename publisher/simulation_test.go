package publisher

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/followpress/followpress/site"
)

var (
	schedules = flag.Int("schedules", 100, "schedules that the simulation tries")
	firstSeed = flag.Uint64("seed", 0, "the first schedule of the simulation; with -schedules=1 it prints what happens in it")
)

// Publishers, a live process, refreshing fallbacks, a verifier, a repairer and readers share a
// bucket. Publishers are delayed, suspended, killed and interrupted. The network loses, delays and
// repeats requests. In any order of events:
//
//   - the bucket equals its manifest and its root, or a mark or a doubt warns that it may not, and
//     then the next publish makes it so;
//   - no object that a reader is referred to is missing;
//   - no process writes after another has begun to;
//   - refreshed data that a client got as an answer is never lost;
//   - a verification reports all damage, and nothing else;
//   - a reader of a signed bucket accepts only signed objects, and never gets an error about an
//     altered object, a missing note or a note of another root.
func TestSimulation(t *testing.T) {
	result := simulate(t, *firstSeed, *schedules)
	if *schedules == 1 {
		t.Log(result.trace)
	}
	result.report(t)
}

// The same holds for sites of the whole API.
func TestSimulationOfTheWholeAPI(t *testing.T) {
	simulate(t, wholeAPI, max(1, *schedules/4)).report(t)
}

// The seed alone decides a schedule, except for the order of log lines of one instant.
func TestSimulationRepeats(t *testing.T) {
	lines := func(trace string) []string {
		sorted := strings.Split(trace, "\n")
		slices.Sort(sorted)
		return sorted
	}
	for seed := range uint64(12) {
		_, trace := runSchedule(t, seed, true)
		_, again := runSchedule(t, seed, true)
		first, second := lines(trace), lines(again)
		for i := range max(len(first), len(second)) {
			if i == len(first) || i == len(second) || first[i] != second[i] {
				t.Fatalf("seed %d: got first\n%s\n\nthen\n%s", seed, strings.Join(first[max(0, i-3):min(i+3, len(first))], "\n"),
					strings.Join(second[max(0, i-3):min(i+3, len(second))], "\n"))
			}
		}
	}
}

// simulated is the summary of many schedules.
type simulated struct {
	schedules int
	states    int
	faults    faults
	failed    []uint64
	trace     string // only of a single schedule
	took      time.Duration
}

func (s *simulated) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d schedules, %d states of the bucket, %d schedules failed, in %s", s.schedules, s.states, len(s.failed), s.took.Round(time.Millisecond))
	for _, kind := range slices.Sorted(maps.Keys(s.faults)) {
		fmt.Fprintf(&b, "\n%12d %s", s.faults[kind], kind)
	}
	return b.String()
}

// report fails the test if schedules failed, with what happened in the first of them.
func (s *simulated) report(t *testing.T) {
	t.Helper()
	t.Log(s)
	for _, seed := range s.failed[:min(3, len(s.failed))] {
		broken, trace := runSchedule(t, seed, true)
		t.Errorf("schedule %d (repeat it with -run TestSimulation$ -seed %[1]d -schedules 1):\n%s\n\n%s", seed, strings.Join(broken.failed, "\n"), trace)
	}
	if n := len(s.failed); n > 3 {
		t.Errorf("%d schedules failed, such as %v", n, s.failed[:min(n, 20)])
	}
}

// simulate runs schedules on all cores; with -failfast until one fails.
func simulate(t *testing.T, first uint64, n int) *simulated {
	t.Helper()
	failfast := flag.Lookup("test.failfast").Value.String() == "true"
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // schedules produce much garbage and hold little
	begun := time.Now()
	sum := &simulated{faults: faults{}}
	var mu sync.Mutex
	var next atomic.Int64
	var found atomic.Bool
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= int64(n) || found.Load() {
					return
				}
				seed := first + uint64(i)
				w, trace := runSchedule(t, seed, n == 1)
				mu.Lock()
				sum.schedules++
				sum.states += w.writes
				for kind, n := range w.faults {
					sum.faults[kind] += n
				}
				if len(w.failed) > 0 {
					sum.failed = append(sum.failed, seed)
					found.Store(failfast || len(sum.failed) == 100)
				}
				sum.trace = trace
				if sum.took = time.Since(begun); sum.schedules%100_000 == 0 {
					t.Log(sum)
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	slices.Sort(sum.failed)
	sum.took = time.Since(begun)
	return sum
}

// runSchedule runs one schedule and checks its invariants.
func runSchedule(t *testing.T, seed uint64, traced bool) (w *world, trace string) {
	simulatedSites() // outside the bubble
	newFollower()
	synctest.Test(t, func(*testing.T) {
		w = newWorld(t, seed, traced)
		stopFallbacks := w.run()
		defer stopFallbacks()
		w.check(stopFallbacks)
	})
	if traced {
		trace = w.trace.String()
	}
	return w, trace
}

func newWorld(t testing.TB, seed uint64, traced bool) *world {
	w := &world{seed: seed, start: time.Now(), objects: map[site.Key]stored{}, reader: newFollower(), faults: faults{},
		put: map[putBy]bool{}, cache: map[site.Key]site.MD5{}, damaged: map[site.Key]bool{}, harmed: map[site.Key]bool{}, acked: map[string]int64{}, kept: map[string]int64{}}
	if traced {
		w.trace = &strings.Builder{}
	}
	if kind := locking(w.draw("locks") % 20); kind <= ignored {
		w.locks = kind
	}
	if w.locks != conditional {
		w.faults[faultUnlocked]++
	}
	if w.skew("answers") != 0 {
		w.faults[faultSkewed]++
	}
	if w.encrypted = w.chance(200, "encrypted"); w.encrypted {
		w.faults[faultEncrypted]++
	}
	if w.versions = w.chance(250, "versions"); w.versions {
		w.faults[faultVersions]++
	}
	if w.chance(400, "signed") {
		w.faults[faultSigned]++
		w.signatures = newSignatures(t)
	}
	if first := w.site("first"); !w.chance(150, "empty") {
		for key, body := range first.memorySite {
			o := stored{body: []byte(body), sum: first.entries[key], at: w.start}
			o.contentType, o.cacheControl = first.headers(key)
			w.objects[key], w.cache[key] = o, o.sum
		}
		if w.signatures != nil && w.chance(700, "signed before") {
			w.putFirstNote(t, first)
		}
	}
	return w
}

// run starts all processes, and waits for all except fallbacks. The fallbacks run until stop is
// called.
func (w *world) run() (stop func()) {
	if w.locks != conditional {
		var readers sync.WaitGroup
		w.checkingReaders(&readers)
		for i := range 4 {
			w.publisher(fmt.Sprint("publisher", i))
		}
		readers.Wait()
		return func() {}
	}
	var group sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	var fallbacks sync.WaitGroup
	for i := range 2 + w.draw("publishers")%3 {
		group.Go(func() { w.publisher(fmt.Sprint("publisher", i)) })
	}
	for i := range max(1, w.draw("fallbacks")%4) - 1 {
		fallbacks.Go(func() { w.fallback(ctx, fmt.Sprint("fallback", i), 3) })
	}
	for i := range max(1, w.draw("verifiers")%4) - 1 {
		group.Go(func() { w.verifier(fmt.Sprint("verifier", i)) })
	}
	w.checkingReaders(&group)
	if w.chance(300, "follower") {
		group.Go(func() { w.follower("follower") })
	}
	if w.chance(200, "repairer") {
		group.Go(func() { w.repairer("repairer") })
	}
	group.Wait()
	time.Sleep(within / 2) // for the last refreshes
	w.settled.Store(true)
	return func() { cancel(); fallbacks.Wait() }
}
