package bundle

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	json "github.com/goccy/go-json"
	"github.com/klauspost/compress/zstd"

	"github.com/followpress/followpress/internal/testenv/tempdir"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
)

func TestMain(m *testing.M) {
	tempdir.InMemory()
	m.Run()
}

// A madeUp chain has events, and blocks where a reader may stop.
type madeUp struct {
	id     uint64
	events []source.Event
	times  []int64 // of blocks, from 1
}

// random makes chains. Times of blocks may be equal, also between chains; in some histories they run
// backwards for a while, but no block where a reader may stop is later than an event after it.
func random(seed uint64, blocks int) []*madeUp {
	r := rand.New(rand.NewPCG(seed, 7))
	var all []*madeUp
	for id := range uint64(1 + r.IntN(3)) {
		c := &madeUp{id: id*5 + 1}
		now := int64(1_700_000_000_000)
		for b := range uint64(blocks) {
			now += int64(r.IntN(3)) * 1000
			at := now
			if seed%3 == 0 && r.IntN(4) == 0 {
				at -= int64(r.IntN(20)) * 1000
			}
			c.times = append(c.times, now)
			for i := range uint32(r.IntN(3)) {
				c.events = append(c.events, event(r, c.id, b+1, i*uint32(1+r.IntN(9)), at))
			}
		}
		least := now // of what comes
		for b, i := len(c.times), len(c.events)-1; b > 0; b-- {
			c.times[b-1] = min(c.times[b-1], least)
			for ; i >= 0 && c.events[i].Block >= uint64(b); i-- {
				least = min(least, c.events[i].Time)
			}
		}
		all = append(all, c)
	}
	return all
}

func event(r *rand.Rand, chain, block uint64, index uint32, at int64) source.Event {
	e := source.Event{
		Kind: source.Kind(1 + r.IntN(5)), Contract: source.Contract{Chain: chain, Address: site.Address{byte(r.IntN(3))}},
		Block: block, Index: index, Time: at, Value: make([]byte, r.IntN(40)),
	}
	binary.BigEndian.PutUint64(e.Subject[r.IntN(24):], r.Uint64())
	for i := range e.Value {
		e.Value[i] = byte(r.Uint32())
	}
	if hasKey(e.Kind) {
		e.Key = []string{"user", "", "primary-list", "\xff\x00", `a"b`, `\`, "é", "a,b", "0x\"}\n"}[r.IntN(9)]
	}
	return e
}

// upto is what somebody has read of a chain who has stopped after some blocks.
func (c *madeUp) upto(stops ...uint64) Source {
	s := Source{Chain: Chain{ID: c.id, Contracts: []string{"a", "b"}, First: &Block{1, "0x" + strings.Repeat("0", 64)}}}
	for _, stop := range stops {
		m := Mark{Block: stop, Hash: [32]byte{byte(stop), byte(c.id)}, Time: c.times[stop-1]}
		for _, e := range c.events {
			if e.Block <= stop {
				m.Events++
			}
		}
		s.Points = append(s.Points, m)
	}
	head := stops[len(stops)-1]
	s.Events = func(yield func(source.Event, error) bool) {
		for _, e := range c.events {
			if e.Block > head {
				return
			}
			e.Value = slices.Clone(e.Value) // which is overwritten, as a reader of files does
			ok := yield(e, nil)
			clear(e.Value)
			if !ok {
				return
			}
		}
	}
	return s
}

// A shelf keeps a log as a bucket does, and reads it as one.
type shelf struct {
	mu      sync.Mutex
	objects map[string][]byte
	index   *Index
	puts    map[string]int
	fetched int
}

func newShelf() *shelf { return &shelf{objects: map[string][]byte{}, puts: map[string]int{}} }

func (s *shelf) put(o Object) error {
	if _, there := s.objects[o.Name]; there != o.Replaces {
		return fmt.Errorf("put %s: there: %v, to be replaced: %v", o.Name, there, o.Replaces)
	}
	s.objects[o.Name] = o.Body
	s.puts[o.Name]++
	return nil
}

func (s *shelf) publish(ctx context.Context, chains ...Source) (*Built, error) {
	built, err := Build(ctx, chains, s.index, s.put)
	if err != nil || !built.Changed {
		return built, err
	}
	body, err := built.Index.Body()
	if err != nil {
		return nil, err
	}
	s.objects[IndexName] = body
	s.index, err = ParseIndex(body)
	return built, err
}

func (s *shelf) fetch(_ context.Context, name string, most int64) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fetched++
	body, ok := s.objects[name]
	switch {
	case !ok:
		return nil, ErrNone
	case int64(len(body)) > most:
		return nil, ErrTooLarge
	}
	return slices.Clone(body), nil
}

type silent struct{}

func (silent) Stage(string, int64) {}
func (silent) Add(int64)           {}
func (silent) End()                {}

// events are all rows of a log.
func (s *shelf) events(t testing.TB) []source.Event {
	t.Helper()
	l, err := Download(t.Context(), s.fetch, t.TempDir(), silent{})
	if err != nil {
		t.Fatal(err)
	}
	var all []source.Event
	for e, err := range l.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func equal(a, b source.Event) bool {
	same := bytes.Equal(a.Value, b.Value)
	a.Value, b.Value = nil, nil
	return same && reflect.DeepEqual(a, b)
}

// inOrder is the log of chains by the shortest computation: which rows, and in which order.
func inOrder(chains []*madeUp, heads []uint64) (rows []source.Event) {
	type row struct {
		source.Event
		latest int64
	}
	var all []row
	ends := []row{} // before which all is known
	for i, c := range chains {
		latest := int64(0)
		for _, e := range c.events {
			if e.Block <= heads[i] {
				latest = max(latest, e.Time)
				all = append(all, row{e, latest})
			}
		}
		end := row{latest: max(latest, c.times[heads[i]-1])}
		end.Contract.Chain, end.Block = c.id, heads[i]+1
		ends = append(ends, end)
	}
	compare := func(a, b row) int {
		return cmp.Or(cmp.Compare(a.latest, b.latest), cmp.Compare(a.Contract.Chain, b.Contract.Chain), cmp.Compare(a.Block, b.Block), cmp.Compare(a.Index, b.Index))
	}
	slices.SortFunc(all, compare)
	for _, r := range all {
		if !slices.ContainsFunc(ends, func(end row) bool { return compare(r, end) >= 0 }) {
			rows = append(rows, r.Event)
		}
	}
	return rows
}

// TestRandomLogs: the log of any chains has the rows of the naive computation; one that grew with the
// chains in many small steps is the same, byte for byte, as one that was made at once of other stops;
// bundles are put again only as they grow; and points say what is complete.
func TestRandomLogs(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 9))
		blocks := 10 + r.IntN(120)
		if seed%20 == 0 {
			blocks = 9000 // some 9,000 events a chain
		}
		chains := random(seed, blocks)
		grown := newShelf()
		stops := make([][]uint64, len(chains))
		heads := make([]uint64, len(chains))
		for done := false; !done; {
			done = true
			var sources []Source
			for i, c := range chains {
				step := uint64(r.IntN(1 + blocks/3))
				if heads[i] = min(heads[i]+step, uint64(blocks)); heads[i] == 0 {
					heads[i] = 1
				}
				if n := len(stops[i]); n == 0 || stops[i][n-1] != heads[i] {
					stops[i] = append(stops[i], heads[i])
				}
				done = done && heads[i] == uint64(blocks)
				sources = append(sources, c.upto(stops[i]...))
			}
			r.Shuffle(len(sources), func(i, j int) { sources[i], sources[j] = sources[j], sources[i] })
			if _, err := grown.publish(t.Context(), sources...); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			got, want := grown.events(t), inOrder(chains, heads)
			if !slices.EqualFunc(got, want, equal) {
				t.Fatalf("seed %d: got %d rows, want %d, or in another order", seed, len(got), len(want))
			}
			for i, c := range chains {
				at := slices.IndexFunc(grown.index.Chains, func(x Chain) bool { return x.ID == c.id })
				checkPoint(t, seed, c, got, grown.index.Chains[at].Point, heads[i])
			}
		}
		once := newShelf()
		var sources []Source
		for i, c := range chains {
			sources = append(sources, c.upto(heads[i]))
		}
		built, err := once.publish(t.Context(), sources...)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !slices.Equal(once.index.Bundles, grown.index.Bundles) {
			t.Fatalf("seed %d: bundles of one publish: got %+v, want those of many %+v", seed, once.index.Bundles, grown.index.Bundles)
		}
		for name, body := range once.objects {
			if name != IndexName && !bytes.Equal(body, grown.objects[name]) {
				t.Fatalf("seed %d: bundle %s: the bytes differ", seed, name)
			}
		}
		if built.Put != len(built.Index.Bundles) {
			t.Errorf("seed %d: got %d bundles put, want %d", seed, built.Put, len(built.Index.Bundles))
		}
		again, err := once.publish(t.Context(), sources...)
		if err != nil || again.Changed || again.Put > 0 {
			t.Errorf("seed %d: the same again: got %+v, %v, want no change", seed, again, err)
		}
	}
}

func checkPoint(t *testing.T, seed uint64, c *madeUp, rows []source.Event, p *Point, head uint64) {
	t.Helper()
	of := slices.DeleteFunc(slices.Clone(rows), func(e source.Event) bool { return e.Contract.Chain != c.id })
	if p == nil {
		return
	}
	want := uint64(0)
	for _, e := range c.events {
		if e.Block <= p.Block {
			want++
		}
	}
	has := uint64(0)
	for _, e := range of {
		if e.Block <= p.Block {
			has++
		}
	}
	if p.Block > head || p.Events != want || has != want {
		t.Fatalf("seed %d: chain %d: point %+v: the log has %d events up to there, want %d", seed, c.id, p, has, want)
	}
}

// TestEarliestHeadIsComplete: of the chain that was read least far, the log has everything.
func TestEarliestHeadIsComplete(t *testing.T) {
	chains := random(1, 100)
	s := newShelf()
	if _, err := s.publish(t.Context(), chains[0].upto(100)); err != nil {
		t.Fatal(err)
	}
	if p := s.index.Chains[0].Point; p == nil || p.Block != 100 || int(p.Events) != len(chains[0].events) || len(s.events(t)) != len(chains[0].events) {
		t.Errorf("point: got %+v, want block 100 with %d events", p, len(chains[0].events))
	}
}

// TestContradictions: a state whose events are not those of the log is refused, and nothing is put; one
// that lags is not.
func TestContradictions(t *testing.T) {
	base := func() []*madeUp { return random(8, 12000) }
	there := newShelf()
	var sources []Source
	for _, c := range base() {
		sources = append(sources, c.upto(12000))
	}
	if _, err := there.publish(t.Context(), sources...); err != nil {
		t.Fatal(err)
	}
	if n := len(there.index.Bundles); n < 2 {
		t.Fatalf("got %d bundles, want more", n)
	}
	for name, tc := range map[string]struct {
		change func([]*madeUp, []Source)
		behind bool
		want   string
	}{
		"an event more in the first bundle": {func(c []*madeUp, _ []Source) {
			e := c[0].events[5]
			e.Index++
			c[0].events = slices.Insert(c[0].events, 6, e)
			if c[0].events[7].Block == e.Block {
				c[0].events = slices.Delete(c[0].events, 7, 8)
			}
		}, false, "bundle _log/0, rows 0 to 9999"},
		"an event less": {func(c []*madeUp, _ []Source) { c[0].events = slices.Delete(c[0].events, 5, 6) }, false, "bundle _log/0"},
		"another value near the end": {func(c []*madeUp, _ []Source) {
			e := &c[0].events[len(c[0].events)/2+len(c[0].events)/4]
			e.Value = append([]byte{1}, e.Value...)
		}, false, "a row of bundle"},
		"another deployment": {func(_ []*madeUp, s []Source) { s[0].Contracts = []string{"c"} }, false, "another deployment"},
		"another chain with the id": {func(_ []*madeUp, s []Source) {
			s[0].First = &Block{1, "0x" + strings.Repeat("1", 64)}
		}, false, "another deployment"},
		"lags": {func(c []*madeUp, s []Source) { s[0] = c[0].upto(6000) }, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			chains := base()
			var sources []Source
			for _, c := range chains {
				sources = append(sources, c.upto(12000))
			}
			tc.change(chains, sources)
			if strings.Contains(name, "event") || strings.Contains(name, "value") {
				for i, c := range chains {
					sources[i] = c.upto(12000)
				}
			}
			built, err := Build(t.Context(), sources, there.index, func(o Object) error { return fmt.Errorf("put %s", o.Name) })
			switch {
			case tc.want != "" && (!errors.Is(err, ErrContradicts) || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "remove everything below _log/")):
				t.Errorf("got %v, want ErrContradicts with %q and what to do", err, tc.want)
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.behind && (!built.Behind || built.Changed || built.Index.Digest != there.index.Digest):
				t.Errorf("got %+v, want that the log stays", built)
			}
		})
	}
	// No chain may do this: a block before one that was the newest, which another chain had passed.
	c, d := &madeUp{id: 1, times: []int64{100, 50}}, &madeUp{id: 2, times: []int64{100, 100}}
	d.events = []source.Event{event(rand.New(rand.NewPCG(1, 1)), 2, 1, 0, 80)}
	c.events = []source.Event{event(rand.New(rand.NewPCG(1, 1)), 1, 2, 0, 50)}
	back := newShelf()
	if _, err := back.publish(t.Context(), c.upto(1), d.upto(1)); err != nil || back.index.Rows != 1 {
		t.Fatalf("got %v, want a row", err)
	}
	if _, err := back.publish(t.Context(), c.upto(2), d.upto(2)); !errors.Is(err, ErrContradicts) {
		t.Errorf("an event before what is published: got %v, want ErrContradicts", err)
	}
	// Nor may a state lack an event that another one has: after the last row, only points tell.
	for name, more := range map[string]struct{ first, next uint64 }{"read less": {3, 2}, "read as far": {3, 3}, "read more": {3, 4}} {
		c := &madeUp{id: 1, times: []int64{100, 200, 300, 400}, events: []source.Event{event(rand.New(rand.NewPCG(1, 1)), 1, 1, 0, 100)}}
		lacks := newShelf()
		if _, err := lacks.publish(t.Context(), c.upto(more.first)); err != nil {
			t.Fatal(err)
		}
		if _, err := lacks.publish(t.Context(), c.upto(more.next)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		c.events = append(c.events, event(rand.New(rand.NewPCG(1, 2)), 1, 2, 0, 200))
		if _, err := lacks.publish(t.Context(), c.upto(more.next)); !errors.Is(err, ErrContradicts) || !strings.Contains(err.Error(), "chain 1") {
			t.Errorf("%s, and an event that the log lacks: got %v, want ErrContradicts", name, err)
		}
	}
	if _, err := Build(t.Context(), []Source{{Chain: Chain{ID: 1}}}, nil, nil); err == nil || !strings.Contains(err.Error(), "snapshot chain") {
		t.Errorf("nothing was read: got %v, want an error that says what to run", err)
	}
}

// TestRowForms: rows that are not in the form of the log are refused, whatever they are.
func TestRowForms(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var scratch []byte
	for range 2000 {
		e := event(r, r.Uint64(), r.Uint64(), r.Uint32(), r.Int64N(mostTime))
		row, err := appendRow(nil, &e)
		if err != nil {
			t.Fatal(err)
		}
		var any map[string]any
		if err := json.Unmarshal(row, &any); err != nil {
			t.Fatalf("%s: %v, want JSON", row, err)
		}
		back, err := parseRow(row, &scratch)
		if err != nil || !equal(e, back) {
			t.Fatalf("%s: got %+v, %v, want %+v", row, back, err, e)
		}
		hostile := slices.Clone(row)
		hostile[r.IntN(len(row))] ^= byte(1 + r.IntN(255))
		if other, err := parseRow(hostile, &scratch); err == nil {
			if made, err := appendRow(nil, &other); err != nil || !bytes.Equal(made, hostile) {
				t.Fatalf("%s: two rows are the same event", hostile)
			}
		}
		_, _ = parseRow(hostile[:r.IntN(len(row))], &scratch)
	}
	e := source.Event{Kind: source.Op, Time: source.NoTime}
	if _, err := appendRow(nil, &e); err == nil {
		t.Error("an event without a time: got no error, want one")
	}
}

func FuzzRow(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 10 {
		e := event(r, 1, 2, 3, 4)
		row, err := appendRow(nil, &e)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(row)
	}
	f.Fuzz(func(t *testing.T, row []byte) {
		var scratch []byte
		if e, err := parseRow(row, &scratch); err == nil {
			if back, err := appendRow(nil, &e); err != nil || !bytes.Equal(back, row) {
				t.Errorf("%q: got %q, %v, want the same row", row, back, err)
			}
		}
	})
}

// TestTextLimit: bundles also end where their text would become too long, and a row that is longer than a
// bundle is refused.
func TestTextLimit(t *testing.T) {
	c := &madeUp{id: 1}
	for b := range uint64(9) {
		c.times = append(c.times, int64(b))
		e := event(rand.New(rand.NewPCG(b, 1)), 1, b+1, 0, int64(b))
		e.Value = bytes.Repeat([]byte{byte(b)}, 2<<20)
		c.events = append(c.events, e)
	}
	s, once := newShelf(), newShelf()
	for stop := range uint64(9) {
		if _, err := s.publish(t.Context(), c.upto(stop+1)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := once.publish(t.Context(), c.upto(9)); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.index.Bundles, once.index.Bundles) || len(s.index.Bundles) != 3 || !slices.EqualFunc(s.events(t), c.events, equal) {
		t.Errorf("bundles: got %+v, want three of at most 16 MiB, and the same at once", s.index.Bundles)
	}
	c.events[8].Value = make([]byte, MaxText/2)
	if _, err := newShelf().publish(t.Context(), c.upto(9)); err == nil || !strings.Contains(err.Error(), "block 9") {
		t.Errorf("a row of 16 MiB: got %v, want an error with its block", err)
	}
}

// TestKilledPublish: whatever of a publish was done before it was killed, in the order of its puts,
// readers get the rows of the index that is there, and the next publish goes on.
func TestKilledPublish(t *testing.T) {
	chains := random(4, 9000)
	at := func(stop uint64) (all []Source) {
		for _, c := range chains {
			all = append(all, c.upto(stop))
		}
		return all
	}
	heads := func(stop uint64) []uint64 { return slices.Repeat([]uint64{stop}, len(chains)) }
	errKilled := errors.New("killed")
	for kill := range 4 {
		s := newShelf()
		if _, err := s.publish(t.Context(), at(1000)...); err != nil {
			t.Fatal(err)
		}
		puts := 0
		_, err := Build(t.Context(), at(9000), s.index, func(o Object) error {
			if puts++; puts > kill {
				return errKilled
			}
			s.objects[o.Name] = o.Body
			return nil
		})
		if err != nil && !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		if got, want := s.events(t), inOrder(chains, heads(1000)); !slices.EqualFunc(got, want, equal) {
			t.Fatalf("killed after %d bundles: got %d rows, want %d", kill, len(got), len(want))
		}
		built, err := Build(t.Context(), at(9000), s.index, func(o Object) error { s.objects[o.Name] = o.Body; return nil })
		if err != nil {
			t.Fatal(err)
		}
		if s.objects[IndexName], err = built.Index.Body(); err != nil {
			t.Fatal(err)
		}
		if got, want := s.events(t), inOrder(chains, heads(9000)); !slices.EqualFunc(got, want, equal) {
			t.Fatalf("after the next publish: got %d rows, want %d", len(got), len(want))
		}
	}
}

// TestGrowsMeanwhile: a reader whose index is older than the last bundle reads the index again.
func TestGrowsMeanwhile(t *testing.T) {
	chains := random(4, 9000)
	s := newShelf()
	var old, next []Source
	for _, c := range chains {
		old, next = append(old, c.upto(1000)), append(next, c.upto(9000))
	}
	if _, err := s.publish(t.Context(), old...); err != nil {
		t.Fatal(err)
	}
	first := s.objects[IndexName]
	if _, err := s.publish(t.Context(), next...); err != nil {
		t.Fatal(err)
	}
	asked := 0
	l, err := Download(t.Context(), func(ctx context.Context, name string, most int64) ([]byte, error) {
		if name == IndexName {
			if asked++; asked == 1 {
				return first, nil
			}
		}
		return s.fetch(ctx, name, most)
	}, t.TempDir(), silent{})
	if err != nil {
		t.Fatal(err)
	}
	n := uint64(0)
	for _, err := range l.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != l.Index.Rows {
		t.Errorf("got %d rows, want %d", n, l.Index.Rows)
	}
}

// TestResumes: a download that was cut off asks again only for what it has not got, and believes no file
// that it has not checked.
func TestResumes(t *testing.T) {
	chains := random(4, 9000)
	s := newShelf()
	var all []Source
	for _, c := range chains {
		all = append(all, c.upto(9000))
	}
	if _, err := s.publish(t.Context(), all...); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := Download(t.Context(), s.fetch, dir, silent{}); err != nil {
		t.Fatal(err)
	}
	s.fetched = 0
	if err := os.WriteFile(dir+"/0", []byte("half"), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := Download(t.Context(), s.fetch, dir, silent{})
	if err != nil {
		t.Fatal(err)
	}
	if s.fetched != 2 {
		t.Errorf("got %d requests, want the index and one bundle", s.fetched)
	}
	if err := os.WriteFile(dir+"/0", []byte("half"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, err := range l.Events(t.Context()) {
		if err == nil || !errors.Is(err, ErrDamaged) {
			t.Errorf("a file that was changed: got %v, want ErrDamaged", err)
		}
		break
	}
}

// hostileIndex changes the index of a shelf, and makes its links and digest right again.
func hostileIndex(t *testing.T, s *shelf, change func(*Index)) {
	t.Helper()
	x, err := ParseIndex(s.objects[IndexName])
	if err != nil {
		t.Fatal(err)
	}
	change(x)
	if err := x.seal(); err != nil {
		t.Fatal(err)
	}
	if s.objects[IndexName], err = x.Body(); err != nil {
		t.Fatal(err)
	}
}

// replaceText puts other rows into a bundle, with digests that fit.
func replaceText(t *testing.T, s *shelf, i int, change func([]byte) []byte) {
	t.Helper()
	hostileIndex(t, s, func(x *Index) {
		b := &x.Bundles[i]
		text, err := b.text(s.objects[b.Name()])
		if err != nil {
			t.Fatal(err)
		}
		text = change(text)
		body := encoder().EncodeAll(text, nil)
		s.objects[b.Name()] = body
		b.Bytes, b.SHA256, b.TextBytes, b.TextSHA256 = int64(len(body)), digest(body), int64(len(text)), digest(text)
	})
}

// TestHostileLogs: each is one error that names the bundle, the rows and what to do; memory is that of a
// bundle whatever the log says.
func TestHostileLogs(t *testing.T) {
	chains, right := random(4, 9000), newShelf()
	var sources []Source
	for _, c := range chains {
		sources = append(sources, c.upto(9000))
	}
	if _, err := right.publish(t.Context(), sources...); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change func(t *testing.T, s *shelf)
		want   string
	}{
		"no index":             {func(_ *testing.T, s *shelf) { delete(s.objects, IndexName) }, "there is no log"},
		"index cut":            {func(_ *testing.T, s *shelf) { s.objects[IndexName] = s.objects[IndexName][:50] }, "not JSON"},
		"index of 2 GB":        {func(_ *testing.T, s *shelf) { s.objects[IndexName] = make([]byte, MaxIndex+1) }, "more than"},
		"a bundle is missing":  {func(_ *testing.T, s *shelf) { delete(s.objects, "10000") }, "bundle _log/10000, rows 10000 to"},
		"a bundle was cut":     {func(_ *testing.T, s *shelf) { s.objects["0"] = s.objects["0"][:1000] }, "bundle _log/0, rows 0 to 9999"},
		"the last one was cut": {func(_ *testing.T, s *shelf) { s.objects["10000"] = s.objects["10000"][:1000] }, "bundle _log/10000"},
		"a bundle was altered": {func(_ *testing.T, s *shelf) { s.objects["0"][500] ^= 1 }, "cut, altered or replaced"},
		"the last is an older one": {func(t *testing.T, s *shelf) {
			older := newShelf()
			var sources []Source
			for _, c := range chains {
				sources = append(sources, c.upto(8000))
			}
			if _, err := older.publish(t.Context(), sources...); err != nil {
				t.Fatal(err)
			}
			s.objects["10000"] = older.objects["10000"]
		}, "bundle _log/10000"},
		"a bundle of 2 GB":  {func(_ *testing.T, s *shelf) { s.objects["0"] = make([]byte, 64<<20) }, "it has more than"},
		"the last has 2 GB": {func(_ *testing.T, s *shelf) { s.objects["10000"] = make([]byte, 64<<20) }, "it has more than"},
		"an index names 2 GB": {func(t *testing.T, s *shelf) {
			hostileIndex(t, s, func(x *Index) { x.Bundles[0].Bytes = 2 << 30 })
		}, "bundle 0 has 2147483648 bytes"},
		"an index names too much text": {func(t *testing.T, s *shelf) {
			hostileIndex(t, s, func(x *Index) { x.Bundles[0].TextBytes = 2 << 30 })
		}, "decompressed"},
		"a bomb": {func(t *testing.T, s *shelf) {
			hostileIndex(t, s, func(x *Index) {
				body := encoder().EncodeAll(make([]byte, 60<<20), nil)
				s.objects["0"] = body
				x.Bundles[0].Bytes, x.Bundles[0].SHA256, x.Bundles[0].TextBytes = int64(len(body)), digest(body), MaxText
			})
		}, "SHA-256"},
		"a window of 2 GB": {func(t *testing.T, s *shelf) {
			hostileIndex(t, s, func(x *Index) {
				body := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x01, 0x00, 0x00}
				s.objects["0"] = body
				x.Bundles[0].Bytes, x.Bundles[0].SHA256 = int64(len(body)), digest(body)
			})
		}, "bundle _log/0"},
		"a link is wrong": {func(t *testing.T, s *shelf) {
			x, err := ParseIndex(s.objects[IndexName])
			if err != nil {
				t.Fatal(err)
			}
			x.Bundles[0].Link = strings.Repeat("0", 64)
			if s.objects[IndexName], err = x.Body(); err != nil {
				t.Fatal(err)
			}
		}, "the link of bundle 0"},
		"a point was altered": {func(_ *testing.T, s *shelf) {
			s.objects[IndexName] = bytes.Replace(s.objects[IndexName], []byte(`"point":{"block":9000`), []byte(`"point":{"block":8999`), 1)
		}, "its digest is"},
		"a gap": {func(t *testing.T, s *shelf) {
			hostileIndex(t, s, func(x *Index) { x.Bundles = slices.Delete(x.Bundles, 0, 1) })
		}, "begins with row 10000, want 0"},
		"rows are swapped": {func(t *testing.T, s *shelf) {
			replaceText(t, s, 0, func(text []byte) []byte {
				a, rest, _ := bytes.Cut(text, []byte("\n"))
				b, rest, _ := bytes.Cut(rest, []byte("\n"))
				return slices.Concat(b, []byte("\n"), a, []byte("\n"), rest)
			})
		}, "row 1: "},
		"a row is there twice": {func(t *testing.T, s *shelf) {
			replaceText(t, s, 0, func(text []byte) []byte {
				a, rest, _ := bytes.Cut(text, []byte("\n"))
				_, rest, _ = bytes.Cut(rest, []byte("\n"))
				return slices.Concat(a, []byte("\n"), a, []byte("\n"), rest)
			})
		}, "row 1: "},
		"a row is no row": {func(t *testing.T, s *shelf) {
			replaceText(t, s, 1, func(text []byte) []byte { text[0] = ' '; return text })
		}, "row 10000: it is not a row"},
		"a row less": {func(t *testing.T, s *shelf) {
			replaceText(t, s, 0, func(text []byte) []byte { _, rest, _ := bytes.Cut(text, []byte("\n")); return rest })
		}, "it has 9999 rows"},
		"of another chain": {func(t *testing.T, s *shelf) {
			replaceText(t, s, 0, func(text []byte) []byte {
				return bytes.Replace(text, []byte(`"chain_id":1,`), []byte(`"chain_id":77,`), 1)
			})
		}, "no chain 77"},
		"not zstd": {func(t *testing.T, s *shelf) {
			hostileIndex(t, s, func(x *Index) {
				s.objects["0"] = []byte("hello")
				x.Bundles[0].Bytes, x.Bundles[0].SHA256 = 5, digest([]byte("hello"))
			})
		}, "bundle _log/0, rows 0 to 9999"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf()
			s.objects = maps.Clone(right.objects)
			s.objects["0"] = slices.Clone(s.objects["0"])
			tc.change(t, s)
			l, err := Download(t.Context(), s.fetch, t.TempDir(), silent{})
			if err == nil {
				for _, e := range l.Events(t.Context()) {
					if err = e; err != nil {
						break
					}
				}
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want an error with %q", err, tc.want)
			}
			if !strings.Contains(err.Error(), advice) && !errors.Is(err, ErrNone) {
				t.Errorf("got %v, want what to do", err)
			}
			_, damaged, verifyErr := Verify(t.Context(), s.fetch, 10)
			inOrder := strings.HasPrefix(tc.want, "row 1: ") || strings.HasPrefix(tc.want, "no chain") // of one bundle alone nobody knows
			if verifyErr == nil && len(damaged) == 0 && !inOrder {
				t.Error("verify: got nothing damaged, want what is")
			}
		})
	}
}

// TestDecoderBound: rows that compress a thousandfold are not decompressed beyond what they should have.
func TestDecoderBound(t *testing.T) {
	var bomb bytes.Buffer
	w, err := zstd.NewWriter(&bomb)
	if err != nil {
		t.Fatal(err)
	}
	for range 256 {
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b := Bundle{Rows: 1, TextBytes: 1 << 20, TextSHA256: digest(nil)}
	bytesOf := testing.Benchmark(func(bench *testing.B) {
		for bench.Loop() {
			if _, err := b.text(bomb.Bytes()); !errors.Is(err, ErrDamaged) {
				bench.Fatalf("got %v, want ErrDamaged", err)
			}
		}
	}).AllocedBytesPerOp()
	if bytesOf > 48<<20 {
		t.Errorf("a bomb of 256 MiB took %d bytes, want those of a bundle", bytesOf)
	}
}

// TestEnoughOfDamaged: somebody who has enough of the events is told nothing more, also if a bundle that was read ahead
// is damaged.
func TestEnoughOfDamaged(t *testing.T) {
	chains, s := random(4, 9000), newShelf()
	var sources []Source
	for _, c := range chains {
		sources = append(sources, c.upto(9000))
	}
	if _, err := s.publish(t.Context(), sources...); err != nil {
		t.Fatal(err)
	}
	reading, failed := make(chan struct{}), make(chan context.Context, 1)
	l := &Log{s.index, func(ctx context.Context, b *Bundle) ([]byte, error) {
		if b.Row == 0 {
			return s.objects["0"], nil
		}
		<-reading
		failed <- ctx
		return nil, b.damaged("it is")
	}}
	for _, err := range l.Events(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		close(reading)
		<-(<-failed).Done()
		break
	}
}

// TestVerifyCounts: of many bundles that are damaged, some are named, and the others counted.
func TestVerifyCounts(t *testing.T) {
	chains, s := random(4, 30000), newShelf()
	var sources []Source
	for _, c := range chains {
		sources = append(sources, c.upto(30000))
	}
	if _, err := s.publish(t.Context(), sources...); err != nil {
		t.Fatal(err)
	}
	n := len(s.index.Bundles)
	for i := range s.index.Bundles {
		s.objects[s.index.Bundles[i].Name()] = []byte("hello")
	}
	_, damaged, err := Verify(t.Context(), s.fetch, 2)
	if err != nil || n < 4 || len(damaged) != 3 || damaged[2].Error() != fmt.Sprintf("and %d more", n-2) {
		t.Errorf("got %q, %v, want two of %d bundles, and how many more", damaged, err, n)
	}
}

// TestOtherRowsOfTheSameLength: a log is not continued by a state that has another byte in an earlier row.
func TestOtherRowsOfTheSameLength(t *testing.T) {
	c := random(1, 40)[0]
	build := func(was *Index) (*Built, error) {
		return Build(t.Context(), []Source{c.upto(uint64(len(c.times)))}, was, func(Object) error { return nil })
	}
	built, err := build(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := build(built.Index); err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(c.events, func(e source.Event) bool { return len(e.Value) > 0 })
	c.events[at].Value[0] ^= 1
	if _, err := build(built.Index); !errors.Is(err, ErrContradicts) {
		t.Errorf("got %v, want %v", err, ErrContradicts)
	}
}
