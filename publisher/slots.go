package publisher

import (
	"container/list"
	"context"
	"math"
	"sync"
	"time"
)

// How requests share the way to the server.
const (
	firstSlots = 4                // requests at once in the beginning
	minRound   = 16               // successes for another one, after a failure
	horizon    = 15 * time.Second // in which what is on its way should arrive
	firstRate  = 256 << 10        // bytes a second, until that is measured
	slack      = 4                // how many times slower than measured a body may be
	slowest    = 8 << 10          // bytes a second at which a body must get on in any case
)

// slots bound the requests in flight, in number and in bytes. Whoever asks waits in line.
//
// Their number never exceeds Options.Concurrency. Below that it is governed as TCP
// governs its window (RFC 5681): it begins low, each success adds a slot until the first
// failure, from then on each round of successes does (of sixteen at least, or a server
// that takes one at a time would refuse every third), and a failure halves it, once a
// round. Failures are those that may go away: time-outs, SlowDown, 503, 429.
//
// Their bytes follow Little's law: what is in flight takes bytes / throughput to arrive.
// While that is longer than the horizon, none begins. Where more in flight brings more
// throughput, more may begin; on a saturated link, no more than it can carry before
// requests time out. A limit of the number alone would not do: of small objects many may
// be in flight on a link that is too slow for a few of the large ones that come next.
//
// A nil *slots has room for everything.
type slots struct {
	max float64 // Options.Concurrency

	mu       sync.Mutex
	waiting  list.List // of *waiter
	taken    int
	bytes    int64   // of the requests that have a slot
	limit    float64 // slots that there are, 1 to most
	halved   int     // times; a round is what begins between two
	sent     throughput
	measured time.Time // until when sent was
}

// A slot is that of one request.
type slot struct {
	bytes int64
	round int
	begun time.Time
}

type waiter struct {
	slot
	ready chan struct{} // closed when it has got its slot
}

func newSlots(concurrency int) *slots {
	most := float64(concurrency)
	return &slots{max: most, limit: min(most, firstSlots), sent: throughput{firstRate / 10., 1 / 10.}, measured: time.Now()}
}

// take waits for a slot for a request with a body of so many bytes. The error is the
// cause of ctx's end.
func (s *slots) take(ctx context.Context, bytes int64) (slot, error) {
	if err := context.Cause(ctx); err != nil || s == nil {
		return slot{}, err
	}
	s.mu.Lock()
	w := &waiter{slot{bytes: bytes}, make(chan struct{})}
	place := s.waiting.PushBack(w)
	s.admit()
	s.mu.Unlock()
	select {
	case <-w.ready:
		return w.slot, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-w.ready: // just now
		s.release(w.slot)
	default:
		s.waiting.Remove(place)
	}
	s.admit()
	return slot{}, context.Cause(ctx)
}

// admit gives slots to those who wait, in their order.
func (s *slots) admit() {
	s.measure()
	for first := s.waiting.Front(); first != nil; first = s.waiting.Front() {
		w := first.Value.(*waiter)
		if !s.hasRoom(w.bytes) {
			return
		}
		s.waiting.Remove(first)
		s.taken++
		s.bytes += w.bytes
		w.round, w.begun = s.halved, s.measured
		close(w.ready)
	}
}

// hasRoom does not look at how many bytes the next request has: one more than what
// the throughput asks for shows whether there can be more of it.
func (s *slots) hasRoom(bytes int64) bool {
	return float64(s.taken+1) <= s.limit && (bytes == 0 || float64(s.bytes) <= s.sent.rate()*horizon.Seconds())
}

// measure counts the time since it was called last, if anything was on its way.
func (s *slots) measure() {
	now := time.Now()
	if s.bytes > 0 {
		s.sent.pass(now.Sub(s.measured))
	}
	s.measured = now
}

// give gives a slot back. failed says that the request failed for a reason that may go
// away; one that neither arrived nor failed says nothing.
func (s *slots) give(t slot, arrived, failed bool) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.measure()
	ofThisRound := t.round == s.halved
	switch {
	case arrived:
		s.sent.add(t.bytes, s.measured.Sub(t.begun))
		if ofThisRound && float64(s.taken) > s.limit/2 { // what is not used is not tried
			s.limit = min(s.max, s.limit+s.growth())
		}
	case failed && ofThisRound:
		s.limit = max(1, s.limit/2)
		s.sent.bytes /= 2
		s.halved++
	}
	s.release(t)
	s.admit()
}

func (s *slots) growth() float64 {
	if s.halved == 0 {
		return 1
	}
	return 1 / max(minRound, s.limit)
}

func (s *slots) release(t slot) {
	s.taken--
	s.bytes -= t.bytes
}

// timeFor is how long a request may take that may take limit without a body. Bytes that
// the system has buffered look sent when they are not, so this bounds the whole request
// and does not watch its progress.
func (s *slots) timeFor(limit time.Duration, bytes int64) time.Duration {
	rate := float64(firstRate)
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		rate = min(rate, s.sent.rate())
	}
	return limit + time.Duration(float64(bytes)/max(rate/slack, slowest)*float64(time.Second))
}

// A throughput is that of the last seconds: bytes that arrived, and the time in which
// some were on their way. Both fade with that time, so that a link which stands still
// has less and less of it.
type throughput struct{ bytes, seconds float64 }

// pass lets time pass.
func (t *throughput) pass(d time.Duration) {
	t.bytes *= math.Exp(-d.Seconds() / horizon.Seconds())
	t.seconds *= math.Exp(-d.Seconds() / horizon.Seconds())
	t.seconds += unfaded(d)
}

// add counts bytes that arrived in the time d before now, as if evenly: some of them
// have faded already. If all counted at their end, it would be too much after each.
func (t *throughput) add(bytes int64, d time.Duration) {
	share := 1.
	if d > 0 {
		share = unfaded(d) / d.Seconds()
	}
	t.bytes += float64(bytes) * share
}

func (t *throughput) rate() float64 { return t.bytes / t.seconds }

// unfaded is what is left of d at its end, in seconds.
func unfaded(d time.Duration) float64 {
	memory := horizon.Seconds()
	return memory * -math.Expm1(-d.Seconds()/memory)
}
