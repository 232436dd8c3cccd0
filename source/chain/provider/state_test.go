package provider

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
)

// Whatever a node takes in a request, and whichever node has the state: all calls are answered, or it
// is an error that says why of each node.
func TestCall(t *testing.T) {
	const slots, at = 1200, 150
	var blocks []history.Block
	for n := range uint64(200) {
		blocks = append(blocks, history.Block{Chain: chain, Number: 1 + n, Logs: []history.Log{
			history.Op(records, history.Number(n%7), nil), history.ListMetadata(records, history.Number(n%7), "user", []byte{byte(n)}),
		}})
	}
	var calls []Call
	contracts := meanrpc.NewContracts()
	for _, b := range blocks {
		for _, l := range b.Logs {
			contracts.Log(b.Number, l)
		}
	}
	for n := range uint64(slots) {
		slot := history.Number(n)
		calls = append(calls, Call{records, append([]byte{0x02, 0xdc, 0x2a, 0xf9}, slot[:]...)})
		if n%100 == 0 {
			calls = append(calls, Call{records, []byte{1, 2, 3, 4}}) // a call that the contract refuses
		}
	}
	fails := func(err meanrpc.RPCError) meanrpc.Faults {
		return meanrpc.Faults{Methods: map[string]func() *meanrpc.RPCError{"eth_call": func() *meanrpc.RPCError { return &err }}}
	}
	slow := meanrpc.Faults{Methods: map[string]func() *meanrpc.RPCError{"eth_call": meanrpcSometimes(3, meanrpc.RPCError{Code: -32005, Message: "rate limit exceeded"})}}
	for name, test := range map[string]struct {
		nodes []meanrpc.Faults
		host  string // "" for none
		most  int    // calls of eth_call in all
		says  string
	}{
		"good":              {[]meanrpc.Faults{{}}, "0.test", 3, ""},
		"little gas":        {[]meanrpc.Faults{{MaxCalls: 60}}, "0.test", 60, ""},
		"no Multicall3":     {[]meanrpc.Faults{{NoMulticall: true}}, "0.test", slots + 20, ""},
		"nor batches":       {[]meanrpc.Faults{{NoMulticall: true, NoBatches: true}}, "0.test", slots + 300, ""},
		"small batches":     {[]meanrpc.Faults{{NoMulticall: true, MaxBatch: 30}}, "0.test", slots + 300, ""},
		"old state":         {[]meanrpc.Faults{{State: 10}, {}}, "1.test", 3, ""},
		"rate limits":       {[]meanrpc.Faults{slow}, "0.test", 8, ""},
		"no state":          {[]meanrpc.Faults{{NoState: true}, {State: 10}}, "", 0, "0.test: no node has the state of the contracts: error -32000: missing trie node"},
		"no eth_call":       {[]meanrpc.Faults{fails(meanrpc.RPCError{Code: -32601, Message: "the method eth_call does not exist/is not available"})}, "", 0, "does not exist"},
		"odd words":         {[]meanrpc.Faults{fails(meanrpc.RPCError{Code: -32603, Message: "no"})}, "", 0, "no node has the state of the contracts: error -32603: no"},
		"unknown to it yet": {[]meanrpc.Faults{fails(meanrpc.RPCError{Code: -32000, Message: "header not found"})}, "", 0, "header not found"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var handlers []http.Handler
			var nodes []*meanrpc.Node
			for _, f := range test.nodes {
				n := newNodeOf(blocks, f)
				handlers, nodes = append(handlers, n), append(nodes, n)
			}
			c, _ := dial(t, Options{}, handlers...)
			s, err := c.Call(t.Context(), calls, Block{Number: at}, nil)
			if test.host == "" {
				if !errors.Is(err, ErrNoState) || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%s: got %v, want %q", name, err, test.says)
				}
				return
			}
			if err != nil || s.Host != test.host || len(s.Results) != len(calls) {
				t.Fatalf("%s: got %d answers of %q, %v, want %d of %s", name, len(s.Results), s.Host, err, len(calls), test.host)
			}
			for i, call := range calls {
				if want, _ := contracts.Answer(call.To, call.Data, at); !bytes.Equal(s.Results[i], want) || (want == nil) != (s.Results[i] == nil) {
					t.Fatalf("%s: call %d: got %x, want %x", name, i, s.Results[i], want)
				}
			}
			asked := 0
			for _, n := range nodes {
				asked += n.Counts().Calls["eth_call"]
			}
			if asked > test.most+len(test.nodes) {
				t.Errorf("%s: got %d times eth_call, want at most %d", name, asked, test.most)
			}
			if _, err := c.Call(t.Context(), calls, Block{Number: at}, []string{s.Origin}); err == nil && len(test.nodes) == 1 {
				t.Errorf("%s: without the host: got no error", name)
			}
		})
	}
}

// meanrpcSometimes fails every nth call.
func meanrpcSometimes(n int64, err meanrpc.RPCError) func() *meanrpc.RPCError {
	var calls atomic.Int64
	return func() *meanrpc.RPCError {
		if calls.Add(1)%n == 0 {
			return &err
		}
		return nil
	}
}

// After a doubt, another node is asked first, and answers as large as the earlier ones are fetched
// in parts, so that truncated answers become complete.
func TestAgain(t *testing.T) {
	blocks := some(3, 2000, 300)
	synctest.Test(t, func(t *testing.T) {
		cut, other := newNodeOf(blocks, meanrpc.Faults{SilentCap: 77}), newNodeOf(blocks, meanrpc.Faults{SilentCap: 77})
		good, _ := dial(t, Options{}, newNodeOf(blocks, meanrpc.Faults{}))
		want, _, err := collect(t.Context(), good, 1, 2000)
		if err != nil {
			t.Fatal(err)
		}
		c, _ := dial(t, Options{}, cut, other)
		if got, _, err := collect(t.Context(), c, 1, 2000); err != nil || len(got) >= len(want) {
			t.Fatalf("got %d logs, %v, want fewer than %d", len(got), err, len(want))
		}
		c.Again()
		other.Reset()
		if got, _, err := collect(t.Context(), c, 1, 2000); err != nil || len(got) != len(want) || other.Counts().Calls["eth_getLogs"] == 0 {
			t.Errorf("got %d logs, %v, after %v, want %d from the other node", len(got), err, other.Counts().Calls, len(want))
		}
	})
}
