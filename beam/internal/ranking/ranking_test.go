package ranking

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/testing/ptest"

	"github.com/followpress/followpress/beam/internal/dofn"
	"github.com/followpress/followpress/beam/internal/wire"
	"github.com/followpress/followpress/site"
)

func TestMain(m *testing.M) { ptest.Main(m) }

type accounts map[site.Address]wire.Counts

// answers are a Result as Go values. Workers run in the test process and fill them.
type answers struct {
	mu        sync.Mutex
	places    map[site.Address][]wire.Place
	histogram [wire.Measures]map[uint32]uint32
	groups    []int64
	err       error
}

var inUse sync.Map // answers by Name of a collectFn

type collectFn struct{ Name, What string }

func (f *collectFn) ProcessElement(key string, value []byte) {
	found, _ := inUse.Load(f.Name)
	a := found.(*answers)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch f.What {
	case "places":
		address := wire.KeyAddress(key)
		if a.places[address] != nil {
			a.err = fmt.Errorf("two elements for %s", address)
		}
		for d := wire.Decode(value); d.More(); {
			a.places[address] = append(a.places[address], d.Place())
		}
	case "histogram":
		h := a.histogram[key[0]]
		err := EachCount(value, func(count, n uint32) {
			if h[count] != 0 {
				a.err = fmt.Errorf("measure %d has count %d twice", key[0], count)
			}
			h[count] = n
		})
		a.err = cmp.Or(a.err, err)
	}
}

type collectSizesFn struct{ Name string }

func (f *collectSizesFn) ProcessElement(n int64) {
	found, _ := inUse.Load(f.Name)
	a := found.(*answers)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.groups = append(a.groups, n)
}

// sourceFn emits the accounts of a test, in random order.
type sourceFn struct{ Name string }

var sources sync.Map

func (f *sourceFn) ProcessElement(part int, emit func(string, []byte)) {
	all, _ := sources.Load(f.Name)
	i := 0
	for address, counts := range all.(accounts) {
		if i++; int(address[19])%4 == part {
			emit(wire.AddressKey(address), counts.Append(nil))
		}
	}
}

func init() {
	dofn.Register2x0(&collectFn{})
	dofn.Register1x0(&collectSizesFn{})
	dofn.Register2x0(&sourceFn{})
}

func source(s beam.Scope, name string, all accounts) beam.PCollection {
	sources.Store(name, all)
	parts := beam.Reshuffle(s, beam.CreateList(s, []int{0, 1, 2, 3}))
	return beam.ParDo(s, &sourceFn{name}, parts)
}

func run(tb testing.TB, all accounts, o Options) (*answers, error) {
	name := tb.Name()
	a := &answers{places: map[site.Address][]wire.Place{}}
	for m := range a.histogram {
		a.histogram[m] = map[uint32]uint32{}
	}
	inUse.Store(name, a)
	defer inUse.Delete(name)
	defer sources.Delete(name)
	p, s := beam.NewPipelineWithRoot()
	r := Places(s, source(s, name, all), o)
	beam.ParDo0(s, &collectFn{name, "places"}, r.Places)
	beam.ParDo0(s, &collectFn{name, "histogram"}, r.Histogram)
	beam.ParDo0(s, &collectSizesFn{name}, r.Groups)
	if err := ptest.Run(p); err != nil {
		return nil, err
	}
	return a, a.err
}

// naive computes the places by definition: sort all accounts once for each measure.
func naive(all accounts, measures int, zeros bool) map[site.Address][]wire.Place {
	places := map[site.Address][]wire.Place{}
	for m := range measures {
		var board []site.Address
		for address, counts := range all {
			anyOfFirst := slices.Max(counts[:min(5, measures)]) > 0
			if counts[m] > 0 || zeros && m < 5 && anyOfFirst {
				board = append(board, address)
			}
		}
		slices.SortFunc(board, func(a, b site.Address) int {
			return cmp.Or(cmp.Compare(all[b][m], all[a][m]), bytes.Compare(a[:], b[:]))
		})
		for i, address := range board {
			places[address] = append(places[address], wire.Place{Measure: byte(m), Place: uint32(i + 1), Count: all[address][m]})
		}
	}
	return places
}

func check(t *testing.T, all accounts, o Options, bound int64) {
	t.Helper()
	got, err := run(t, all, o)
	if err != nil {
		t.Fatal(err)
	}
	measures := o.Measures
	if measures == 0 {
		measures = wire.Measures
	}
	want := naive(all, measures, o.Zeros)
	if len(got.places) != len(want) {
		t.Errorf("%d accounts have places, want %d", len(got.places), len(want))
	}
	histogram := [wire.Measures]map[uint32]uint32{}
	for m := range histogram {
		histogram[m] = map[uint32]uint32{}
	}
	wrong := 0
	for address, places := range want {
		for _, p := range places {
			histogram[p.Measure][p.Count]++
		}
		if !slices.Equal(got.places[address], places) {
			if wrong++; wrong <= 3 {
				t.Errorf("%s has places\n%v, want\n%v", address, got.places[address], places)
			}
		}
	}
	if wrong > 3 {
		t.Errorf("… and %d more", wrong-3)
	}
	for m := range histogram {
		if !maps.Equal(got.histogram[m], histogram[m]) {
			t.Errorf("histogram of measure %d has %d counts, want %d, or their numbers differ", m, len(got.histogram[m]), len(histogram[m]))
		}
	}
	grouped := int64(0)
	for _, n := range got.groups {
		grouped += n
	}
	if grouped != int64(len(want)) {
		t.Errorf("%d accounts in groups, want %d", grouped, len(want))
	}
	if len(got.groups) > 0 && slices.Max(got.groups) > bound {
		t.Errorf("largest of %d groups has %d accounts, want at most %d", len(got.groups), slices.Max(got.groups), bound)
	}
}

// anyAddress, commonPrefix and nested make kinds of addresses.
func anyAddress(r *rand.Rand) (a site.Address) {
	binary.LittleEndian.PutUint64(a[:], r.Uint64())
	binary.LittleEndian.PutUint64(a[8:], r.Uint64())
	binary.LittleEndian.PutUint32(a[16:], r.Uint32())
	return a
}

func commonPrefix(r *rand.Rand) (a site.Address) {
	a[0] = 0xaa
	binary.BigEndian.PutUint16(a[18:], uint16(r.IntN(1<<16)))
	return a
}

func nested(r *rand.Rand) (a site.Address) { // each prefix of ones covers half of the remaining addresses
	ones := r.IntN(18)
	for i := range ones {
		a[i] = 0xff
	}
	a[ones], a[19] = byte(r.Uint32()), byte(r.Uint32())
	return a
}

// fewAndMany makes counts of all sizes, small ones more often.
func fewAndMany(r *rand.Rand) uint32 {
	return uint32(math.Pow(float64(r.Uint32()), r.Float64())) >> r.IntN(8)
}
func ties(r *rand.Rand) uint32   { return uint32(r.IntN(3)) }
func same(*rand.Rand) uint32     { return 7 }
func sparse(r *rand.Rand) uint32 { return uint32(max(0, r.IntN(12)-10)) }
func wide(r *rand.Rand) uint32   { return r.Uint32() }

func random(seed uint64, n int, address func(*rand.Rand) site.Address, count func(*rand.Rand) uint32) accounts {
	r, all := rand.New(rand.NewPCG(seed, 0)), accounts{}
	for range n {
		var counts wire.Counts
		for m := range counts {
			counts[m] = count(r)
		}
		all[address(r)] = counts
	}
	return all
}

func TestPlacesEqualNaiveOnes(t *testing.T) {
	addresses := []func(*rand.Rand) site.Address{anyAddress, commonPrefix, nested}
	counts := []func(*rand.Rand) uint32{fewAndMany, ties, same, sparse, wide}
	for seed := range uint64(15) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			o := Options{BucketMax: []int{0, 1, 3, 100}[r.IntN(4)], Zeros: r.IntN(2) == 0}
			if r.IntN(2) == 0 {
				o.Measures = 5
			}
			all := random(seed, 1+r.IntN(600), addresses[seed%3], counts[seed%5])
			bound := int64(o.BucketMax)
			if bound == 0 {
				bound = DefaultBucketMax
			}
			check(t, all, o, bound)
		})
	}
}

func TestNobodyHasPlaces(t *testing.T) {
	none := accounts{}
	check(t, none, Options{Zeros: true}, 0)
	none[site.Address{1}] = wire.Counts{}
	check(t, none, Options{Zeros: true}, 0)
	none[site.Address{2}] = wire.Counts{7: 3} // not among the first five
	check(t, none, Options{Zeros: true}, 1)
	check(t, none, Options{Measures: 5}, 0)
}

// Groups stay small with more accounts than the sample, regardless of their addresses.
func TestGroupsAreBounded(t *testing.T) {
	for name, address := range map[string]func(*rand.Rand) site.Address{"any": anyAddress, "prefix": commonPrefix, "nested": nested} {
		t.Run(name, func(t *testing.T) {
			all := random(5, 20_000, address, ties)
			const bucketMax = 600
			check(t, all, Options{BucketMax: bucketMax, Seed: 9, sampleMax: 2000}, bucketMax)
		})
	}
}

// An address that comes twice would have two places.
func TestSameAddressTwice(t *testing.T) {
	p, s := beam.NewPipelineWithRoot()
	one := source(s, t.Name(), accounts{{1}: {1}})
	Places(s, beam.Flatten(s, one, one), Options{})
	if err := ptest.Run(p); err == nil || !strings.Contains(err.Error(), "counted twice") {
		t.Errorf("got error %v, want one that names the duplicate address", err)
	}
}

func TestMergedSampleIsThatOfAll(t *testing.T) {
	const size = 50
	sample := func(all accounts) (sample []byte) {
		f := &sampleFn{What: selection{Measures: wire.Measures}, Size: size, Seed: 3}
		for address, counts := range all {
			if err := f.ProcessElement(wire.AddressKey(address), counts.Append(nil), nil); err != nil {
				t.Fatal(err)
			}
		}
		f.FinishBundle(func(b []byte) { sample = b })
		return sample
	}
	all, merge := accounts{}, &mergeFn{Size: size}
	var merged []byte
	for seed, n := range []int{0, 1, 30, 200, 99} {
		some := random(uint64(seed), n, anyAddress, same)
		maps.Copy(all, some)
		merged = merge.MergeAccumulators(sample(some), merged)
	}
	if want := sample(all); !bytes.Equal(merged, want) {
		t.Errorf("merged sample is\n%x, want\n%x", merged, want)
	}
}

func TestBlocksAreInTheOrderOfCounts(t *testing.T) {
	last := 0
	for count := uint64(0); count <= math.MaxUint32; count += 1 + count/50 {
		block := blockOf(uint32(count))
		if block != last && block != last+1 {
			t.Fatalf("count %d is in block %d, after block %d", count, block, last)
		}
		last = block
	}
	if got := blockOf(math.MaxUint32); got != blocks-1 {
		t.Errorf("highest count is in block %d, want %d", got, blocks-1)
	}
}
