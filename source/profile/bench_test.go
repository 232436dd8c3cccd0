package profile_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/followpress/followpress/internal/testenv/upstreams"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source/profile"
)

// BenchmarkRefresh asks about as many accounts as the real network has, whose profiles have 3 kB each,
// and reads them again. B/profile is the heap that an index needs.
func BenchmarkRefresh(b *testing.B) {
	const accounts = 58_000
	w := &upstreams.ENS{MaxBulk: 50, Profiles: map[string]string{}}
	all := map[site.Address]uint32{}
	for i := range accounts {
		a := site.Address{byte(i >> 16), byte(i >> 8), byte(i)}
		all[a] = uint32(i % 100)
		w.Profiles[a.String()] = strings.Replace(upstreams.Profile(a.String(), fmt.Sprintf("%d.eth", i), 1000), `"x"`, `"`+strings.Repeat("x", 3000)+`"`, 1)
	}
	for b.Loop() {
		state := b.TempDir()
		refresh(b, state, w, profile.Options{Wanted: all})
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		n := 0
		for _, err := range profile.Profiles(state) {
			if err != nil {
				b.Fatal(err)
			}
			if n++; n == accounts/2 {
				runtime.GC()
				runtime.ReadMemStats(&after)
			}
		}
		b.ReportMetric((float64(after.HeapAlloc)-float64(before.HeapAlloc))/accounts, "B/profile")
	}
}
