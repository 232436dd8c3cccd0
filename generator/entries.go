package generator

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/site"
)

// An entryTable has the entries of all objects of a site, each in 32 bytes and a little: folders and
// names, the two parts of a key, recur.
type entryTable struct {
	all     []smallEntry
	folders []string // up to and including the last slash
	recent  [4]uint32
	names   []string
	nameOf  map[string]uint32

	shardNames []string
	offsets    []uint32 // by shard; index of its first entry in order; the last element is their number
	order      []uint32 // entries by shard; indexes into all
}

// A smallEntry is a site.Entry whose key is in an entryTable.
type smallEntry struct {
	folder, name uint32
	size         int64
	md5          site.MD5
}

func newEntryTable(size int64) *entryTable {
	return &entryTable{all: make([]smallEntry, 0, size), folders: []string{""}, nameOf: map[string]uint32{}}
}

func (t *entryTable) add(entries []site.Entry) {
	for _, e := range entries {
		at := strings.LastIndexByte(string(e.Key), '/') + 1
		t.all = append(t.all, smallEntry{t.folder(string(e.Key[:at])), t.name(string(e.Key[at:])), e.Size, e.MD5})
	}
}

// folder returns the number of a folder. It finds only those that were used recently, because successive
// objects are often in the same few; any other gets one more number.
func (t *entryTable) folder(folder string) uint32 {
	for _, n := range t.recent {
		if t.folders[n] == folder {
			return n
		}
	}
	n := uint32(len(t.folders))
	t.folders = append(t.folders, strings.Clone(folder))
	copy(t.recent[1:], t.recent[:])
	t.recent[0] = n
	return n
}

func (t *entryTable) name(name string) uint32 {
	if n, ok := t.nameOf[name]; ok {
		return n
	}
	n := uint32(len(t.names))
	name = strings.Clone(name) // do not keep the whole key in memory
	t.nameOf[name] = n
	t.names = append(t.names, name)
	return n
}

func (t *entryTable) entry(n uint32) site.Entry {
	e := &t.all[n]
	return site.Entry{Key: site.Key(t.folders[e.folder] + t.names[e.name]), Size: e.size, MD5: e.md5}
}

// bytes is the size of all objects.
func (t *entryTable) bytes() (sum int64) {
	for i := range t.all {
		sum += t.all[i].size
	}
	return sum
}

// divide sorts the entries into the shards of a manifest.
func (t *entryTable) divide(ctx context.Context, digits, workers int) error {
	t.shardNames = site.HashPrefixes(digits)
	shardOf := make([]uint16, len(t.all))
	err := inChunks(ctx, workers, len(t.all), func(i int) error {
		n, err := bucketNumber(site.ManifestShard(t.entry(uint32(i)).Key, digits))
		shardOf[i] = n
		return err
	})
	if err != nil {
		return err
	}
	t.offsets, t.order = groupByBucket(shardOf, len(t.shardNames))
	return nil
}

// shard returns a shard of the manifest.
func (t *entryTable) shard(n int) site.Manifest {
	m := site.Manifest{Shard: t.shardNames[n], Objects: make([]site.Entry, 0, t.offsets[n+1]-t.offsets[n])}
	for _, i := range t.order[t.offsets[n]:t.offsets[n+1]] {
		m.Objects = append(m.Objects, t.entry(i))
	}
	slices.SortFunc(m.Objects, func(a, b site.Entry) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return m
}

// inChunks calls f for 0 to n-1, from as many goroutines as there are workers.
func inChunks(ctx context.Context, workers, n int, f func(i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	const chunk = 4096
	for from := 0; from < n; from += chunk {
		group.Go(func() error {
			for i := from; i < min(from+chunk, n); i++ {
				if err := f(i); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	return group.Wait()
}
