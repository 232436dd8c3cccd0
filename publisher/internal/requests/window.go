package requests

import (
	"container/list"
	"context"
	"math"
	"sync"
	"time"
)

const (
	firstWindow = 4                // initial limit of requests in flight
	minRound    = 16               // successes that raise the limit by one after the first failure
	horizon     = 15 * time.Second // time in which all bytes in flight should arrive
	firstRate   = 256 << 10        // assumed throughput in bytes per second, until it is measured
	slack       = 4                // how many times slower than measured a body may arrive
	slowest     = 8 << 10          // minimum throughput in bytes per second, for every body
)

// A window bounds the requests in flight, in number and in bytes. Requests wait in line.
//
// The number never exceeds Options.Concurrency. Below that, it follows TCP's congestion control
// (RFC 5681): it starts low; each success adds one until the first failure, later each round of
// successes does; a failure halves it, at most once per round. A round has at least sixteen
// requests; otherwise a server that takes one at a time would refuse every third. Only retryable
// failures count: time-outs, SlowDown, 503, 429.
//
// The bytes follow Little's law: bytes in flight take bytes / throughput to arrive. While this is
// longer than the horizon, no request begins. So a link with spare capacity gets more requests, and
// a saturated one no more than it can carry before they time out. A limit of the number alone is
// not enough: a link that carries many small objects may be too slow for a few large ones.
//
// A nil *window has no limits. Methods may be called concurrently.
type window struct {
	max float64 // Options.Concurrency

	mu       sync.Mutex
	waiting  list.List // holds *waiter
	taken    int
	bytes    int64   // bytes in flight
	limit    float64 // allowed number in flight, 1 to max
	halved   int     // how often limit was halved; a round is the requests that begin between two halvings
	sent     throughput
	measured time.Time // end of the time that sent covers
}

// A flight is one request.
type flight struct {
	bytes int64
	round int
	begun time.Time
}

type waiter struct {
	flight
	ready chan struct{} // closed when the request may begin
}

func newWindow(concurrency int) *window {
	most := float64(concurrency)
	return &window{max: most, limit: min(most, firstWindow), sent: throughput{firstRate / 10., 1 / 10.}, measured: time.Now()}
}

// take waits for room for a request with a body of this many bytes. If ctx ends first, take returns
// its cause.
func (s *window) take(ctx context.Context, bytes int64) (flight, error) {
	if err := context.Cause(ctx); err != nil || s == nil {
		return flight{}, err
	}
	s.mu.Lock()
	w := &waiter{flight{bytes: bytes}, make(chan struct{})}
	place := s.waiting.PushBack(w)
	s.admit()
	s.mu.Unlock()
	select {
	case <-w.ready:
		return w.flight, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-w.ready: // just now
		s.release(w.flight)
	default:
		s.waiting.Remove(place)
	}
	s.admit()
	return flight{}, context.Cause(ctx)
}

// admit lets waiting requests begin, in their order.
func (s *window) admit() {
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

// hasRoom ignores the size of the next request, except whether it has any bytes: one request beyond
// the measured throughput shows whether more is possible.
func (s *window) hasRoom(bytes int64) bool {
	return float64(s.taken+1) <= s.limit && (bytes == 0 || float64(s.bytes) <= s.sent.rate()*horizon.Seconds())
}

// measure counts the time since the last call, if any bytes were in flight.
func (s *window) measure() {
	now := time.Now()
	if s.bytes > 0 {
		s.sent.pass(now.Sub(s.measured))
	}
	s.measured = now
}

// give ends a request. arrived means success, failed a retryable failure; other failures do not
// show the server's capacity.
func (s *window) give(f flight, arrived, failed bool) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.measure()
	ofThisRound := f.round == s.halved
	switch {
	case arrived:
		s.sent.add(f.bytes, s.measured.Sub(f.begun))
		if ofThisRound && float64(s.taken) > s.limit/2 { // a limit that is not reached is not tested
			s.limit = min(s.max, s.limit+s.growth())
		}
	case failed && ofThisRound:
		s.limit = max(1, s.limit/2)
		s.sent.bytes /= 2
		s.halved++
	}
	s.release(f)
	s.admit()
}

func (s *window) growth() float64 {
	if s.halved == 0 {
		return 1
	}
	return 1 / max(minRound, s.limit)
}

func (s *window) release(f flight) {
	s.taken--
	s.bytes -= f.bytes
}

// timeFor returns the time limit of a request with a body, given the limit without one. It bounds
// the whole request instead of watching its progress, because bytes in the system's buffers look
// sent.
func (s *window) timeFor(limit time.Duration, bytes int64) time.Duration {
	rate := float64(firstRate)
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		rate = min(rate, s.sent.rate())
	}
	return limit + time.Duration(float64(bytes)/max(rate/slack, slowest)*float64(time.Second))
}

// A throughput is measured over the last seconds: the bytes that arrived, and the time with bytes
// in flight. Both decay with that time, so the throughput of a stalled link approaches zero.
type throughput struct{ bytes, seconds float64 }

// pass adds time with bytes in flight.
func (t *throughput) pass(d time.Duration) {
	t.bytes *= math.Exp(-d.Seconds() / horizon.Seconds())
	t.seconds *= math.Exp(-d.Seconds() / horizon.Seconds())
	t.seconds += undecayed(d)
}

// add counts bytes that arrived during the last d, as if at a constant rate, so that some have
// decayed already. Counted at the end, each request would overstate the throughput.
func (t *throughput) add(bytes int64, d time.Duration) {
	share := 1.
	if d > 0 {
		share = undecayed(d) / d.Seconds()
	}
	t.bytes += float64(bytes) * share
}

func (t *throughput) rate() float64 { return t.bytes / t.seconds }

// undecayed returns the part of d that has not decayed at its end, in seconds.
func undecayed(d time.Duration) float64 {
	memory := horizon.Seconds()
	return memory * -math.Expm1(-d.Seconds()/memory)
}
