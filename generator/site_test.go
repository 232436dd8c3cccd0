package generator_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/afero"
	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/fixtures/graph"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/site"
)

// opened opens the site of a snapshot.
func opened(t testing.TB, s snapshot, o generator.Options) *generator.Site {
	t.Helper()
	from, report, err := generator.Open(t.Context(), s.fs(), o)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(report.String(), "not written") || report.Written != (summary.WriteReport{}) {
		t.Errorf("got %s, want a report of a site that is not written", report)
	}
	t.Cleanup(func() {
		if err := from.Close(); err != nil {
			t.Error(err)
		}
	})
	return from
}

// TestOpenedEqualsWritten reads every object of many sites, from many goroutines in random order,
// and compares it with the written one. Keys of other sites are absent.
func TestOpenedEqualsWritten(t *testing.T) {
	t.Parallel()
	lookup := smallEFP
	lookup.Config.Names, lookup.Config.BasePath = site.NamesLookup, "graph/v2.0"
	configs := map[string]generator.Options{"spec": small, "efp": smallEFP, "efp, names looked up": lookup,
		"spec with the explorer": exploring(small), "efp with the explorer": exploring(smallEFP), "efp with pages": paged(smallEFP)}
	snapshots := map[string]snapshot{
		"empty":      emptySnapshot(),
		"long lists": syntheticSnapshot(t, graph.Options{Accounts: 2600, Lists: 3, Records: 4000, Seed: 5}),
		"owners":     oneOwner(),
	}
	for seed := range uint64(servers.Rounds(1, 2)) {
		snapshots[fmt.Sprint("hostile ", seed)] = randomSnapshot(2000+seed,
			shape{accounts: 25, lists: 18, records: 350, events: 5, badges: 60, hostile: true})
	}
	for config, o := range configs {
		t.Run(config, func(t *testing.T) {
			t.Parallel()
			snapshots := maps.Clone(snapshots)
			switch config {
			case "efp": // names looked up have the same heads; spec has none
				snapshots["long heads"] = hub(1030)
			case "efp, names looked up", "spec with the explorer", "efp with the explorer", "efp with pages": // long lists are the same as without
				delete(snapshots, "long lists")
			}
			sites, others := map[string]objects{}, []site.Key(nil)
			for name, s := range snapshots {
				sites[name] = inMemory(t, s, o)
				for i, key := range sites[name].Keys(t) {
					if i%211 == 0 {
						others = append(append(others, key), likeKey(key)...)
					}
				}
			}
			for name, s := range snapshots {
				from := opened(t, s, o)
				var readers errgroup.Group
				for keys := range slices.Chunk(slices.AppendSeq(slices.Clone(others), maps.Keys(sites[name])), 1000) {
					readers.Go(func() error { return compareObjects(t.Context(), from, keys, sites[name]) })
				}
				if err := readers.Wait(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

// TestLiveEqualsWritten does the same with sites that were not rendered before: of random
// snapshots, of the demo and of the conformance cases. They have no manifest, and a live root.
func TestLiveEqualsWritten(t *testing.T) {
	t.Parallel()
	snapshots := map[string]snapshot{"empty": emptySnapshot(), "owners": oneOwner(), "long heads": hub(1030)}
	for seed := range uint64(servers.Rounds(1, 3)) {
		snapshots[fmt.Sprint("hostile ", seed)] = randomSnapshot(3000+seed,
			shape{accounts: 25, lists: 18, records: 350, events: 5, badges: 60, hostile: true})
	}
	folders := map[string]afero.Fs{}
	for name, s := range snapshots {
		folders[name] = s.fs()
	}
	for name, files := range committedSnapshots(t) {
		folders[name] = afero.FromIOFS{FS: files}
	}
	for config, o := range map[string]generator.Options{"spec": exploring(small), "efp": exploring(smallEFP)} {
		for name, folder := range folders {
			if name == "long heads" && config == "spec" {
				continue // it has none
			}
			t.Run(config+", "+name, func(t *testing.T) {
				t.Parallel()
				files, _, err := generator.ToMemory(t.Context(), folder, o)
				if err != nil {
					t.Fatal(err)
				}
				all, err := memsite.Read(files)
				if err != nil {
					t.Fatal(err)
				}
				live, report, err := generator.OpenLive(t.Context(), folder, o)
				if err != nil {
					t.Fatal(err)
				}
				want := all.Root(t)
				want.Live, want.Manifest, want.Inputs, want.Counts.Bytes = true, nil, nil, 0
				body, err := live.Get(t.Context(), site.RootKey)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := site.ParseServedRoot(body); err != nil || !got.Equal(&want) {
					t.Errorf("the root: got %+v, %v, want %+v", got, err, want)
				}
				if report.Counts != want.Counts {
					t.Errorf("the counts of the report: got %+v, want %+v", report.Counts, want.Counts)
				}
				objects := all.WithoutIndex()
				keys := slices.Collect(maps.Keys(all))
				keys = slices.DeleteFunc(keys, func(key site.Key) bool { return key == site.RootKey })
				if err := compareObjects(t.Context(), live, keys, objects); err != nil {
					t.Error(err)
				}
				if err := compareAdmitted(t.Context(), live, objects); err != nil {
					t.Error(err)
				}
				if err := live.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// compareAdmitted reads some objects and all large ones, whose memory is admitted first, many at a
// time, and compares them with want.
func compareAdmitted(ctx context.Context, from *generator.Site, want objects) error {
	var readers errgroup.Group
	readers.SetLimit(50)
	for i, key := range slices.Sorted(maps.Keys(want)) {
		wanted := want[key]
		if i%20 > 0 && len(wanted) < 10<<10 {
			continue
		}
		readers.Go(func() error {
			var admitted []int64
			body, err := from.GetAdmitted(ctx, key, func(_ context.Context, size int64) error {
				admitted = append(admitted, size)
				return nil
			})
			if err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			if string(body) != wanted || len(admitted) != 1 || admitted[0] < int64(len(wanted))/4 {
				return fmt.Errorf("%s: got %d bytes after %d were admitted, want the object of %d bytes after about as many", key, len(body), admitted, len(wanted))
			}
			refused := errors.New("no memory")
			if body, err := from.GetAdmitted(ctx, key, func(context.Context, int64) error { return refused }); !errors.Is(err, refused) || body != nil {
				return fmt.Errorf("%s without memory: got %d bytes, %w, want %w", key, len(body), err, refused)
			}
			return nil
		})
	}
	return readers.Wait()
}

// likeKey returns keys similar to another key; few sites have any of them.
func likeKey(key site.Key) (keys []site.Key) {
	segments := strings.Split(string(key), "/")
	for i := range segments {
		for _, other := range []string{"99999999", "head", "0", "00", "f0f0", "0x" + strings.Repeat("e", 40), "nobody.eth", "limit=11"} {
			changed := slices.Clone(segments)
			changed[i] = other
			keys = append(keys, site.Key(strings.Join(changed, "/")))
		}
	}
	return append(keys, key+"0", key+"/0", "/"+key, key[1:])
}

// compareObjects reads objects and compares them with want.
func compareObjects(ctx context.Context, from *generator.Site, keys []site.Key, want objects) error {
	for _, key := range keys {
		body, err := from.Get(ctx, key)
		wanted, ok := want[key]
		switch {
		case !ok && !errors.Is(err, site.ErrNotFound):
			return fmt.Errorf("%s: got %.200s and %s, want no object", key, body, fmt.Sprint(err))
		case ok && err != nil:
			return err
		case string(body) != wanted:
			return fmt.Errorf("%s: got %.200s\nwant %.200s", key, body, wanted)
		}
	}
	return nil
}

// oneOwner returns a graph in which one account has many lists, one of them primary.
func oneOwner() snapshot {
	s := emptySnapshot().adding("accounts", `{"address":"`+alice+`","primary_list":"7","ens":{"name":"alice.eth"}}`)
	s = s.adding("lists", repeatedRows(80, func(i int) string { return fmt.Sprintf(`{"token_id":"%d","owner":"%s"}`, i, alice) })...)
	return s.adding("records", repeatedRows(400, func(i int) string {
		return recordRow(itoa(i%80), fmt.Sprintf("0x%040x", i/7), []string{"", `"block"`, `"x"`}[i%3])
	})...)
}

// TestOpenIsStopped: a site is neither opened nor read after the context has ended.
func TestOpenIsStopped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	from, _, err := generator.Open(ctx, hub(20).fs(), small)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := from.Get(ctx, site.RootKey); !errors.Is(err, context.Canceled) {
		t.Errorf("read: got %v, want the end of the context", err)
	}
	if _, _, err := generator.Open(ctx, hub(20).fs(), small); !errors.Is(err, context.Canceled) {
		t.Errorf("open: got %v, want the end of the context", err)
	}
}

// BenchmarkShard reads the shards of a short list and of a long one: the time per shard does not depend
// on the length of the list.
func BenchmarkShard(b *testing.B) {
	for api, load := range map[string]func(context.Context, afero.Fs, int) (generator.Graph, error){
		site.APISpec: generator.Load, site.APIEFP: generator.LoadEFP,
	} {
		for _, follows := range []int{10_000, 80_000} {
			b.Run(fmt.Sprintf("%s/%d", api, follows), func(b *testing.B) {
				rows := repeatedRows(follows, func(i int) string { return recordRow("1", fmt.Sprintf("0x%040x", i+1), "") })
				graph, err := load(b.Context(), beforeRefreshes().adding("records", rows...).fs(), 2)
				if err != nil {
					b.Fatal(err)
				}
				from, err := graph.Reader(b.Context(), site.Config{API: api})
				if err != nil {
					b.Fatal(err)
				}
				for n := 0; b.Loop(); n++ {
					if _, err := from.Get(b.Context(), site.SearchShardKey("1", n%(follows/site.SearchShardSize))); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
