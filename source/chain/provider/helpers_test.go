package provider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
)

const chain = 8453

var (
	registry = *history.Production()[0].Registry
	records  = history.Production()[0].Records[0]
)

// some returns blocks up to a number. About of1000 in 1,000 of them have logs, up to five each.
func some(seed, to uint64, of1000 int) []history.Block {
	r := rand.New(rand.NewPCG(seed, 1))
	var all []history.Block
	for number := uint64(1); number <= to; number++ {
		if r.IntN(1000) >= of1000 && number < to {
			continue
		}
		b := history.Block{Chain: chain, Number: number, Time: int64(1000 + 2*number)}
		for range r.IntN(6) {
			op := make([]byte, r.IntN(60))
			for i := range op {
				op[i] = byte(r.Uint32())
			}
			if r.IntN(4) == 0 { // logs of others, with numbers between ours
				b.Logs = append(b.Logs, history.Transfer(registry, history.Address{}, history.Address{1}, history.Number(number)))
			}
			b.Logs = append(b.Logs, history.Op(records, history.Number(r.Uint64()), op))
		}
		all = append(all, b)
	}
	return all
}

// hosts answer requests without connections, so that a test may run on virtual time.
type hosts struct {
	handlers map[string]http.Handler

	mu sync.Mutex
	at map[string][]time.Time // when requests came
}

// RoundTrip implements http.RoundTripper. A handler that aborts ends the connection.
func (h *hosts) RoundTrip(r *http.Request) (answer *http.Response, err error) {
	handler := h.handlers[r.URL.Host]
	if handler == nil {
		return nil, errors.New("connection refused")
	}
	h.mu.Lock()
	h.at[r.URL.Host] = append(h.at[r.URL.Host], time.Now())
	h.mu.Unlock()
	w := httptest.NewRecorder()
	aborted := serve(handler, w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if aborted && w.Body.Len() == 0 {
		return nil, io.EOF
	}
	answer = w.Result()
	if aborted {
		answer.Body = io.NopCloser(io.MultiReader(bytes.NewReader(w.Body.Bytes()), cut{}))
	}
	return answer, nil
}

func serve(handler http.Handler, w http.ResponseWriter, r *http.Request) (aborted bool) {
	defer func() {
		switch v := recover(); v {
		case nil:
		case http.ErrAbortHandler:
			aborted = true
		default:
			panic(v)
		}
	}()
	handler.ServeHTTP(w, r)
	return false
}

type cut struct{}

func (cut) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// reach makes a transport to nodes, and their URLs: host 0.test for the first, and so on. A node
// that is nil cannot be reached.
func reach(nodes ...http.Handler) (h *hosts, urls []string) {
	h = &hosts{handlers: map[string]http.Handler{}, at: map[string][]time.Time{}}
	for i, n := range nodes {
		host := fmt.Sprintf("%d.test", i)
		if n != nil {
			h.handlers[host] = n
		}
		urls = append(urls, "https://user:pass-word@"+host+"/v2/secret-key?key=other-secret")
	}
	return h, urls
}

func dial(t *testing.T, o Options, nodes ...http.Handler) (*Chain, *hosts) {
	t.Helper()
	h, urls := reach(nodes...)
	o.Transport = h
	c, err := Dial(t.Context(), chain, urls, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, h
}

func newNodeOf(blocks []history.Block, f meanrpc.Faults) *meanrpc.Node {
	n := meanrpc.New(chain, slices.Values(blocks))
	n.Set(f)
	return n
}

// collect reads logs, and checks that the parts cover the range.
func collect(ctx context.Context, c *Chain, from, to uint64) (logs []types.Log, parts int, err error) {
	next := from
	err = c.Logs(ctx, []common.Address{records}, []common.Hash{history.TopicListOp}, from, to, func(p Blocks) error {
		if p.From != next || p.To < p.From || p.To > to || p.Last.Number != p.To {
			return fmt.Errorf("a part of %d to %d with block %d, want it to begin at %d", p.From, p.To, p.Last.Number, next)
		}
		next = p.To + 1
		parts++
		logs = append(logs, p.Logs...)
		return nil
	})
	if err == nil && next != to+1 {
		err = fmt.Errorf("parts end before block %d of %d", next, to)
	}
	return logs, parts, err
}

// checkLogs fails unless the logs are those of the records' contract in a range.
func checkLogs(t *testing.T, got []types.Log, node *meanrpc.Node, blocks []history.Block, from, to uint64) {
	t.Helper()
	i := 0
	for _, b := range blocks {
		for index, l := range b.Logs {
			if b.Number < from || b.Number > to || l.Address != records {
				continue
			}
			want := types.Log{Address: l.Address, Data: l.Data, BlockNumber: b.Number, BlockHash: node.Hash(b.Number), Index: uint(index)}
			for _, topic := range l.Topics {
				want.Topics = append(want.Topics, topic)
			}
			if i >= len(got) || !sameLog(got[i], want) {
				t.Fatalf("log %d of %d is not that of block %d with index %d", i, len(got), b.Number, index)
			}
			if time := got[i].BlockTimestamp; time != 0 && time != uint64(b.Time) {
				t.Fatalf("block %d is of %d, want %d", b.Number, time, b.Time)
			}
			i++
		}
	}
	if i != len(got) {
		t.Fatalf("got %d logs, want %d", len(got), i)
	}
}
