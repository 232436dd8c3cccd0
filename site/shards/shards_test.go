package shards_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/followpress/followpress/fixtures/worst"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/shards"
)

// A bucket has the objects of a manifest, and its root.
type bucket struct {
	objects map[site.Key][]byte
	root    site.Root
}

// bucketOf returns the manifest of some objects, by key, in shards whose names have that many digits.
func bucketOf(t testing.TB, digits int, objects map[site.Key]string) bucket {
	t.Helper()
	b := bucket{map[site.Key][]byte{}, site.Root{Format: site.Format, ShardDigits: digits}}
	of, digests := entriesOf(digits, objects), shards.NewDigests(digits)
	for _, shard := range site.HashPrefixes(digits) {
		text := site.Manifest{Shard: shard, Objects: of[shard]}.Append(nil)
		b.objects[site.ManifestKey(shard)] = shards.Pack(text)
		if err := digests.Set(shard, site.Sum256(text)); err != nil {
			t.Fatal(err)
		}
	}
	var indexes []shards.Index
	b.root.Manifest, indexes = digests.Tree()
	for _, index := range indexes {
		b.objects[site.ManifestKey(index.Name)] = index.Body
	}
	return b
}

// entriesOf returns the entries of some objects, by shard.
func entriesOf(digits int, objects map[site.Key]string) map[string][]site.Entry {
	of := map[string][]site.Entry{}
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		shard := site.ManifestShard(key, digits)
		of[shard] = append(of[shard], site.NewEntry(key, []byte(objects[key])))
	}
	return of
}

func (b bucket) open(t testing.TB) *shards.Reader {
	t.Helper()
	r, err := shards.Open(t.Context(), &b.root, func(_ context.Context, key site.Key) ([]byte, error) {
		if body, ok := b.objects[key]; ok {
			return body, nil
		}
		return nil, site.ErrNotFound
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// holds fails the test unless the manifest lists the objects.
func (b bucket) holds(t testing.TB, objects map[site.Key]string) {
	t.Helper()
	r, want := b.open(t), entriesOf(b.root.ShardDigits, objects)
	for _, shard := range site.HashPrefixes(b.root.ShardDigits) {
		if got, err := r.Shard(t.Context(), shard); err != nil || !slices.Equal(got.Objects, want[shard]) {
			t.Fatalf("shard %s: got %d objects, %v, want %d", shard, len(got.Objects), err, len(want[shard]))
		}
	}
}

func someObjects(n int) map[site.Key]string {
	objects := map[site.Key]string{}
	for i := range n {
		objects[site.Key(fmt.Sprintf("api/v1/lists/%d/details", i))] = fmt.Sprint("list ", i)
	}
	return objects
}

// TestReader: for any number of shards, a reader finds the listed entries, and the root stays
// small.
func TestReader(t *testing.T) {
	for digits, indexes := range map[int]int{1: 0, 2: 0, 3: 16} {
		objects := someObjects(3000)
		b := bucketOf(t, digits, objects)
		b.holds(t, objects)
		if got := len(shards.Indexes(&b.root)); got != indexes || len(b.root.Manifest) > 256 {
			t.Errorf("%d digits: got %d indexes and %d digests in the root, want %d", digits, got, len(b.root.Manifest), indexes)
		}
		if got := len(b.objects); got != len(shards.Names(&b.root)) {
			t.Errorf("%d digits: got %d objects, want %d", digits, got, len(shards.Names(&b.root)))
		}
	}
}

// TestDeltas: a bucket with older shards and deltas has the same manifest as one whose shards were put again. Each
// round changes some objects, and makes deltas from the stored shards.
func TestDeltas(t *testing.T) {
	for _, digits := range []int{1, 2, 3} {
		random := rand.New(rand.NewPCG(uint64(digits), 7))
		objects := someObjects(800)
		b := bucketOf(t, digits, objects)
		for round := range 5 {
			for range 40 {
				i := random.IntN(900)
				key := site.Key(fmt.Sprintf("api/v1/lists/%d/details", i))
				if delete(objects, key); random.IntN(3) > 0 {
					objects[key] = fmt.Sprint("round ", random.IntN(3))
				}
			}
			next := bucketOf(t, digits, objects)
			was, is := entriesOfStored(t, b), entriesOf(digits, objects)
			to := next.open(t)
			deltas := map[string]*shards.Delta{}
			for _, shard := range site.HashPrefixes(digits) {
				patch := shards.NewPatch(shard, was[shard], is[shard], to.Digest(shard))
				if name := shards.Group(shard); len(patch.Objects)+len(patch.Gone) > 0 {
					if deltas[name] == nil {
						deltas[name] = &shards.Delta{Name: name}
					}
					deltas[name].Shards = append(deltas[name].Shards, patch)
				}
			}
			old := b.root
			b.root = next.root
			for name, delta := range deltas {
				b.objects[site.DeltaKey(name)] = shards.Pack(delta.Append(nil))
			}
			for _, index := range shards.Indexes(&b.root) {
				b.objects[site.ManifestKey(index)] = next.objects[site.ManifestKey(index)]
			}
			b.holds(t, objects)
			if old.Equal(&b.root) {
				t.Fatalf("round %d changed nothing", round)
			}
		}
	}
}

// entriesOfStored returns the entries that the stored shards list.
func entriesOfStored(t testing.TB, b bucket) map[string][]site.Entry {
	t.Helper()
	of := map[string][]site.Entry{}
	for _, shard := range site.HashPrefixes(b.root.ShardDigits) {
		m, err := shards.Parse(shard, b.objects[site.ManifestKey(shard)])
		if err != nil {
			t.Fatal(err)
		}
		of[shard] = m.Objects
	}
	return of
}

// bomb is 1 GiB of spaces, which JSON allows, in 1024 gzip members of 1 MiB. Its last four bytes, the
// size of the text in a file of one member, say 1 GiB, too.
var bomb = sync.OnceValue(func() []byte {
	var member bytes.Buffer
	w := gzip.NewWriter(&member)
	_, _ = w.Write(bytes.Repeat([]byte(" "), 1<<20))
	_ = w.Close()
	packed := bytes.Repeat(member.Bytes(), 1<<10)
	return binary.LittleEndian.AppendUint32(packed[:len(packed)-4], 1<<30)
})

// TestDamaged: altered, swapped and foreign objects are noticed, and the error names the object.
func TestDamaged(t *testing.T) {
	const digits = 3
	objects := someObjects(2000)
	key := site.Key("api/v1/lists/7/details")
	shard := site.ManifestShard(key, digits)
	other := shard[:2] + string("0123456789abcdef"[(strings.IndexByte("0123456789abcdef", shard[2])+1)%16])
	changed := maps.Clone(objects)
	changed[key] = "changed"
	delete(changed, "api/v1/lists/9/details")
	gone := site.ManifestShard("api/v1/lists/9/details", digits)
	index, delta := site.ManifestKey(shard[:1]), site.DeltaKey(shards.Group(shard))
	// patched is the bucket of changed objects, by deltas from the shards of the objects.
	patched := func() bucket {
		old, b := bucketOf(t, digits, objects), bucketOf(t, digits, changed)
		was, is := entriesOf(digits, objects), entriesOf(digits, changed)
		to := b.open(t)
		for _, name := range []string{shard, gone} {
			b.objects[site.ManifestKey(name)] = old.objects[site.ManifestKey(name)]
			d := shards.Delta{Name: shards.Group(name), Shards: []shards.Patch{shards.NewPatch(name, was[name], is[name], to.Digest(name))}}
			b.objects[site.DeltaKey(d.Name)] = shards.Pack(d.Append(nil))
		}
		return b
	}
	fine := patched()
	fine.holds(t, changed)
	for name, c := range map[string]struct {
		do    func(b bucket)
		names site.Key
	}{
		"a shard is gone":          {func(b bucket) { delete(b.objects, site.ManifestKey(shard)) }, site.ManifestKey(shard)},
		"a shard is no gzip":       {func(b bucket) { b.objects[site.ManifestKey(shard)] = []byte("{}") }, site.ManifestKey(shard)},
		"a shard is empty":         {func(b bucket) { b.objects[site.ManifestKey(shard)] = nil }, site.ManifestKey(shard)},
		"a shard is cut off":       {func(b bucket) { b.objects[site.ManifestKey(shard)] = b.objects[site.ManifestKey(shard)][:40] }, site.ManifestKey(shard)},
		"a shard unpacks to 1 GiB": {func(b bucket) { b.objects[site.ManifestKey(shard)] = bomb() }, site.ManifestKey(shard)},
		"a shard is another":       {func(b bucket) { b.objects[site.ManifestKey(shard)] = b.objects[site.ManifestKey(other)] }, site.ManifestKey(shard)},
		"a delta is gone":          {func(b bucket) { delete(b.objects, delta) }, site.ManifestKey(shard)},
		"a delta is no gzip":       {func(b bucket) { b.objects[delta] = []byte("{}") }, delta},
		"a delta unpacks to 1 GiB": {func(b bucket) { b.objects[delta] = bomb() }, delta},
		"a delta is another":       {func(b bucket) { b.objects[delta] = shards.Pack((shards.Delta{Name: "fff"}).Append(nil)) }, delta},
		"a delta names a wrong shard": {func(b bucket) {
			b.objects[delta] = shards.Pack((shards.Delta{Name: shards.Group(shard), Shards: []shards.Patch{{Shard: "000"}, {Shard: "000"}}}).Append(nil))
		}, delta},
		"a delta of another base": {func(b bucket) {
			to := b.open(t)
			d := shards.Delta{Name: shards.Group(shard), Shards: []shards.Patch{{Shard: shard, SHA256: to.Digest(shard), Gone: []site.Key{key}}}}
			b.objects[delta] = shards.Pack(d.Append(nil))
		}, delta},
		"a delta of an older site": {func(b bucket) {
			d := shards.Delta{Name: shards.Group(shard), Shards: []shards.Patch{{Shard: shard, SHA256: site.SHA256{1}}}}
			b.objects[delta] = shards.Pack(d.Append(nil))
		}, site.ManifestKey(shard)},
		"an index is gone":          {func(b bucket) { delete(b.objects, index) }, index},
		"an index is another":       {func(b bucket) { b.objects[index] = b.objects[site.ManifestKey("0")] }, index},
		"an index unpacks to 1 GiB": {func(b bucket) { b.objects[index] = bomb() }, index},
		"an index of other shards":  {func(b bucket) { b.objects[index] = shards.Pack([]byte(`{"index":"` + shard[:1] + `","manifest":{}}`)) }, index},
	} {
		b := fine
		b.objects = maps.Clone(fine.objects)
		if c.do(b); c.names == index && shard[:1] == "0" {
			continue
		}
		_, err := b.open(t).Shard(t.Context(), shard)
		if !errors.Is(err, shards.ErrDamaged) || !strings.Contains(err.Error(), string(c.names)) {
			t.Errorf("%s: got %v, want ErrDamaged and %s", name, err, c.names)
		}
	}
}

// TestWhatIsLeftOverChangesNothing: a delta that no shard needs is not read.
func TestWhatIsLeftOverChangesNothing(t *testing.T) {
	objects := someObjects(100)
	b := bucketOf(t, 1, objects)
	b.objects[site.DeltaKey("0")] = []byte("noise")
	b.holds(t, objects)
}

// TestDamagedIndexHidesItsShardsOnly: shards of other indexes are read, and with digests from elsewhere all are.
func TestDamagedIndexHidesItsShardsOnly(t *testing.T) {
	objects := someObjects(100)
	whole, b := bucketOf(t, 3, objects), bucketOf(t, 3, objects)
	delete(b.objects, site.ManifestKey("a"))
	r := b.open(t)
	if _, err := r.Index("a"); !errors.Is(err, shards.ErrDamaged) {
		t.Errorf("index: got %v, want ErrDamaged", err)
	}
	if _, err := r.Shard(t.Context(), "a00"); !errors.Is(err, shards.ErrDamaged) {
		t.Errorf("shard of the index: got %v, want ErrDamaged", err)
	}
	if _, err := r.Shard(t.Context(), "b00"); err != nil {
		t.Errorf("another shard: got %v, want no error", err)
	}
	r.Trust(whole.open(t))
	if _, err := r.Shard(t.Context(), "a00"); err != nil {
		t.Errorf("shard with a trusted digest: got %v, want no error", err)
	}
}

// TestFailingStore: an error of the store is not damage, and the next request asks again.
func TestFailingStore(t *testing.T) {
	b := bucketOf(t, 1, someObjects(10))
	b.objects[site.ManifestKey("0")] = shards.Pack([]byte("another"))
	busy := errors.New("busy")
	fail := true
	r, err := shards.Open(t.Context(), &b.root, func(_ context.Context, key site.Key) ([]byte, error) {
		if fail && key == site.DeltaKey("0") {
			return nil, busy
		}
		if body, ok := b.objects[key]; ok {
			return body, nil
		}
		return nil, site.ErrNotFound
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Shard(t.Context(), "0"); !errors.Is(err, busy) || errors.Is(err, shards.ErrDamaged) {
		t.Errorf("got %v, want that the store is busy", err)
	}
	fail = false
	if _, err := r.Shard(t.Context(), "0"); !errors.Is(err, shards.ErrDamaged) {
		t.Errorf("got %v, want ErrDamaged", err)
	}
}

// TestWorstObjects: small objects that expand when unpacked or decoded take bounded memory.
func TestWorstObjects(t *testing.T) {
	packed := bomb()
	worst.Check(t, "1 GiB", 128<<20, func() {
		if _, err := shards.Parse("0", packed); err == nil {
			t.Error("shard: got no error")
		}
		if _, err := shards.ParseDelta("0", packed); err == nil {
			t.Error("delta: got no error")
		}
	})
	patches := shards.Pack([]byte(`{"delta":"0","shards":[{}` + strings.Repeat(",{}", 300_000) + `]}`))
	worst.Check(t, "patches", 64<<20, func() {
		if _, err := shards.ParseDelta("0", patches); err == nil {
			t.Error("delta of empty patches: got no error")
		}
	})
}

// TestSizesForBrowsers: checking one answer of a site with 1.8 million objects takes well below 100 kB.
func TestSizesForBrowsers(t *testing.T) {
	const objects, digits = 1_800_000, 3
	if got := site.ShardDigits(objects); got != digits {
		t.Fatalf("got %d digits, want %d", got, digits)
	}
	of := map[site.Key]string{}
	for i := 0; len(of) < objects>>(4*digits); i++ {
		key := site.Key(fmt.Sprintf("api/v1/users/0x%040x/%s", i*7919, []string{"details", "stats", "allFollowers", "badges"}[i%4]))
		if site.ManifestShard(key, digits) == "3fa" {
			of[key] = fmt.Sprint(i)
		}
	}
	b := bucketOf(t, digits, of)
	b.root.HeaderRules = site.Config{API: site.APIEFP, Explorer: true}.HeaderRules()
	root, err := b.root.Encode()
	if err != nil {
		t.Fatal(err)
	}
	index, shard := len(b.objects[site.ManifestKey("3")]), len(b.objects[site.ManifestKey("3fa")])
	t.Logf("root %d (%d compressed), index %d, shard %d bytes", len(root), len(shards.Pack(root)), index, shard)
	if len(root)+index+shard > 70_000 {
		t.Errorf("got %d + %d + %d bytes, want at most 70 kB", len(root), index, shard)
	}
}
