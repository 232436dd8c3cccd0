package transfer

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/followpress/followpress/publisher/internal/plan"
	"github.com/followpress/followpress/publisher/internal/spool"
	"github.com/followpress/followpress/site"
)

// Batches hold every object once, in order, within their bounds. Each names the shards of its objects.
// Every shard ends once, in order, after its batches have begun.
func TestBatches(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for round := range 100 {
		p := plan.New(spool.New(slog.New(slog.DiscardHandler), spool.Memory), true)
		var all []site.Key
		shards := random.IntN(20)
		for i := range shards {
			name := string(rune('a' + i))
			p.Shard(name)
			for j := range random.IntN(800) * random.IntN(3) {
				key := site.Key(fmt.Sprintf("%s/%d", name, j))
				p.Add(site.Config{}, name, site.Change{Entry: site.Entry{Key: key, Size: int64(random.IntN(20_000))}, Reason: site.Altered})
				all = append(all, key)
			}
		}
		transfer := &Transfer{Packs: round%2 == 0}
		begun, ended := make([]int, shards), 0
		var got []site.Key
		batches := transfer.batches(p, func(i int) {
			if begun[i]++; i < ended {
				t.Fatalf("shard %d: got a batch after its end", i)
			}
		}, func(i int) {
			if i != ended {
				t.Fatalf("shards: got the end of %d, want that of %d", i, ended)
			}
			ended++
		})
		named := make([]int, shards)
		for batch, err := range batches {
			if err != nil {
				t.Fatal(err)
			}
			holds := map[int]bool{}
			for _, e := range batch.entries {
				holds[int(rune(e.Key[0])-'a')] = true
				got = append(got, e.Key)
			}
			if n := len(batch.entries); n > packObjects || n > 1 && (!transfer.Packs || sizeOf(batch.entries) > packBytes) {
				t.Fatalf("batch: got %d entries, %d bytes, want what fits into one", n, sizeOf(batch.entries))
			}
			for _, i := range batch.shards {
				named[i]++
				delete(holds, i)
			}
			if len(holds) > 0 {
				t.Fatalf("shards of a batch: got others, want %v as its entries", holds)
			}
		}
		if !slices.Equal(got, all) || !slices.Equal(named, begun) || ended != shards {
			t.Fatal("entries or shards got lost")
		}
	}
}
