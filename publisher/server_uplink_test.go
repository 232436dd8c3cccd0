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

// Over an uplink that is too slow for 64 requests at once, few requests time out. All at once they would, since
// each would get a few kilobytes per second. How long a run takes is measured on virtual time, by TestSlowUplink.
func TestASlowUplink(t *testing.T) {
	const rate, lists, size = 200e3, 16, 250e3
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
		t.Logf("it took %v, at least %v", time.Since(begun), time.Duration(bytes/rate*float64(time.Second)))
		// A server that stalls for a moment may cost a few requests their patience, but not most of them.
		const few = lists / 4
		if report.Retries > few {
			t.Errorf("got %d retries, want at most %d", report.Retries, few)
		}
		p.holds(t, next)
	})
}
