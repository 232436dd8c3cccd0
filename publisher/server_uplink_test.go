package publisher_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
)

// Over an uplink that is too slow for --concurrency requests at once, a run takes
// hardly longer than its bytes. All at once they would time out, since each would get a
// few kilobytes per second.
func TestASlowUplink(t *testing.T) {
	t.Parallel()
	const rate, lists, size = 200e3, 32, 250e3
	next := demo(t).With(t, func(objects memory, _ *site.Root) {
		for n := range lists {
			objects[site.SearchShardKey(fmt.Sprint(1_000_000+n), 0)] = fmt.Sprint(n) + strings.Repeat(".", size)
		}
	})
	var bytes float64
	for _, body := range next {
		bytes += float64(len(body) + 500) // with headers
	}
	onServers(t, func(t *testing.T, server *servers.Server) {
		p, proxy := newPlace(t, server, ""), server.Proxy(t)
		proxy.Uplink(rate)
		begun := time.Now()
		report, err := publisher.Publish(t.Context(), next, p.openAt(t, proxy.Endpoint, nil), publisher.Options{Bulk: publisher.BulkOff, Patience: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		took, least := time.Since(begun), time.Duration(bytes/rate*float64(time.Second))
		t.Logf("it took %v, at least %v", took, least)
		// A server that stalls for a moment may cost a few requests their patience, but not most of them.
		const few = lists / 8
		if most := least*120/100 + 5*time.Second; took > most || report.Retries > few {
			t.Errorf("got %v and %d retries, want at most %v and %d", took, report.Retries, most, few)
		}
		p.holds(t, next)
	})
}
