package publisher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/followpress/followpress/internal/testenv/process"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/shards"
	"github.com/followpress/followpress/storage"
)

// killsWanted is the number of publishers to kill, over all servers; KILLS in the environment
// overrides it, as in the nightly `make soak`.
const killsWanted = 24

// Publishers are killed at random, sequentially and with different sites. The next run that may end
// makes the bucket equal to its site and does not repeat puts that had arrived.
func TestKilledPublishers(t *testing.T) {
	sites := threeSites(t)
	kills := killsWanted
	if text := os.Getenv("KILLS"); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	onServers(t, func(t *testing.T, server *servers.Server) {
		const seed = 20261121
		t.Logf("seed %d", seed)
		k := &killer{place: newPlace(t, server, ""), sites: sites, random: rand.New(rand.NewPCG(seed, uint64(len(server.Kind)))), hits: map[string]int{}}
		for i, name := range []string{"a", "b.tar", "c"} {
			k.paths = append(k.paths, sites[i].Write(t, filepath.Join(t.TempDir(), name)))
		}
		publish(t, sites[0], k.place.open(t, nil), publisher.Options{})
		for rounds := 0; k.kills < kills/len(servers.Kinds()) || len(k.hits) < 3 || k.resumed < 3; rounds++ {
			if rounds > 20*kills {
				t.Fatalf("killed publishers: got %d in the stages %v, and %d resumed runs, want more", k.kills, k.hits, k.resumed)
			}
			if k.round(t); t.Failed() {
				break
			}
		}
		t.Logf("killed in the stages %v; %d runs resumed", k.hits, k.resumed)
		if k.resumed < k.kills/8 {
			t.Errorf("runs after %d kills: got %d resumed, want more", k.kills, k.resumed)
		}
		for _, m := range sites {
			publish(t, m, k.place.open(t, nil), publisher.Options{BreakLock: true})
			k.place.holds(t, m)
		}
	})
}

// threeSites differ in many objects, also in their keys; the third has another base path and
// another number of manifest shards.
func threeSites(t *testing.T) []memory {
	t.Helper()
	snapshot := synthetic(t, 40)
	a := generated(t, snapshot, "")
	c := generated(t, snapshot, "v2").With(t, func(_ memory, root *site.Root) { root.ShardDigits = 2 })
	return []memory{a, a.Changed(t, 2, " ").WithoutLists(t, 5), c.WithoutLists(t, 7)}
}

// A killer starts publishers, kills them, and has others clean up.
type killer struct {
	place  place
	sites  []memory
	paths  []string
	random *rand.Rand

	last           int // site of the last run
	kills, resumed int
	hits           map[string]int // by the killed stage
}

func (k *killer) round(t *testing.T) {
	t.Helper()
	k.last = (k.last + 1 + k.random.IntN(len(k.sites)-1)) % len(k.sites)
	archives := k.random.IntN(2) == 0
	p := k.place.start(t, job{Site: k.paths[k.last], Archives: archives, Lease: 2 * time.Second})
	stages := []struct {
		name string
		span time.Duration
	}{{"", 600 * time.Millisecond}, {"compare", 50 * time.Millisecond}, {"list", 50 * time.Millisecond},
		{"upload", 400 * time.Millisecond}, {"delete", 100 * time.Millisecond}}
	if stage := stages[k.random.IntN(len(stages))]; stage.name == "" || p.WaitFor(stage.name) {
		time.Sleep(time.Duration(k.random.Int64N(int64(stage.span))))
	}
	p.Signal(syscall.SIGKILL)
	status, killed := p.Wait()
	switch {
	case !killed && status != 0:
		t.Fatalf("status of a run that was not killed: got %d, want 0: %s", status, p.Stderr())
	case !killed:
		t.Logf("site %d, archives %t: ended in time", k.last, archives)
		k.place.lists(t, k.sites[k.last])
		return
	}
	t.Logf("site %d, archives %t: killed in %q", k.last, archives, p.last())
	k.kills++
	k.hits[p.last()]++
	k.clearUp(t)
}

// clearUp publishes after a kill. The lock of the killed run is broken, waited for, or removed as
// if the kill was long ago. In the last case more runs may be killed before one succeeds.
func (k *killer) clearUp(t *testing.T) {
	t.Helper()
	o := publisher.Options{}
	next := k.random.IntN(len(k.sites))
	switch k.random.IntN(12) {
	case 0:
		// Requests of the killed run may still arrive, so the required puts are unknown.
		o.BreakLock = true
		publish(t, k.sites[next], k.place.open(t, nil), o)
		k.place.lists(t, k.sites[next], leftLock(t, k.place)...)
		k.place.remove(t, site.LockKey)
	case 1:
		k.resume(t, next, o)
		k.place.remove(t, site.LockKey)
	default:
		quiet(t, k.place)
		k.place.remove(t, site.LockKey)
		if k.random.IntN(3) == 0 {
			return
		}
		k.resume(t, next, o)
	}
	k.last = next
}

func (k *killer) resume(t *testing.T, next int, o publisher.Options) {
	t.Helper()
	report := resume(t, k.place, k.sites[next], o)
	t.Logf("site %d: by another run: resumed %v, done %+v", next, report.Resumed, report.Done)
	if report.Resumed {
		k.resumed++
	}
}

// resume publishes after a killed run, as soon as its lock is free, and checks that it puts only
// missing objects.
func resume(t *testing.T, p place, next memory, o publisher.Options) *publisher.Report {
	t.Helper()
	before := quiet(t, p)
	r := newRecorder(p.at)
	report, err := publisher.Publish(t.Context(), next, p.open(t, r), o)
	for begun := time.Now(); errors.Is(err, publisher.ErrLocked) && time.Since(begun) < time.Minute; time.Sleep(100 * time.Millisecond) {
		report, err = publisher.Publish(t.Context(), next, p.open(t, r), o)
	}
	if err != nil {
		t.Fatalf("run after a killed one: got %v, want no error", err)
	}
	if report.Outcome == publisher.Unchanged {
		p.lists(t, next, leftLock(t, p)...)
	} else {
		p.lists(t, next)
	}
	checkPut(t, r, before, next)
	return report
}

// quiet waits until the server has processed the requests of a killed publisher, which may take a
// while, above all with an archive. It returns the objects then in the bucket.
func quiet(t *testing.T, p place) map[site.Key]minio.ObjectInfo {
	t.Helper()
	listed := p.list(t)
	for same := 0; same < 3; same++ {
		time.Sleep(100 * time.Millisecond)
		now := p.list(t)
		if !maps.EqualFunc(listed, now, func(a, b minio.ObjectInfo) bool { return a.ETag == b.ETag && a.LastModified.Equal(b.LastModified) }) {
			same = -1
		}
		listed = now
	}
	return listed
}

// leftLock returns the lock left by a killed run, if any: a run that finds its site in the bucket
// takes none.
func leftLock(t *testing.T, p place) []site.Key {
	t.Helper()
	if _, ok := p.get(t, site.LockKey); ok {
		return []site.Key{site.LockKey}
	}
	return nil
}

// checkPut checks that right objects were not put again, except the root, and others once, except
// two objects that test whether the server takes archives. A manifest shard changed by a delta is
// put again when the site goes back to the shard's text: without a listing, nobody knows that the
// text below the delta is right.
func checkPut(t *testing.T, r *recorder, before map[site.Key]minio.ObjectInfo, next memory) {
	t.Helper()
	var again, twice []site.Key
	changed := func(key site.Key) bool {
		name, isShard := strings.CutPrefix(string(key), string(site.ManifestKey("")))
		_, ok := before[site.DeltaKey(shards.Group(name))]
		return isShard && ok
	}
	for key, n := range r.objectsPut() {
		if key != site.RootKey && !changed(key) && before[key].ETag == site.Sum([]byte(next[key])).String() {
			again = append(again, key)
		}
		if n > 1 {
			twice = append(twice, key)
		}
	}
	if len(again) > 0 || len(twice) > 2 {
		t.Errorf("puts: got %d of right objects, %d repeated, such as %v, %v, want 0 and at most 2", len(again), len(twice), again[:min(2, len(again))], twice[:min(4, len(twice))])
	}
}

// jobVariable makes the test binary a publisher in a separate process, which can be killed and
// stopped. It holds the job as JSON.
const jobVariable = "FOLLOWPRESS_TEST_JOB"

// A job is the task of a publisher process.
type job struct {
	Site     string
	At       storage.Location
	Endpoint string // "" means the endpoint of the place's server
	Archives bool
	Workers  int
	Lease    time.Duration
	Owner    string
}

// init runs the job instead of a TestMain, which other tests of the package may need.
func init() {
	text := os.Getenv(jobVariable)
	if text == "" {
		return
	}
	if err := runJob(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func runJob(text string) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	from, err := storage.OpenSite(context.Background(), j.Site, storage.S3Options{})
	if err != nil {
		return err
	}
	ctx := context.Background()
	to, err := storage.OpenBucket(ctx, j.At, storage.S3Options{Endpoint: j.Endpoint})
	if err != nil {
		return err
	}
	o := publisher.Options{Concurrency: j.Workers, Lease: j.Lease, Owner: j.Owner, Progress: stageLines{}, AllowRollback: true}
	_, err = publisher.Publish(ctx, from, unpacking(j.Archives, to), o)
	return err
}

// stageLines prints the stages for the parent process.
type stageLines struct{}

func (stageLines) Stage(name string, _ int64) { fmt.Println(name) }
func (stageLines) AddBytes(int64, int64)      {}

// A childPublisher publishes in a separate process, which prints the stages as they begin.
type childPublisher struct {
	*process.Process
	place place
}

// start publishes to the place in a separate process.
func (p place) start(t testing.TB, j job) childPublisher {
	t.Helper()
	j.At = p.at
	if j.Endpoint == "" {
		j.Endpoint = p.server.Endpoint
	}
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	environment := []string{jobVariable + "=" + string(text)}
	for name, value := range credentialsOf(p.server) {
		environment = append(environment, name+"="+value)
	}
	return childPublisher{process.Start(t, process.Self(t, environment)), p}
}

// last returns the most recent stage.
func (c childPublisher) last() string {
	if lines := c.Lines(); len(lines) > 0 {
		return lines[len(lines)-1].Text
	}
	return "start"
}
