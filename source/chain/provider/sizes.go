package provider

import "sync"

// sizes learns the number of blocks that a node accepts per request for logs. Providers limit
// blocks or logs, and say so only in prose, so trying is the only way. After a failure the range is
// halved. The largest size that ever worked is remembered: a smaller one that fails has too many
// logs, and the size grows back where logs are fewer. Beyond the largest, sizes tries one between
// the largest that worked and the smallest that failed, less and less often.
type sizes struct {
	mu sync.Mutex

	max  uint64
	span uint64 // size of the next request
	good uint64 // largest that worked; 0 before the first
	bad  uint64 // smallest that failed beyond good; 0 for none

	most   int  // logs of the largest answer
	doubt  int  // answers with this many logs are fetched in parts; 0 for none
	calm   int  // consecutive successes with the full span
	need   int  // calm required to try more than good
	trying bool // a request beyond good is running
	dense  int  // calm required to try more logs than any answer had
	denser bool // span was enlarged for that, and has not worked yet
}

const (
	firstNeed = 2
	mostNeed  = 1 << 12
	fewLogs   = 200 // no provider is known to limit answers to this few
)

func newSizes(most uint64) *sizes {
	return &sizes{max: most, span: most, need: firstNeed, dense: firstNeed}
}

// next returns the size of the next request. Before the first success only one request runs at a
// time, so that a provider's limit costs a few failures rather than a few per worker: ok is false
// while it runs, except for a reading without a running request, which would not hear of its end.
// Each size returned with ok must be passed to worked, failed or dropped.
func (s *sizes) next(alone bool) (size uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.good == 0 {
		if s.trying && !alone {
			return 0, false
		}
		s.trying = true
		return s.span, true
	}
	if s.span < s.good || s.good >= s.max || s.trying || s.calm < s.need {
		return s.span, true
	}
	s.trying = true
	if s.bad > 0 && s.bad-s.good > s.good/16 {
		return s.good + (s.bad-s.good)/2, true
	}
	// The failed request may have had too many logs.
	s.bad, s.need = 0, min(max(s.need, 32)*2, mostNeed)
	return min(2*s.good, s.max), true
}

// now returns the size that currently works.
func (s *sizes) now() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.span
}

// dropped reports a failure for another reason than the size.
func (s *sizes) dropped(size uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if size > s.good {
		s.trying = false
	}
}

// worked reports that a request of this size returned logs logs.
func (s *sizes) worked(size uint64, logs int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most = max(s.most, logs)
	if size > s.good {
		if s.good > 0 {
			s.need, s.calm = firstNeed, 0
			s.span = size
		}
		s.good, s.trying = size, false
		if s.bad <= s.good {
			s.bad = 0
		}
		return
	}
	if size < s.span {
		return // the end of a range
	}
	s.calm++
	s.denser = false
	if s.span == s.good {
		return
	}
	fits := 2 * s.span
	if logs > 0 { // nine tenths, because ranges differ
		fits = min(fits, uint64(0.9*float64(s.span)*float64(s.most)/float64(logs)))
	}
	switch {
	case fits > s.span:
		s.calm, s.span = 0, min(fits, s.good)
	case s.calm >= s.dense:
		s.denser, s.calm = true, 0
		s.span = min(s.span+s.span/4+1, s.good)
	}
}

// failed reports that a size was too large.
func (s *sizes) failed(size uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case size > s.good:
		s.trying = false
		if s.bad == 0 || size < s.bad {
			s.bad = size
		}
		if s.good > 0 {
			s.need, s.calm = min(2*s.need, mostNeed), 0
			return
		}
		s.span = max(1, min(s.span, size/2))
	case size > s.span:
		// Requests that ran while another one failed say nothing new.
	default:
		if s.denser {
			s.dense = min(2*s.dense, mostNeed)
		}
		s.span, s.calm, s.denser = max(1, size/2), 0, false
	}
}

// largest returns the logs of the largest answer since the last doubt.
func (s *sizes) largest() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

// distrust records that answers with this many logs may have been cut.
func (s *sizes) distrust(logs int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubt, s.most = logs, 0
}

// doubted reports whether an answer with this many logs may have been cut.
func (s *sizes) doubted(logs int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.doubt > 0 && logs >= s.doubt
}

// found records the number of logs in a range that was too large. If there are few, the node limits
// the blocks, otherwise the logs.
func (s *sizes) found(size uint64, logs int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch few := logs < fewLogs || 2*logs <= s.most; {
	case few && size <= s.good: // it accepts less than before
		s.bad, s.good = size, max(1, size/2)
		s.span = min(s.span, s.good)
	case !few && s.bad == size:
		s.bad, s.need = 0, max(s.need/2, firstNeed)
	}
}
