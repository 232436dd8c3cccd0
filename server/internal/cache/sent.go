package cache

import (
	"container/list"
	"net/http"
	"sync"
	"time"
)

// A sent counts the bytes of computed answers being sent and not cached. Slow clients would let
// them accumulate, so it disconnects slow clients when their memory is needed. It is safe for
// concurrent use.
type sent struct {
	most int64 // limit in bytes, beyond which no more answers are made

	mu      sync.Mutex
	bytes   int64
	senders list.List     // holds *sender, oldest first
	freed   chan struct{} // closed when bytes shrinks; nil if nobody waits
}

// A sender is a computed answer being sent to a client.
type sender struct {
	object *Object
	begun  time.Time
	writer http.ResponseWriter
}

// SlowAfter is how long a client may take to receive a computed answer whose memory is needed.
const SlowAfter = time.Second

func (s *sent) take(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes += bytes
	s.cutSlow()
}

func (s *sent) give(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes -= bytes
	if s.freed != nil {
		close(s.freed)
		s.freed = nil
	}
}

func (s *sent) taken() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// room implements Cache.Room.
func (s *sent) room(beyond int64) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cutSlow()
	if s.bytes <= s.most+beyond {
		return nil
	}
	if s.freed == nil {
		s.freed = make(chan struct{})
	}
	return s.freed
}

// cutSlow disconnects slow clients if memory is needed. Their handlers give it back.
func (s *sent) cutSlow() {
	if s.bytes <= s.most {
		return
	}
	for element := s.senders.Front(); element != nil; element = element.Next() {
		to := element.Value.(*sender)
		if time.Since(to.begun) < SlowAfter {
			return
		}
		if to.object.state.Load() >= notCached {
			// It fails only for writers that are not connections.
			_ = http.NewResponseController(to.writer).SetWriteDeadline(time.Now())
		}
	}
}

// send records that a client receives an answer until the caller calls done.
func (s *sent) send(o *Object, w http.ResponseWriter) (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	element := s.senders.PushBack(&sender{o, time.Now(), w})
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.senders.Remove(element)
	}
}
