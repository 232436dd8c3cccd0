package output

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/shards"
)

// someEntries returns n entries with keys that begin with a prefix.
func someEntries(prefix string, n int) []site.Entry {
	entries := make([]site.Entry, n)
	for i := range entries {
		key := site.Key(fmt.Sprintf("%s/%d", prefix, i))
		entries[i] = site.Entry{Key: key, Size: int64(i) << (i % 40), MD5: site.Sum([]byte(key)), SHA256: site.Sum256([]byte(key))}
	}
	return entries
}

// fill returns a store for a number of objects, with entries added from several goroutines.
func fill(t testing.TB, objects int64, create func() (*os.File, error), entries []site.Entry) *entryStore {
	t.Helper()
	s := newEntryStore("api/v1", objects, create)
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	var group errgroup.Group
	for part := range slices.Chunk(entries, 100) {
		group.Go(func() error { return s.add(part) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestEntriesComeBackByShard, spilled or not, with any number of shards.
func TestEntriesComeBackByShard(t *testing.T) {
	t.Parallel()
	entries := someEntries("api/v1/users/"+strings.Repeat("é", 50), 30_000)
	want := map[string][]site.Entry{}
	for _, objects := range []int64{1, 70_000, 2_000_000, 20_000_000} {
		digits := site.ShardDigits(int(objects))
		clear(want)
		for _, e := range entries {
			shard := site.ManifestShard(e.Key, digits)
			want[shard] = append(want[shard], e)
		}
		for name, create := range map[string]func() (*os.File, error){"memory": nil, "file": InTempFolder} {
			s := fill(t, objects, create, entries)
			if create != nil && digits == 1 && s.file == nil {
				t.Errorf("%d digits: nothing was spilled", digits)
			}
			var names []string
			for partition := range s.partitions {
				shards, err := s.shards(partition)
				if err != nil {
					t.Fatal(err)
				}
				for _, shard := range shards {
					names = append(names, shard.name)
					all := slices.SortedFunc(slices.Values(want[shard.name]), func(a, b site.Entry) int { return cmp.Compare(a.Key, b.Key) })
					if !slices.Equal(slices.Collect(shard.all()), all) {
						t.Fatalf("%d digits in %s: shard %s has other entries", digits, name, shard.name)
					}
				}
			}
			if !slices.Equal(names, site.HashPrefixes(digits)) || s.objects.Load() != int64(len(entries)) {
				t.Errorf("%d digits in %s: got %d shards and %d objects", digits, name, len(names), s.objects.Load())
			}
		}
	}
}

// TestEntriesAreSorted by their keys as texts, even with common prefixes.
func TestEntriesAreSorted(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	pieces := []string{"a", "b", "api/v1/users/", "/", "é", "\U0010FFFF", "0123456", "01234567", "\x01"}
	for range 300 {
		keys := map[string]bool{}
		for range random.IntN(200) {
			key := ""
			for range 1 + random.IntN(8) {
				key += pieces[random.IntN(len(pieces))]
			}
			keys[key] = true
		}
		var encoded []byte
		for key := range keys {
			encoded = appendEntry(encoded, 0, &site.Entry{Key: site.Key(key)})
		}
		e := encodedEntries(encoded)
		rows := e.byShard(1)[0]
		e.sort(rows, 0)
		var got []string
		for _, r := range rows {
			key, _ := e.key(r.at)
			got = append(got, key)
		}
		if want := slices.Sorted(maps.Keys(keys)); !slices.Equal(got, want) {
			t.Fatalf("got the order %q, want %q", got, want)
		}
	}
}

// TestEntriesTakeLittleMemory: entries waiting for the file are bounded, however many are added at
// once.
func TestEntriesTakeLittleMemory(t *testing.T) {
	t.Parallel()
	s := fill(t, 1, InTempFolder, nil)
	if err := s.add(someEntries("a", 60_000)); err != nil {
		t.Fatal(err)
	}
	for i := range s.partitions {
		if got := cap(s.partitions[i].last); got > 2*spillBytes {
			t.Errorf("partition %d has a buffer of %d bytes, want %d at most", i, got, 2*spillBytes)
		}
	}
}

// TestEntriesWithoutDisk: a file that cannot be created or written fails the run.
func TestEntriesWithoutDisk(t *testing.T) {
	t.Parallel()
	closed := func() (*os.File, error) {
		file, err := InTempFolder()
		return file, errors.Join(err, file.Close())
	}
	for name, create := range map[string]func() (*os.File, error){
		"no file": func() (*os.File, error) { return nil, os.ErrPermission }, "a file that fails": closed,
	} {
		if err := newEntryStore("api/v1", 1, create).add(someEntries("a", 60_000)); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

// indexOf returns the index of a site with these objects, and with the digits of a site with
// objects objects.
func indexOf(t *testing.T, objects int64, entries []site.Entry) (*Index, *Live) {
	t.Helper()
	x := &Index{entries: fill(t, objects, nil, entries), workers: 2, Root: site.Root{
		Format: site.Format, ShardDigits: site.ShardDigits(int(objects)),
	}}
	x.digests = shards.NewDigests(x.Root.ShardDigits)
	if err := x.renderShards(t.Context(), Discard{}, x.digests.Set); err != nil {
		t.Fatal(err)
	}
	x.Root.Manifest, x.indexes = x.digests.Tree()
	bodies, texts := map[site.Key][]byte{}, map[site.Key][]byte{}
	for _, index := range x.indexes {
		bodies[site.ManifestKey(index.Name)] = index.Body
	}
	for partition := range x.entries.partitions {
		all, err := x.entries.shards(partition)
		if err != nil {
			t.Fatal(err)
		}
		for _, shard := range all {
			texts[site.ManifestKey(shard.name)] = shard.manifest(nil).Append(nil)
		}
	}
	return x, &Live{root: x.Root, read: func(key site.Key) ([]byte, error) {
		if text, ok := texts[key]; ok {
			return shards.Pack(text), nil
		}
		if body, ok := bodies[key]; ok {
			return body, nil
		}
		return nil, os.ErrNotExist
	}}
}

// manifestDigests returns the digests of the shards and indexes of a manifest.
func manifestDigests(x *Index) map[string]site.SHA256 {
	all := maps.Clone(x.Root.Manifest)
	for _, shard := range x.entries.shardNames {
		all[shard] = x.digests.Of(shard)
	}
	return all
}

// TestDiffEqualsNaiveOne: each object that differs is reported once, with the shards of the
// manifest, even between manifests with different digits.
func TestDiffEqualsNaiveOne(t *testing.T) {
	t.Parallel()
	old := someEntries("a", 3000)
	next := append(slices.Clone(old[100:]), someEntries("b", 200)...)
	for i := 0; i < len(next); i += 500 {
		next[i].Size++
	}
	sizes := []int64{1, 70_000, 2_000_000}
	indexes := map[int64]*Index{} // indexes of the next site
	for _, after := range sizes {
		indexes[after], _ = indexOf(t, after, next)
	}
	for _, before := range sizes {
		of, live := indexOf(t, before, old)
		for _, after := range sizes {
			x := indexes[after]
			want := map[site.Key]site.Reason{site.RootKey: site.Altered}
			for _, c := range site.Diff(sortedEntries(old), sortedEntries(next)) {
				want[c.Key] = c.Reason
			}
			was, is := manifestDigests(of), manifestDigests(x)
			for name, digest := range is {
				if _, ok := was[name]; !ok {
					want[site.ManifestKey(name)] = site.Added
				} else if digest != was[name] || before != after {
					want[site.ManifestKey(name)] = site.Altered
				}
			}
			for name := range was {
				if _, ok := is[name]; !ok {
					want[site.ManifestKey(name)] = site.Gone
				}
			}
			got := map[site.Key]site.Reason{}
			err := x.changes(t.Context(), live, func(c site.Change) {
				if _, twice := got[c.Key]; twice {
					t.Errorf("%s is told twice", c.Key)
				}
				got[c.Key] = c.Reason
			})
			if err != nil {
				t.Fatal(err)
			}
			p, err := x.Diff(t.Context(), live, (&folderDestination{}).Look())
			if err != nil {
				t.Fatal(err)
			}
			got[site.RootKey] = site.Altered
			if !maps.Equal(got, want) {
				t.Errorf("from %d digits to %d: got %d changes, want %d", live.root.ShardDigits, x.Root.ShardDigits, len(got), len(want))
			}
			counts := map[site.Reason]int{}
			for key, reason := range want {
				counts[reason]++
				if reason != site.Gone && p.isUnchanged(key) {
					t.Errorf("%s is taken for unchanged, but is %s", key, reason)
				}
			}
			if p.added != counts[site.Added] || p.altered != counts[site.Altered] || p.removed != counts[site.Gone] {
				t.Errorf("got %d added, %d altered, %d gone, want %v", p.added, p.altered, p.removed, counts)
			}
			if !p.isUnchanged("a/101") {
				t.Error("a/101 is taken for changed")
			}
		}
	}
}

func sortedEntries(entries []site.Entry) []site.Entry {
	return slices.SortedFunc(slices.Values(entries), func(a, b site.Entry) int { return cmp.Compare(a.Key, b.Key) })
}

// TestBucketEntriesAreReserved: no base path is accepted for a new folder and rejected afterwards.
func TestBucketEntriesAreReserved(t *testing.T) {
	t.Parallel()
	for _, e := range bucketEntries {
		for _, base := range []string{e.name, e.name + "/v1"} {
			if _, err := (site.Config{BasePath: base}).WithDefaults(); err == nil {
				t.Errorf("base path %s: got no error, want one: a folder with it is taken for a bucket", base)
			}
		}
	}
}

// TestDiffStops when the context ends.
func TestDiffStops(t *testing.T) {
	t.Parallel()
	_, live := indexOf(t, 1, someEntries("a", 100))
	x, _ := indexOf(t, 1, someEntries("b", 100))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := x.Diff(ctx, live, (&folderDestination{}).Look()); !errors.Is(err, context.Canceled) {
		t.Errorf("got the error %v, want that of the context", err)
	}
}

// TestKindOf for keys inside and outside of the API, with any base path.
func TestKindOf(t *testing.T) {
	for _, c := range []struct{ base, key, want string }{
		{"api/v1", "api/v1/users/alice.eth/details", "api/v1/users/*/details"},
		{"api/v1", "api/v1/lists/7/recommended/details", "api/v1/lists/*/recommended/details"},
		{"api/v1", "api/v1/leaderboard/followers", "api/v1/leaderboard/*"},
		{"api/v1", "api/v1/stats", "api/v1/stats"},
		{"users/lists/x", "users/lists/x/users/0x1/details", "users/lists/x/users/*/details"},
		{"api/v1", "_search/lists/7/3", "_search/lists/*"},
		{"api/v1", "_search/users/0ab", "_search/users/*"},
		{"api/v1", "_variants/leaderboard/mutuals/limit=3", "_variants/leaderboard/*"},
		{"api/v1", "_errors/none", "_errors/*"},
		{"api/v1", "openapi.json", "openapi.json"},
	} {
		if got := kindOf(site.Key(c.key), c.base+"/").String(); got != c.want {
			t.Errorf("%s below %s: got %s, want %s", c.key, c.base, got, c.want)
		}
	}
}

// TestHasher: a body of any length has the digests of site.NewEntry, whatever the hasher was used
// for before.
func TestHasher(t *testing.T) {
	h := newHasher()
	body := make([]byte, 300)
	for i := range body {
		body[i] = byte(i * i)
	}
	for i := range body {
		part := body[i*7%len(body):]
		if got, want := h.entry("k", part), site.NewEntry("k", part); got != want {
			t.Fatalf("%d bytes: got %v, want %v", len(part), got, want)
		}
	}
	if got, want := h.entry("k", nil), site.NewEntry("k", nil); got != want {
		t.Errorf("no bytes: got %v, want %v", got, want)
	}
}
