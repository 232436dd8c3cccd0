package live

import (
	"strconv"
	"strings"
	"time"

	"github.com/followpress/followpress/source"
)

// A clock measures the time since the process began, which does not jump, and the age of blocks.
type clock struct {
	begun   time.Time        // includes a monotonic reading
	started time.Time        // the same without it
	wall    func() time.Time // time.Now, which may jump
}

func newClock() clock {
	now := time.Now()
	return clock{now, now.Round(0), time.Now}
}

// now returns the time since the process began.
func (c clock) now() time.Duration { return time.Since(c.begun) }

// since returns the age of a block with a time in milliseconds since the Unix epoch. A clock that jumps must not make a
// block old. So the age is the smaller of two: by the current clock, and by the clock at the start of the process, which
// errs by as much as that clock did. It is never negative.
func (c clock) since(blockTime int64) time.Duration {
	block := time.UnixMilli(blockTime)
	now, counted := c.wall().Round(0), c.started.Add(c.now())
	return max(0, min(now.Sub(block), counted.Sub(block)))
}

// A seenHead is a head, the time when it was first seen, and its age at that time.
type seenHead struct {
	source.Head
	seen   time.Duration // by the clock
	behind time.Duration
}

// lag returns the age of the newest block. Since the block was seen, a clock that does not jump measures it.
func (h seenHead) lag(now time.Duration) time.Duration { return h.behind + now - h.seen }

// see records when heads were first seen; heads that did not move keep their times.
func (l *Live) see(heads []source.Head) []seenHead {
	var before []seenHead
	if s := l.state.Load(); s != nil {
		before = s.heads
	}
	now := l.clock.now()
	seen := make([]seenHead, len(heads))
	for i, h := range heads {
		seen[i] = seenHead{h, now, l.clock.since(h.Time)}
		if i < len(before) && before[i].Chain == h.Chain && before[i].Block == h.Block && before[i].Time == h.Time {
			seen[i].seen, seen[i].behind = before[i].seen, before[i].behind
		}
	}
	return seen
}

// A header is a header of answers. All answers share its value.
type header struct {
	name   string // canonical
	values []string
}

// fill derives the headers of answers, and the time when the first chain lags, from the heads. asOf is the time of the
// snapshot, for heads without one.
func (s *state) fill(maxLag time.Duration, asOf time.Time) {
	var blocks, finalized []string
	s.asOf, s.lagsAt = asOf, 1<<63-1
	for i, h := range s.heads {
		blocks = append(blocks, chainBlock(h.Chain, h.Block))
		finalized = append(finalized, chainBlock(h.Chain, h.Finalized))
		if at := time.UnixMilli(h.Time).UTC(); i == 0 || at.Before(s.asOf) {
			s.asOf = at
		}
		s.lagsAt = min(s.lagsAt, h.seen+maxLag-h.behind)
	}
	s.headers = [3]header{
		{"X-As-Of", []string{s.asOf.Format(time.RFC3339)}},
		{"X-Heads", []string{strings.Join(blocks, ", ")}},
		{"X-Finalized", []string{strings.Join(finalized, ", ")}},
	}
}

// chainBlock names a block as X-Heads and X-After do.
func chainBlock(chain, block uint64) string {
	return strconv.FormatUint(chain, 10) + ":" + strconv.FormatUint(block, 10)
}
