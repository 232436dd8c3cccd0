package live

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Headers of requests that wait for blocks.
const (
	headerAfter  = "X-After"
	headerPrefer = "Prefer"
)

// mostAfter is the maximum number of blocks in X-After.
const mostAfter = 16

// A block is a block of a chain.
type block struct{ chain, number uint64 }

// parseAfter parses the values of X-After: blocks, CHAIN:NUMBER, with commas between them.
func parseAfter(values []string) (blocks []block, err error) {
	for _, text := range strings.Split(strings.Join(values, ","), ",") {
		text = strings.Trim(text, " \t")
		chain, number, ok := strings.Cut(text, ":")
		b := block{}
		if ok {
			b.chain, ok = parseNumber(chain)
		}
		if ok {
			b.number, ok = parseNumber(number)
		}
		if !ok || len(blocks) == mostAfter {
			return nil, fmt.Errorf("%s: blocks such as 8453:23456789 with commas between them, at most %d", headerAfter, mostAfter)
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}

// parseNumber parses a number as X-Heads writes it: digits only, without leading zeros.
func parseNumber(text string) (uint64, bool) {
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil && strconv.FormatUint(n, 10) == text
}

// preferredWait returns the time of Prefer: wait (RFC 7240), at most most, which is also the default. The first wait
// counts; malformed preferences are ignored, as the RFC says.
func preferredWait(header http.Header, most time.Duration) time.Duration {
	for preference := range strings.SplitSeq(strings.Join(header.Values(headerPrefer), ","), ",") {
		preference, _, _ = strings.Cut(preference, ";")
		name, value, _ := strings.Cut(preference, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "wait") {
			continue
		}
		seconds, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(value), `"`), 10, 32)
		if err != nil {
			return most
		}
		return min(most, time.Duration(seconds)*time.Second)
	}
	return most
}

// has reports whether the graph has all blocks.
func (s *state) has(blocks []block) bool {
	for _, b := range blocks {
		for _, h := range s.heads {
			if h.Chain == b.chain && h.Block < b.number {
				return false
			}
		}
	}
	return true
}

// checkChains returns an error if a block is of a chain that the graph does not have.
func (s *state) checkChains(blocks []block) error {
	for _, b := range blocks {
		if !slices.ContainsFunc(s.heads, func(h seenHead) bool { return h.Chain == b.chain }) {
			return fmt.Errorf("%s: no chain %d here; X-Heads names the chains", headerAfter, b.chain)
		}
	}
	return nil
}

// shareOfPlaces is the part of all places that the requests of one client may take.
const shareOfPlaces = 8

// places counts the waiting requests, or the streams, of each client. It is safe for concurrent use.
type places struct {
	most int // bound for all clients

	mu  sync.Mutex
	all int
	of  map[netip.Addr]int // per client, if any
}

func newPlaces(most int) places { return places{most: most, of: map[netip.Addr]int{}} }

// begin takes a place for a client. It returns false if all clients or this one have too many.
func (w *places) begin(client netip.Addr) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all >= w.most || w.of[client] >= max(1, w.most/shareOfPlaces) {
		return false
	}
	w.all++
	w.of[client]++
	return true
}

func (w *places) end(client netip.Addr) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all--
	if w.of[client]--; w.of[client] == 0 {
		delete(w.of, client)
	}
}

func (w *places) count() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return int64(w.all)
}

// wait waits until the graph has all blocks, the time is over, or ctx or Run ends. It returns at once if too many
// requests wait, of all clients or of this one.
func (l *Live) wait(ctx context.Context, client netip.Addr, blocks []block, longest time.Duration) {
	s := l.state.Load()
	if s == nil || longest <= 0 || s.has(blocks) || !l.waiting.begin(client) {
		return
	}
	defer l.waiting.end(client)
	timer := time.NewTimer(longest)
	defer timer.Stop()
	for ; !s.has(blocks); s = l.state.Load() {
		select {
		case <-s.next:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		case <-l.ended:
			return
		}
	}
}
