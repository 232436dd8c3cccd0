package server

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
)

// A made store makes up an object of a fixed size for every key.
type madeStore struct{ size int }

func (s madeStore) Get(context.Context, site.Key) ([]byte, error) { return make([]byte, s.size), nil }

// The size that the cache reports is about the memory that it takes: the flag is in
// bytes, and most objects are small, so overhead matters.
func TestTheCacheTakesTheBytesThatItSays(t *testing.T) {
	most := servers.Rounds(8, 32) << 20
	for _, size := range []int{100, 450, 3000, 200_000} {
		t.Run(fmt.Sprintf("objects of %d bytes", size), func(t *testing.T) {
			m := newMetrics()
			o := Options{CacheBytes: uint64(most)}.withDefaults()
			c, err := newCache(&fetcher{madeStore{size}, o.Timeout, m}, o, &slots{size: 1}, m)
			if err != nil {
				t.Fatal(err)
			}
			before := heap()
			for i := range 3 * most / (size + 300) {
				o, err := c.get(t.Context(), cacheKey{version: 1, key: site.Key(fmt.Sprintf("api/v1/lists/%d/details", i))})
				if err != nil {
					t.Fatal(err)
				}
				o.release()
			}
			c.objects.CleanUp()
			took := heap() - before
			t.Logf("%.1f MiB for %.1f MiB, %d objects", float64(took)/(1<<20), float64(c.objects.WeightedSize())/(1<<20), c.objects.EstimatedSize())
			if took > uint64(most)*11/10 {
				t.Errorf("memory: got %d bytes, want at most a tenth more than the %d of the cache", took, most)
			}
			if weight := int(c.objects.WeightedSize()); weight < most*8/10 || weight > most {
				t.Errorf("a cache of %d bytes: got %d bytes in it, want 80 to 100 percent", most, weight)
			}
			runtime.KeepAlive(c)
		})
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
