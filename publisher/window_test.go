package publisher

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/publisher/internal/lock"
	"github.com/followpress/followpress/publisher/internal/transfer"
	"github.com/followpress/followpress/site"
)

// However long the lists, at most Options.Concurrency requests are in flight, of all kinds except
// those for the lock. If nothing limits them there are exactly that many.
func TestConcurrencyIsAPromise(t *testing.T) {
	busy := temporary(t)
	first := siteOf(t, merge(objectsOf(200, ""), searchesOf(100, 12, 0)))
	second := siteOf(t, merge(objectsOf(150, "anew"), searchesOf(70, 9, 10)), func(r *site.Root) { r.ShardDigits = 2 })
	for _, concurrency := range []int{1, 2, 8, 64} {
		for _, archives := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				far := newFarBucket(busy)
				o, bucket := Options{Concurrency: concurrency, packFrom: 1}, far.unpacking(archives)
				for _, s := range []memorySite{first, second} {
					publish(t, s, bucket, o)
					far.holds(t, s)
				}
				far.objects[site.MarkKey] = lock.OwnObject(site.MarkKey, []byte("{}")) // as after a run that was cut off
				delete(far.objects, listKey(3, site.Details))
				publish(t, second, bucket, o)
				delete(far.objects, listKey(4, site.Details))
				if _, err := Repair(t.Context(), second, bucket, o); err != nil {
					t.Fatal(err)
				}
				if v, err := Verify(t.Context(), far, o); err != nil || !v.Good() {
					t.Fatalf("Verify: got %v, %v, want a good bucket", v, err)
				}
				if want := concurrency; far.most > want || !archives && far.most < want {
					t.Errorf("archives %t: got %d requests in flight, want %d", archives, far.most, want)
				}
			})
		}
	}
}

func bytesOf(m memorySite) (bytes int64) {
	for _, body := range m {
		bytes += int64(len(body))
	}
	return bytes
}

// constant returns a constant rate of a link.
func constant(rate float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return rate }
}

// Over a slow uplink a run takes hardly longer than its bytes, and retries no request.
func TestSlowUplink(t *testing.T) {
	busy := temporary(t)
	small := objectsOf(2000, strings.Repeat(".", 1000))
	for _, c := range []struct {
		name     string
		rate     float64
		objects  map[site.Key]string
		archives bool
	}{
		{"long lists at 200 KB/s", 200e3, searchesOf(64, 4, 100e3), false},
		{"small objects, then long lists at 200 KB/s", 200e3, merge(small, searchesOf(10, 4, 400e3)), false},
		{"small objects, then long lists at 30 KB/s", 30e3, merge(small, searchesOf(20, 4, 100e3)), false},
		{"one large object at 30 KB/s", 30e3, merge(objectsOf(100, ""), searchesOf(1, 1, 10e6)), false},
		{"archives at 200 KB/s", 200e3, merge(small, searchesOf(10, 4, 400e3)), true},
		{"archives at 3 MB/s", 3e6, merge(small, searchesOf(30, 4, 400e3)), true},
		{"archives at 30 KB/s", 30e3, merge(small, searchesOf(20, 4, 100e3)), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			next := siteOf(t, c.objects)
			synctest.Test(t, func(t *testing.T) {
				far := newFarBucket(busy)
				far.rate, far.latency = constant(c.rate), 100*time.Millisecond
				begun := time.Now()
				report, err := Publish(t.Context(), next, far.unpacking(c.archives), Options{packFrom: 1})
				if err != nil {
					t.Fatal(err)
				}
				took, least := time.Since(begun), time.Duration(float64(bytesOf(next))/c.rate*float64(time.Second))
				if c.archives { // headers
					least = time.Duration(float64(far.sent) / c.rate * float64(time.Second))
				}
				if most := least*110/100 + 5*time.Second; took > most || report.Retries > 0 {
					t.Errorf("got %v, at least %v, and %d retries, want at most %v and none", took, least, report.Retries, most)
				}
				far.holds(t, next)
			})
		})
	}
}

// With enough bandwidth the limits cost no time, however slow the server answers.
func TestFastUplink(t *testing.T) {
	busy := temporary(t)
	next := siteOf(t, merge(objectsOf(servers.Rounds(1500, 5000), strings.Repeat(".", 1000)), searchesOf(50, 4, 400e3)))
	for _, c := range []struct {
		latency  time.Duration
		archives bool
		atOnce   int
	}{
		{time.Millisecond, false, 64},
		{100 * time.Millisecond, false, 64},
		{time.Second, false, 64},
		{time.Second, true, transfer.PacksInFlight},
		{12 * time.Second, true, transfer.PacksInFlight},
	} {
		synctest.Test(t, func(t *testing.T) {
			far := newFarBucket(busy)
			far.latency = c.latency
			begun := time.Now()
			publish(t, next, far.unpacking(c.archives), Options{packFrom: 1})
			took, least := time.Since(begun), time.Duration(far.total/c.atOnce)*c.latency
			if most := least + 40*c.latency; took > most {
				t.Errorf("%v, archives %t: got %v, want at most %v", c.latency, c.archives, took, most)
			}
		})
	}
}

// A link that becomes a hundred times slower in the middle of a run costs a few requests.
func TestUplinkThatBecomesSlow(t *testing.T) {
	busy := temporary(t)
	next := siteOf(t, searchesOf(100, 4, 300e3))
	synctest.Test(t, func(t *testing.T) {
		far := newFarBucket(busy)
		far.rate = func(since time.Duration) float64 {
			if since < 5*time.Second {
				return 20e6
			}
			return 200e3
		}
		publish(t, next, far, Options{})
		far.holds(t, next)
		if most := bytesOf(next) * 3 / 2; far.sent > most {
			t.Errorf("bytes sent: got %d, want at most %d", far.sent, most)
		}
	})
}

// A server that refuses more than a few requests at once (SlowDown, 503, 429) gets few
// at once, and refuses few.
func TestServerThatRefuses(t *testing.T) {
	busy := temporary(t)
	next := siteOf(t, objectsOf(3000, ""))
	for _, most := range []int{1, 5, 20} {
		synctest.Test(t, func(t *testing.T) {
			far := newFarBucket(busy)
			far.refuse = func(_ site.Key, inFlight int) bool { return inFlight > most }
			begun := time.Now()
			publish(t, next, far, Options{})
			far.holds(t, next)
			if few := far.total / 10; far.refusals > few {
				t.Errorf("of %d requests: got %d refused, want at most %d", far.total, far.refusals, few)
			}
			if took, ideal := time.Since(begun), time.Duration(len(next)/most)*far.latency; took > 2*ideal+10*time.Second {
				t.Errorf("at most %d at once: got %v, want about %v", most, took, ideal)
			}
		})
	}
}

// An unanswered request is canceled within a minute and retried.
func TestHungRequest(t *testing.T) {
	busy := temporary(t)
	next := siteOf(t, searchesOf(10, 3, 200e3))
	synctest.Test(t, func(t *testing.T) {
		far := newFarBucket(busy)
		hangs := 0
		far.hang = func(key site.Key) bool {
			far.mu.Lock()
			defer far.mu.Unlock()
			if key == site.SearchShardKey("3", 1) {
				hangs++
				return hangs == 1
			}
			return false
		}
		begun := time.Now()
		report := publish(t, next, far, Options{})
		far.holds(t, next)
		if took := time.Since(begun); took > time.Minute || report.Retries != 1 {
			t.Errorf("got %v, %d retries, want at most a minute and 1 retry", took, report.Retries)
		}
	})
}

// Requests that wait for their turn do not use up their patience, and leave when the run ends.
func TestWaitingForATurn(t *testing.T) {
	busy := temporary(t)
	next := siteOf(t, objectsOf(20, strings.Repeat(".", 100e3)))
	synctest.Test(t, func(t *testing.T) {
		far := newFarBucket(busy)
		far.rate = constant(50e3)
		refused := map[site.Key]int{}
		far.refuse = func(key site.Key, _ int) bool { refused[key]++; return refused[key] <= 2 }
		publish(t, next, far, Options{Patience: 3 * time.Second})
		far.holds(t, next)
	})
	synctest.Test(t, func(t *testing.T) {
		far := newFarBucket(busy)
		far.rate = constant(50e3)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := Publish(ctx, next, far, Options{Concurrency: 1}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
		}
	})
}
