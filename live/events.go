package live

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/source"
)

// Limits of event streams.
const (
	mostRounds   = 1_000            // retained for Last-Event-ID
	mostBytes    = 4 << 20          // bytes of the retained events
	mostNamed    = 1_000            // accounts or lists that an event names
	mostWritten  = 64 << 10         // bytes that are written until a reader must have read them
	mostAtOnce   = 32               // events in one write
	heartbeat    = 15 * time.Second // longest time between two writes
	writeTimeout = 30 * time.Second // for a slow reader
)

// events retains rounds for streams. All streams read the same bytes, so a slow one costs only its connection; if it
// falls behind the retained rounds, it gets a reset. It is safe for concurrent use.
type events struct {
	prefix string // start of ids, unique to the process

	mu    sync.Mutex
	first uint64   // number of the first kept round; numbers follow each other
	kept  [][]byte // events, as they are written
	bytes int
	more  chan struct{} // closed and replaced with each round
}

func newEvents() *events {
	var prefix [3]byte
	_, _ = rand.Read(prefix[:]) // never fails
	return &events{prefix: hex.EncodeToString(prefix[:]), first: 1, more: make(chan struct{})}
}

// begin sets the round of the first graph; the next round is the first event.
func (e *events) begin(number uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.first = number + 1
}

// add retains a round and wakes all streams. Rounds come in the order of their numbers, without a gap.
func (e *events) add(number uint64, data []byte) {
	event := fmt.Appendf(nil, "id: %s\nevent: round\ndata: %s\n\n", e.id(number), data)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kept = append(e.kept, event)
	e.bytes += len(event)
	for len(e.kept) > mostRounds || e.bytes > mostBytes && len(e.kept) > 1 {
		e.bytes -= len(e.kept[0])
		e.kept[0] = nil
		e.kept = e.kept[1:]
		e.first++
	}
	close(e.more)
	e.more = make(chan struct{})
}

func (e *events) id(number uint64) string { return e.prefix + "-" + strconv.FormatUint(number, 10) }

// after returns events after a round, which all streams share, the number of the last one, and a channel closed when
// more arrive. gone means that the first of them is no longer retained, or that the round does not exist; last is the
// newest round then.
func (e *events) after(number uint64) (some [][]byte, last uint64, more <-chan struct{}, gone bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	newest := e.first + uint64(len(e.kept)) - 1
	if number+1 < e.first || number > newest {
		return nil, newest, e.more, true
	}
	bytes := 0
	for _, event := range e.kept[number+1-e.first:] {
		if bytes += len(event); len(some) == mostAtOnce || len(some) > 0 && bytes > mostWritten {
			break
		}
		some = append(some, event)
		number++
	}
	return some, number, e.more, false
}

// newest returns the number of the last round.
func (e *events) newest() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.first + uint64(len(e.kept)) - 1
}

// parse parses an id. ok is false for an id of another process.
func (e *events) parse(id string) (number uint64, ok bool) {
	text, ok := strings.CutPrefix(id, e.prefix+"-")
	if !ok {
		return 0, false
	}
	return parseNumber(text)
}

// encodeRound encodes the data of the event of a round:
//
//	{"heads":{"8453":123},"as_of":"2026-11-23T17:00:00Z","accounts":["0x…"],"lists":["7"],"undone":[8453]}
//
// If more than 1,000 accounts or lists changed, "many":true is in place of the two.
func encodeRound(s *state, r source.Round) []byte {
	data := struct {
		Heads    map[string]uint64 `json:"heads"`
		AsOf     string            `json:"as_of"`
		Accounts *[]string         `json:"accounts,omitempty"`
		Lists    *[]string         `json:"lists,omitempty"`
		Many     bool              `json:"many,omitempty"`
		Undone   []uint64          `json:"undone"`
	}{Heads: map[string]uint64{}, AsOf: s.headers[0].values[0], Undone: append([]uint64{}, r.Undone...)}
	for _, h := range s.heads {
		data.Heads[strconv.FormatUint(h.Chain, 10)] = h.Block
	}
	if data.Many = len(r.Accounts) > mostNamed || len(r.Lists) > mostNamed; !data.Many {
		accounts, lists := make([]string, len(r.Accounts)), append([]string{}, r.Lists...)
		for i, a := range r.Accounts {
			accounts[i] = a.String()
		}
		data.Accounts, data.Lists = &accounts, &lists
	}
	body, err := json.Marshal(data)
	if err != nil {
		panic("live: " + err.Error()) // strings and numbers always encode
	}
	return body
}

// stream writes events until the client is gone or does not read, or Run ends. It begins after the round that the client
// names, or with the id of the newest round.
func (l *Live) stream(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no") // nginx
	control := http.NewResponseController(w)
	// Other limits do not apply: each write has its own. A writer without deadlines is not a
	// network connection.
	_ = control.SetReadDeadline(time.Time{})
	write := func(texts ...[]byte) bool {
		_ = control.SetWriteDeadline(time.Now().Add(writeTimeout))
		for _, text := range texts {
			if _, err := w.Write(text); err != nil {
				return false
			}
		}
		return control.Flush() == nil
	}
	e := l.events
	number, begin := e.newest(), ""
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		if resumed, ok := e.parse(last); ok {
			number = resumed
		} else {
			begin = e.reset(number)
		}
	} else {
		begin = "id: " + e.id(number) + "\n\n" // no event, but where to resume
	}
	if write([]byte("retry: 2000\n" + begin + "\n")) {
		l.follow(r.Context(), number, write)
	}
}

// reset returns the event for missing rounds, up to number.
func (e *events) reset(number uint64) string {
	return "id: " + e.id(number) + "\nevent: reset\ndata: {}\n\n"
}

// follow writes the events after a round as they come.
func (l *Live) follow(ctx context.Context, number uint64, write func(...[]byte) bool) {
	timer := time.NewTimer(heartbeat)
	defer timer.Stop()
	for {
		some, last, more, gone := l.events.after(number)
		if gone {
			some = [][]byte{[]byte(l.events.reset(last))}
		}
		number = last
		if len(some) > 0 {
			if !write(some...) {
				return
			}
			timer.Reset(heartbeat)
			continue
		}
		select {
		case <-more:
		case <-timer.C:
			if !write([]byte(":\n\n")) {
				return
			}
			timer.Reset(heartbeat)
		case <-ctx.Done():
			return
		case <-l.ended:
			return
		}
	}
}
