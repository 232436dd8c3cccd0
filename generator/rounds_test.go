package generator

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"flag"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	json "github.com/goccy/go-json"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/generator/internal/graph"
	"github.com/followpress/followpress/generator/internal/units"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/ranks"
)

var (
	roundsOf      = flag.String("rounds", "", "the folder of a snapshot packed by gzip, for TestRounds")
	roundsAPI     = flag.String("rounds-api", site.APIEFP, "the API of TestRounds")
	roundsEvery   = flag.Int64("rounds-every", 0, "ranks_every in seconds")
	roundsSingles = flag.Int("rounds-singles", 200, "single follows that TestRounds measures")
	roundsPopular = flag.Bool("rounds-popular", false, "follow accounts in proportion to how many follow them, instead of any")
	roundsFollows = flag.Int("rounds-follows", 300, "follows of the one large round of TestRounds")
)

// TestRounds counts, by route, the objects that change in a round of random follows: in many rounds
// of one follow each, and in one of many. A random follow is a new record of a random primary list
// about a random account.
//
//	make bench-rounds BENCH_SNAPSHOT=…
func TestRounds(t *testing.T) {
	if *roundsOf == "" {
		t.Skip("a measurement: go test ./generator -run TestRounds -v -rounds FOLDER, with the folder of a snapshot")
	}
	base := readRoundsBase(t, *roundsOf)
	config, err := site.Config{API: *roundsAPI, Explorer: true, RanksEvery: *roundsEvery}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	before := &roundOutput{}
	g := base.render(t, config, nil, before)
	random := rand.New(rand.NewPCG(1, 2))
	singles := map[string]int{}
	var totals []int
	for range *roundsSingles {
		changed := base.changes(t, config, before, []string{randomFollow(g, random)})
		total := 0
		for class, n := range changed {
			singles[class] += n
			total += n
		}
		totals = append(totals, total)
	}
	many := make([]string, *roundsFollows)
	for i := range many {
		many[i] = randomFollow(g, random)
	}
	large := base.changes(t, config, before, many)
	slices.Sort(totals)
	var table strings.Builder
	sum, largeSum := 0, 0
	for _, class := range slices.SortedFunc(maps.Keys(large), func(a, b string) int {
		return cmp.Or(cmp.Compare(singles[b], singles[a]), cmp.Compare(large[b], large[a]), strings.Compare(a, b))
	}) {
		sum, largeSum = sum+singles[class], largeSum+large[class]
		fmt.Fprintf(&table, "%-60s %12.2f %10d\n", class, float64(singles[class])/float64(len(totals)), large[class])
	}
	t.Logf("%s of %d objects\n%-60s %12s %10d\n%s%-60s %12.2f %10d\nof single follows: least %d, median %d, most %d",
		*roundsAPI, before.objects, "route", "1 follow", len(many), table.String(), "all", float64(sum)/float64(len(totals)), largeSum,
		totals[0], totals[len(totals)/2], totals[len(totals)-1])
}

// A roundsBase is a snapshot in memory, whose table of records is in parts: a round adds a part.
type roundsBase struct {
	files map[string][]byte
	ranks *ranks.Held
}

func readRoundsBase(t *testing.T, folder string) *roundsBase {
	t.Helper()
	base := &roundsBase{files: map[string][]byte{}}
	names, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		body, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		to, packed := strings.CutSuffix(filepath.Base(name), ".gz")
		if packed {
			unpack, err := gzip.NewReader(bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if body, err = io.ReadAll(unpack); err != nil {
				t.Fatal(err)
			}
		}
		if to == "records.ndjson" {
			to = "records-1.ndjson"
		}
		base.files[to] = body
	}
	return base
}

// fs returns the snapshot with more records, dated a day later, so that without records only
// objects that show the time differ.
func (b *roundsBase) fs(t *testing.T, more []string) afero.Fs {
	t.Helper()
	files := afero.NewMemMapFs()
	for name, body := range b.files {
		if err := afero.WriteFile(files, name, body, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := afero.WriteFile(files, "records-2.ndjson", []byte(strings.Join(more, "")), 0o644); err != nil {
		t.Fatal(err)
	}
	return files
}

func (b *roundsBase) render(t *testing.T, config site.Config, more []string, out *roundOutput) *graph.Graph {
	t.Helper()
	o, err := Options{Config: config, Ranks: b.ranks}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	r := &run{Options: o, snapshot: b.fs(t, more), report: summary.New("")}
	if err := r.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	type chunk struct {
		kind     units.Kind
		from, to int
	}
	var chunks []chunk
	if out.isFirst = out.before == nil; out.isFirst {
		out.seed, out.sums = maphash.MakeSeed(), make(map[uint64]uint64, r.site.Objects())
	}
	out.config, out.changed = config, map[string]int{}
	for _, kind := range r.site.Kinds {
		for from := 0; from < kind.Units; from += 64 {
			chunks = append(chunks, chunk{kind, from, min(from+64, kind.Units)})
		}
	}
	var next atomic.Int64
	var group sync.WaitGroup
	for range o.Workers {
		group.Go(func() {
			var scratch units.Scratch
			for i := next.Add(1) - 1; i < int64(len(chunks)); i = next.Add(1) - 1 {
				batch := &roundBatch{out: out}
				for unit := chunks[i].from; unit < chunks[i].to; unit++ {
					chunks[i].kind.Render(unit, &scratch, batch.emit)
				}
				out.add(batch)
			}
		})
	}
	group.Wait()
	if out.ranks != nil {
		if b.ranks, err = ranks.Parse(out.ranks); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s has %d bytes", site.RanksKey, len(out.ranks))
	}
	return r.site.Graph
}

// changes counts the objects that differ with more records, by class.
func (b *roundsBase) changes(t *testing.T, config site.Config, before *roundOutput, more []string) map[string]int {
	t.Helper()
	out := &roundOutput{seed: before.seed, before: before.sums}
	b.render(t, config, more, out)
	if gone := before.objects - (out.objects - out.added); gone > 0 {
		out.changed["(removed)"] = gone
	}
	return out.changed
}

// A roundOutput compares objects with those of a first run.
type roundOutput struct {
	config  site.Config
	seed    maphash.Seed
	isFirst bool
	sums    map[uint64]uint64 // from the first run: digests of bodies, by digest of the key
	before  map[uint64]uint64
	ranks   []byte // the ranks object of the first run

	mu      sync.Mutex
	objects int
	added   int
	changed map[string]int // by class
}

// A roundBatch has the objects of a chunk.
type roundBatch struct {
	out            *roundOutput
	body           []byte
	objects, added int
	sums           [][2]uint64
	changed        []site.Key
}

// emit is an emitter. It computes no digests for the manifest, which take longer than the bodies.
func (b *roundBatch) emit(size int, render func(b []byte) []byte, keys ...site.Key) {
	b.body = render(slices.Grow(b.body[:0], size))
	body := maphash.Bytes(b.out.seed, b.body)
	for _, key := range keys {
		if b.out.isFirst && key == site.RanksKey {
			b.out.ranks = bytes.Clone(b.body)
		}
		name := maphash.String(b.out.seed, string(key))
		b.objects++
		if b.out.isFirst {
			b.sums = append(b.sums, [2]uint64{name, body})
		} else if was, ok := b.out.before[name]; !ok || was != body {
			b.changed = append(b.changed, key)
			if !ok {
				b.added++
			}
		}
	}
}

func (o *roundOutput) add(b *roundBatch) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.objects += b.objects
	o.added += b.added
	for _, s := range b.sums {
		o.sums[s[0]] = s[1]
	}
	for _, key := range b.changed {
		class := string(key)
		if route, ok := o.config.RouteOf(key); ok {
			class = route.Pattern
		}
		o.changed[class]++
	}
}

// randomFollow returns a row of a new follow.
func randomFollow(g *graph.Graph, random *rand.Rand) string {
	for {
		list, account := uint32(random.IntN(len(g.Tokens))), uint32(random.IntN(len(g.Accounts)))
		if *roundsPopular {
			if account = g.Records.At(random.IntN(g.Records.Len())).Data; account >= uint32(len(g.Accounts)) {
				continue // not about an address
			}
		}
		if g.Primary[g.Owners[list]] != list || g.Owners[list] == account {
			continue
		}
		isHeld := false
		for _, r := range g.RecordsOf(list).All() {
			isHeld = isHeld || r.Data == account
		}
		if isHeld {
			continue
		}
		row, err := json.Marshal(map[string]any{
			"token_id": g.Tokens[list], "version": 1, "record_type": "address", "data": g.Accounts[account].String(), "added": g.AsOf,
		})
		if err != nil {
			panic(err) // impossible
		}
		return string(row) + "\n"
	}
}
