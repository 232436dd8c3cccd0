package provider

import "sync"

// sizes learns the number of blocks that a node accepts per request for logs. Providers limit blocks
// or logs, and say so only in prose, so trying is the only way. A size that fails is halved. After
// some successes a larger one is tried: the middle between the size that works and the one that failed,
// or, if these are close, twice the size, because logs may be fewer there. Trials that fail become
// rarer.
type sizes struct {
	mu sync.Mutex

	max   uint64
	span  uint64 // size that works; before the first success, the next one to try
	bad   uint64 // smallest that failed beyond span; 0 for none
	works bool   // a request has succeeded, perhaps of less than span: another host of the quorum may take less
	calm  int    // successes since the last change
	need  int    // calm required to try more than span
	trial uint64 // size that a running request tries; 0 for none

	most  int // logs of the largest answer since the last doubt
	doubt int // answers with this many logs are fetched in parts; 0 for none
}

const (
	firstNeed = 2
	mostNeed  = 1 << 10
)

func newSizes(most uint64) *sizes { return &sizes{max: most, span: most, need: firstNeed} }

// next returns the size of the next request. Before the first success only one request runs at a
// time, so that a provider's limit costs a few failures rather than a few per worker: ok is false
// while it runs, except for a reading without a running request, which would not hear of its end.
// Each size returned with ok must be passed to worked, failed or dropped.
func (s *sizes) next(alone bool) (size uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.works && s.trial > 0 && !alone:
		return 0, false
	case !s.works:
		s.trial = s.span
	case s.span >= s.max || s.trial > 0 || s.calm < s.need:
		return s.span, true
	case s.bad > s.span+s.span/16+1:
		s.trial = s.span + (s.bad-s.span)/2
	default:
		s.trial = min(2*s.span, s.max)
		s.bad, s.need = 0, min(4*s.need, mostNeed)
	}
	return s.trial, true
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
	if size == s.trial {
		s.trial = 0
	}
}

// worked reports that a request of this size returned logs logs.
func (s *sizes) worked(size uint64, logs int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most, s.works = max(s.most, logs), true
	switch size {
	case s.trial:
		s.span, s.calm, s.need, s.trial = size, 0, firstNeed, 0
	case s.span:
		s.calm++
	}
	if s.bad <= s.span {
		s.bad = 0
	}
}

// failed reports that a size was too large.
func (s *sizes) failed(size uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case size == s.trial && size > s.span:
		s.bad, s.calm, s.need, s.trial = size, 0, min(2*s.need, mostNeed), 0
	case size <= s.span:
		s.bad, s.span, s.calm, s.trial = size, max(1, size/2), 0, 0
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
