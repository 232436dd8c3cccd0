package publisher_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/followpress/followpress/internal/testenv/badway"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/publisher"
)

// A harm is a fault of connections, permanent or intermittent.
type harm struct {
	name      string
	fault     badway.Fault
	now, then time.Duration // duration of the fault and of each pause; 0 means permanent
}

// do injects the fault until stop is called.
func (h harm) do(way *badway.Way) (stop func()) {
	way.Set(h.fault)
	if h.now == 0 {
		return func() {}
	}
	ended := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for {
			time.Sleep(h.now)
			way.Set(badway.Fault{})
			select {
			case <-time.After(h.then):
			case <-ended:
				return
			}
			way.Set(h.fault)
		}
	})
	return func() { close(ended); group.Wait() }
}

// wayTo returns a proxy to a server that can inject faults.
func wayTo(t testing.TB, server *servers.Server) *badway.Way {
	t.Helper()
	return badway.To(t, strings.TrimPrefix(server.Endpoint, "http://"))
}

// Over a bad connection a run takes longer but succeeds.
func TestABadConnection(t *testing.T) {
	first := demo(t)
	second := first.Changed(t, 2, " ").WithoutLists(t, 3)
	harms := []harm{
		{"slow answers", badway.Fault{Latency: 20 * time.Millisecond}, 0, 0},
		{"few bytes a second up", badway.Fault{Up: true, Rate: 200_000}, 0, 0},
		{"few bytes a second down", badway.Fault{Rate: 50_000}, 0, 0},
		{"answers that break off", badway.Fault{Cut: 10_000}, 0, 0},
		{"requests that break off", badway.Fault{Up: true, Cut: 30_000}, 0, 0},
		{"resets", badway.Fault{Reset: true}, 50 * time.Millisecond, 2 * time.Second},
		{"answers that never come", badway.Fault{Hang: true}, 100 * time.Millisecond, 2 * time.Second},
	}
	onServers(t, func(t *testing.T, server *servers.Server) {
		var group sync.WaitGroup
		for _, h := range harms {
			p, way := newPlace(t, server, ""), wayTo(t, server)
			group.Go(func() {
				stop := h.do(way)
				defer stop()
				var retries int64
				runs := []memory{first, second, second}
				if h.fault.Cut > 0 { // the third run would doubt the first's requests, and list: no answer may be as long
					runs = runs[:2]
				}
				for _, m := range runs {
					report, err := publisher.Publish(t.Context(), m, unpacking(false, p.openAt(t, way.Endpoint(), nil)), publisher.Options{Concurrency: 16})
					if err != nil {
						t.Errorf("%s: got %v, want no error", h.name, err)
						return
					}
					retries += report.Retries
					p.holds(t, m)
				}
				if breaks := h.fault.Latency == 0 && h.fault.Rate == 0; breaks && retries == 0 {
					t.Errorf("%s: got no retries, want some", h.name)
				}
			})
		}
		group.Wait()
	})
}

// A run survives an outage of the server, even one longer than the lease, if no other publisher
// took the lock.
func TestAServerThatIsAwayForAWhile(t *testing.T) {
	first := demo(t)
	onServers(t, func(t *testing.T, server *servers.Server) {
		var begun, group sync.WaitGroup
		var places []place
		for _, lease := range []time.Duration{time.Second, publisher.DefaultLease} {
			p := newPlace(t, server, "")
			places = append(places, p)
			bucket := unpacking(false, p.open(t, nil))
			begun.Add(1)
			group.Go(func() {
				o := publisher.Options{Lease: lease, Concurrency: 1, Progress: onStage{"upload", begun.Done}}
				if report, err := publisher.Publish(t.Context(), first, bucket, o); err != nil || report.Retries == 0 {
					t.Errorf("with a lease of %v: got %v, %d retries, want success after retries", lease, err, report.Retries)
				}
			})
		}
		begun.Wait()
		server.Stop()
		time.Sleep(10 * time.Second)
		server.Start()
		group.Wait()
		for _, p := range places {
			p.holds(t, first)
		}
	})
}

// onStage calls a function when a stage begins.
type onStage struct {
	name string
	do   func()
}

func (s onStage) Stage(name string, _ int64) {
	if name == s.name {
		s.do()
	}
}
func (onStage) AddBytes(int64, int64) {}
