package meanrpc

import (
	"net/http"

	"github.com/goccy/go-json"
	"github.com/gorilla/websocket"
)

// announce sends the newest block to all subscribers. The caller has the lock.
func (n *Node) announce() {
	for c := range n.watching {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// watch subscribes a channel to new blocks, or unsubscribes it.
func (n *Node) watch(c chan struct{}, on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.watching == nil {
		n.watching = map[chan struct{}]bool{}
	}
	if n.watching[c] = true; !on {
		delete(n.watching, c)
	}
}

// CloseSockets ends all WebSocket connections.
func (s *Server) CloseSockets() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.sockets {
		_ = c.Close() // the other end notices
	}
}

// A watched backend announces new blocks.
type watched interface {
	watch(c chan struct{}, on bool)
}

// serveSocket answers JSON-RPC over a WebSocket, one call after the other, and eth_subscribe to
// newHeads. Of several new blocks at once it sends only the last. Faults of calls apply; faults of
// connections do not.
func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
	if err != nil {
		return // the library has answered
	}
	s.mu.Lock()
	if s.sockets == nil {
		s.sockets = map[*websocket.Conn]bool{}
	}
	s.sockets[conn] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.sockets, conn)
		_ = conn.Close() // the other end may have closed it
	}()
	calls, done := make(chan call), make(chan struct{})
	defer close(done)
	go func() {
		defer close(calls)
		for {
			var c call
			if conn.ReadJSON(&c) != nil {
				return
			}
			select {
			case calls <- c:
			case <-done:
				return
			}
		}
	}()
	news := make(chan struct{}, 1)
	for {
		var message []byte
		select {
		case c, ok := <-calls:
			if !ok {
				return
			}
			if b, is := s.backend.(watched); is && c.Method == "eth_subscribe" {
				b.watch(news, true)
				defer b.watch(news, false)
				message = []byte(`{"jsonrpc":"2.0","id":` + string(c.ID) + `,"result":"0x1"}`)
				break
			}
			faults, _, ended := s.begin([]call{c})
			message, _ = s.answerOne(r.Context(), faults, c)
			ended()
		case <-news:
			s.mu.Lock()
			faults := s.faults
			s.mu.Unlock()
			head, fail := s.answerBlock(r.Context(), faults, []json.RawMessage{json.RawMessage(`"latest"`)})
			if fail != nil {
				return
			}
			message = []byte(`{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"0x1","result":` + string(head.json) + `}}`)
		}
		if conn.WriteMessage(websocket.TextMessage, message) != nil {
			return
		}
	}
}
