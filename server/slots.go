package server

import "sync/atomic"

// slots bounds how many requests wait for one thing at a time. It is safe for concurrent use.
type slots struct {
	taken  atomic.Int64
	size   int64
	parent *slots // of whose slots these are a part; nil for none
}

// tryAcquire takes a slot, here and in the parent, or reports false without waiting.
func (s *slots) tryAcquire() bool {
	if s.taken.Add(1) > s.size || s.parent != nil && !s.parent.tryAcquire() {
		s.taken.Add(-1)
		return false
	}
	return true
}

// isHalfTaken reports whether who can do without a slot should.
func (s *slots) isHalfTaken() bool { return s.taken.Load() > s.size/2 }

func (s *slots) release() {
	s.taken.Add(-1)
	if s.parent != nil {
		s.parent.release()
	}
}
