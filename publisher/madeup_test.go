package publisher

import (
	"archive/tar"
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/shards"
	"github.com/followpress/followpress/storage"
)

// A madeUp site has any number of objects, which it generates on reading. Each takes four bytes of
// memory.
type madeUp struct {
	root    site.Root
	body    []byte // body of the root
	indexes []shards.Index
	order   []uint32         // objects, by shard
	starts  []int            // where each shard begins in order
	other   func(i int) bool // objects whose bodies differ from those of another made-up site
}

// madeUpKinds is the number of objects of each list: a search shard, four of the list, and one of a
// user.
const madeUpKinds = 6

func makeUp(t testing.TB, objects int, other func(i int) bool) *madeUp {
	t.Helper()
	return makeUpIn(t, objects, site.ShardDigits(objects), other)
}

// makeUpIn is makeUp with a given number of shard digits.
func makeUpIn(t testing.TB, objects, digits int, other func(i int) bool) *madeUp {
	t.Helper()
	config, err := site.Config{}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	m := &madeUp{other: other, order: make([]uint32, objects)}
	m.root = site.Root{Format: site.Format, AsOf: "2026-11-20T00:00:00Z", Config: config, BucketDigits: 1,
		ShardDigits: digits, HeaderRules: config.HeaderRules(),
		Counts: site.Counts{Objects: objects}}
	numbers := make([]uint16, objects)
	m.starts = make([]int, 1<<(4*m.root.ShardDigits)+1)
	for i := range objects {
		n, _ := strconv.ParseUint(site.ManifestShard(m.key(i), m.root.ShardDigits), 16, 16)
		numbers[i] = uint16(n)
		m.starts[n+1]++
	}
	for i := 1; i < len(m.starts); i++ {
		m.starts[i] += m.starts[i-1]
	}
	next := slices.Clone(m.starts)
	for i, shard := range numbers {
		m.order[next[shard]] = uint32(i)
		next[shard]++
	}
	digests := shards.NewDigests(digits)
	for _, shard := range site.HashPrefixes(m.root.ShardDigits) {
		if err := digests.Set(shard, site.Sum256(m.shardText(shard))); err != nil {
			t.Fatal(err)
		}
	}
	m.root.Manifest, m.indexes = digests.Tree()
	if m.body, err = m.root.Encode(); err != nil {
		t.Fatal(err)
	}
	return m
}

// key returns the key of object i. Objects are in the order of their keys.
func (m *madeUp) key(i int) site.Key {
	lists := (len(m.order) + madeUpKinds - 1) / madeUpKinds
	switch {
	case i < lists:
		return site.SearchShardKey(strconv.Itoa(10_000_000+i), 0)
	case i < 5*lists:
		i -= lists
		return m.root.Config.ListKey(strconv.Itoa(10_000_000+i/4), []site.ListObject{site.Badges, site.Details, site.Records, site.SearchFollowing}[i%4])
	}
	return m.root.Config.UserKey(fmt.Sprintf("0x%040x", i))
}

func (m *madeUp) object(i int) []byte {
	b := strconv.AppendInt([]byte(`{"object":`), int64(i), 10)
	if m.other(i) {
		b = append(b, `,"other":true`...)
	}
	return append(b, '}')
}

func (m *madeUp) entry(i int) site.Entry {
	body := m.object(i)
	return site.NewEntry(m.key(i), body)
}

// shard returns an object of the manifest: a shard or an index.
func (m *madeUp) shard(name string) []byte {
	for _, index := range m.indexes {
		if index.Name == name {
			return index.Body
		}
	}
	return shards.Pack(m.shardText(name))
}

func (m *madeUp) shardText(name string) []byte {
	n, _ := strconv.ParseUint(name, 16, 16)
	objects := m.order[m.starts[n]:m.starts[n+1]] // by key
	entries := make([]site.Entry, len(objects))
	for at, i := range objects {
		entries[at] = m.entry(int(i))
	}
	return site.Manifest{Shard: name, Objects: entries}.Append(nil)
}

func (m *madeUp) Get(_ context.Context, key site.Key) ([]byte, error) {
	if key == site.RootKey {
		return m.body, nil
	}
	if shard, ok := strings.CutPrefix(string(key), string(site.ManifestKey(""))); ok {
		return m.shard(shard), nil
	}
	i := sort.Search(len(m.order), func(i int) bool { return m.key(i) >= key })
	if i == len(m.order) || m.key(i) != key {
		return nil, storage.ErrNotFound
	}
	return m.object(i), nil
}

// tar writes the site to a tar file, in the order of the generator: objects, manifest, root.
func (m *madeUp) tar(t testing.TB) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "site.tar")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	buffered := bufio.NewWriterSize(file, 1<<20)
	archive := tar.NewWriter(buffered)
	add := func(key site.Key, body []byte) {
		header := archive.WriteHeader(&tar.Header{Name: string(key), Mode: 0o644, Size: int64(len(body)), Format: tar.FormatUSTAR})
		if _, err := archive.Write(body); header != nil || err != nil {
			t.Fatal(header, err)
		}
	}
	for i := range m.order {
		add(m.key(i), m.object(i))
	}
	for _, shard := range shards.Names(&m.root) {
		add(site.ManifestKey(shard), m.shard(shard))
	}
	add(site.RootKey, m.body)
	if err := errors.Join(archive.Close(), buffered.Flush(), file.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// A discarding bucket holds a made-up site, or nothing. It counts puts and deletes, and stores only
// the lock, the mark and the root.
type discarding struct {
	holds         *madeUp // nil if the bucket is empty
	foreign       int     // number of foreign objects that the bucket holds
	puts, deletes atomic.Int64
	mu            sync.Mutex
	kept          map[site.Key][]byte
}

func discardingOver(holds *madeUp) *discarding {
	d := &discarding{holds: holds, kept: map[site.Key][]byte{}}
	if holds != nil {
		d.kept[site.RootKey] = holds.body
	}
	return d
}

func (d *discarding) Read(ctx context.Context, key site.Key) (body []byte, info storage.Info, err error) {
	d.mu.Lock()
	body, ok := d.kept[key]
	d.mu.Unlock()
	if !ok && d.holds == nil || !ok && (key == site.LockKey || key == site.MarkKey) {
		return nil, info, storage.ErrNotFound
	} else if !ok {
		body, err = d.holds.Get(ctx, key)
	}
	return body, storage.Info{Key: key, Size: int64(len(body)), ETag: site.Sum(body).String(), Modified: d.Now()}, err
}

func (d *discarding) Put(_ context.Context, o storage.Object, _ storage.Condition) (string, error) {
	if o.Key == site.LockKey || o.Key == site.MarkKey || o.Key == site.RootKey {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.kept[o.Key] = o.Body
	}
	d.puts.Add(1)
	return o.MD5.String(), nil
}

func (d *discarding) Delete(_ context.Context, keys []site.Key) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, key := range keys {
		delete(d.kept, key)
	}
	d.deletes.Add(int64(len(keys)))
	return nil
}

// List lists the bucket in the order of keys.
func (d *discarding) List(_ context.Context, prefix, after site.Key, found func(storage.Info) error) error {
	list := func(key site.Key, body []byte) error {
		if key <= after || !strings.HasPrefix(string(key), string(prefix)) {
			return nil
		}
		return found(storage.Info{Key: key, Size: int64(len(body)), ETag: site.Sum(body).String(), Modified: time.Unix(1_700_000_000, 0)})
	}
	kept := slices.Sorted(maps.Keys(d.kept))
	if d.holds == nil { // a first publish
		for _, key := range kept {
			if err := list(key, d.kept[key]); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range len(d.holds.order) {
		key := d.holds.key(i)
		for len(kept) > 0 && kept[0] < key {
			if err := list(kept[0], d.kept[kept[0]]); err != nil {
				return err
			}
			kept = kept[1:]
		}
		if i == 0 {
			for _, shard := range shards.Names(&d.holds.root) {
				if err := list(site.ManifestKey(shard), d.holds.shard(shard)); err != nil {
					return err
				}
			}
		}
		if err := list(key, d.holds.object(i)); err != nil {
			return err
		}
	}
	for i := range d.foreign {
		if err := list(site.Key(fmt.Sprintf("somebody-elses/%040d", i)), nil); err != nil {
			return err
		}
	}
	return nil
}

func (d *discarding) Now() time.Time { return time.Unix(1_700_100_000, 0) }

// liveDuring returns the largest growth of live memory while use ran. It may miss allocations of a
// few milliseconds.
func liveDuring(use func()) (bytes int64) {
	live := func() int64 {
		sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(sample)
		return int64(sample[0].Value.Uint64())
	}
	runtime.GC()
	before, most := live(), int64(0)
	ended := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-ended:
				return
			case <-time.After(5 * time.Millisecond):
				most = max(most, live())
			}
		}
	})
	use()
	close(ended)
	watching.Wait()
	return most - before
}

// BenchmarkManyObjects measures the memory that a run takes per object, for PUBLISH_OBJECTS
// objects. The tar file takes a kilobyte of TMPDIR for each.
func BenchmarkManyObjects(b *testing.B) {
	n, err := strconv.Atoi(cmp.Or(os.Getenv("PUBLISH_OBJECTS"), "200000"))
	if err != nil {
		b.Fatal(err)
	}
	live, next := makeUp(b, n, func(int) bool { return false }), makeUp(b, n, func(i int) bool { return i%100 == 7 })
	archive := sync.OnceValue(func() string { return next.tar(b) })
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"first", func() error {
			_, err := Publish(b.Context(), next, discardingOver(nil), Options{})
			return err
		}},
		{"first_of_a_tar", func() error {
			from, err := storage.OpenSite(context.Background(), archive(), storage.S3Options{})
			if err != nil {
				return err
			}
			_, err = Publish(b.Context(), from, discardingOver(nil), Options{})
			return errors.Join(err, from.Close())
		}},
		{"one_percent", func() error {
			_, err := Publish(b.Context(), next, discardingOver(live), Options{})
			return err
		}},
		{"resumed", func() error {
			bucket := discardingOver(live)
			bucket.kept[site.MarkKey] = []byte("{}")
			_, err := Publish(b.Context(), next, bucket, Options{})
			return err
		}},
		{"verify", func() error {
			v, err := Verify(b.Context(), discardingOver(live), Options{})
			if err == nil && !v.Good() {
				err = errors.New(v.String())
			}
			return err
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			most := int64(0)
			if c.name == "first_of_a_tar" {
				archive()
			}
			resetPeak(b)
			for b.Loop() {
				most = max(most, liveDuring(func() { err = c.do() }))
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(most)/float64(n), "B/object")
			b.ReportMetric(float64(most)/(1<<20), "MiB-live")
			b.ReportMetric(peak(b), "MiB-peak")
		})
	}
}

// resetPeak returns memory to the system and resets peak.
func resetPeak(b *testing.B) {
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		b.Log(err)
	}
}

// peak returns the maximum memory of this process since resetPeak, in MiB; on Linux.
func peak(b *testing.B) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Log(err)
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	kib := 0.
	if _, err := fmt.Sscan(after, &kib); err != nil {
		b.Log(err)
	}
	return kib / 1024
}
