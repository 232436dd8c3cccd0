package provider

import "sync"

// sizes learns how many blocks a node takes in one request for logs. Providers limit the blocks, or
// the logs of an answer, and say so only in prose, so the only way is to try. After a failure the
// range is halved. The largest size that ever worked is remembered: a smaller one that fails has
// too many logs, and is soon followed by larger ones again where logs are fewer. Beyond that size
// it tries one between the largest that worked and the smallest that failed, more and more rarely.
type sizes struct {
	mu sync.Mutex

	max  uint64
	span uint64 // size of the next request
	good uint64 // largest that worked; 0 before the first that works
	bad  uint64 // smallest that failed beyond good; 0 means none

	most   int  // logs of the largest answer
	doubt  int  // answers with so many logs are asked for in parts; 0 means none
	calm   int  // successes in a row with the full span
	need   int  // calm that is needed to try more than good
	trying bool // a request beyond good is under way
	dense  int  // calm that is needed to try more logs than there ever were in an answer
	denser bool // span was made larger for that; it has not worked since
}

const (
	firstNeed = 2
	mostNeed  = 1 << 12
	fewLogs   = 200 // no provider is known to limit answers to so few
)

func newSizes(most uint64) *sizes {
	return &sizes{max: most, span: most, need: firstNeed, dense: firstNeed}
}

// next returns the size of the next request. Before the first success there is one request at a
// time, so that a provider's limit costs a few failures rather than a few for each worker: ok is
// false while it is under way, except for a reading that has none under way, and would not hear of
// its end. Each size that was ok must be told to worked, failed or dropped.
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
	// What failed may have failed for its logs.
	s.bad, s.need = 0, min(max(s.need, 32)*2, mostNeed)
	return min(2*s.good, s.max), true
}

// now is the size that works at present.
func (s *sizes) now() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.span
}

// dropped says that there was no answer for another reason than the size.
func (s *sizes) dropped(size uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if size > s.good {
		s.trying = false
	}
}

// worked says that a request of a size had so many logs in its answer.
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

// failed says that a size was too large.
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
		// Requests that were under way when another one failed say nothing new.
	default:
		if s.denser {
			s.dense = min(2*s.dense, mostNeed)
		}
		s.span, s.calm, s.denser = max(1, size/2), 0, false
	}
}

// largest is how many logs the largest answer had since the last doubt.
func (s *sizes) largest() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

// distrust says that answers with so many logs may have been cut.
func (s *sizes) distrust(logs int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubt, s.most = logs, 0
}

// doubted reports whether an answer with so many logs may have been cut.
func (s *sizes) doubted(logs int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.doubt > 0 && logs >= s.doubt
}

// found says how many logs there are in a range that was too large. If they are few the node limits
// the blocks, otherwise the logs.
func (s *sizes) found(size uint64, logs int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch few := logs < fewLogs || 2*logs <= s.most; {
	case few && size <= s.good: // it takes less than it did
		s.bad, s.good = size, max(1, size/2)
		s.span = min(s.span, s.good)
	case !few && s.bad == size:
		s.bad, s.need = 0, max(s.need/2, firstNeed)
	}
}
