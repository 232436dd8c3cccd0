package cache

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/server/internal/gate"
	"github.com/followpress/followpress/site"
)

// An object that the cache drops while its last user releases it cannot be found afterwards.
func TestTheLastReleaseOfADroppedObject(t *testing.T) {
	k := newTracker(Gates{Small: &gate.Gate{Size: 1 << 20}}, 1<<20, func() int64 { return time.Now().UnixNano() })
	o := &Object{Body: make([]byte, 10), tracker: k}
	o.Pin()
	o.state.Or(notCached) // uncached begins
	o.Release()
	k.hold(o) // uncached ends
	if got := len(k.uncached); got != 0 {
		t.Errorf("objects that nobody uses: got %d, want 0", got)
	}
	if got := k.gates.Small.Taken(); got != 0 {
		t.Errorf("bytes: got %d, want 0", got)
	}
}

// A made store makes up an object of a fixed size for every key.
type madeStore struct{ size int }

func (s madeStore) Get(context.Context, site.Key) ([]byte, error) { return make([]byte, s.size), nil }

// The size that the cache reports is about the memory that it takes: the flag is in
// bytes, and most objects are small, so overhead matters.
func TestTheCacheTakesTheBytesThatItSays(t *testing.T) {
	most := servers.Rounds(8, 32) << 20
	for _, size := range []int{100, 450, 3000, 200_000} {
		t.Run(fmt.Sprintf("objects of %d bytes", size), func(t *testing.T) {
			limits := Gates{Small: &gate.Gate{Size: 4 << 20}, Large: &gate.Gate{Size: 6 << 20}, Waiting: &gate.Gate{Size: 1}}
			fetcher := &fetch.Fetcher{Store: madeStore{size}, Timeout: 5 * time.Second, Observe: func(string, string, time.Duration) {}}
			c, err := New(fetcher, Options{Bytes: uint64(most), Gates: limits, Counts: Counts{Hit: func() {}, Missed: func() {}}})
			if err != nil {
				t.Fatal(err)
			}
			before := heap()
			for i := range 3 * most / (size + 300) {
				o, err := c.Get(t.Context(), Key{Version: 1, Key: site.Key(fmt.Sprintf("api/v1/lists/%d/details", i))})
				if err != nil {
					t.Fatal(err)
				}
				o.Release()
			}
			c.objects.CleanUp()
			took := heap() - before
			t.Logf("%.1f MiB for %.1f MiB, %d objects", float64(took)/(1<<20), float64(c.Bytes())/(1<<20), c.Len())
			if took > uint64(most)*11/10 {
				t.Errorf("memory: got %d bytes, want at most a tenth more than the %d of the cache", took, most)
			}
			if weight := int(c.Bytes()); weight < most*8/10 || weight > most {
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
