package cache

import (
	"container/list"
	"net/http"
	"sync"
	"time"
)

// A sent counts the bytes of computed answers that clients receive and the cache does not hold. Clients
// that read slowly would make them many, so those are disconnected when the memory is needed. It is safe
// for concurrent use.
type sent struct {
	most int64 // bytes, beyond which no more answers are made

	mu      sync.Mutex
	bytes   int64
	senders list.List     // of *sender, in the order of their begin
	freed   chan struct{} // closed when bytes become fewer; nil if nobody waits
}

// A sender is a computed answer that a client receives.
type sender struct {
	object *Object
	begun  time.Time
	writer http.ResponseWriter
}

// SlowAfter is how long a client may take to receive a computed answer when its memory is needed.
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

// room returns nil if there is memory for another answer, with so many bytes more than usual. Else it
// returns a channel that is closed when there may be.
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

// cutSlow ends the connections of slow clients if the memory is needed. Their handlers give it back.
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
			// A writer without deadlines is no connection.
			_ = http.NewResponseController(to.writer).SetWriteDeadline(time.Now())
		}
	}
}

// send notes that a client receives an answer from now on, until the function that it returns is called.
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
