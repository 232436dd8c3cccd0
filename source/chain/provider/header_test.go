package provider

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/gorilla/websocket"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/secret"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
)

// Logs by the hashes of blocks are those of the range, also from nodes that do not know such questions;
// one that does not have a block answers no logs.
func TestLogsOf(t *testing.T) {
	blocks := some(1, 60, 500)
	for name, faults := range map[string]meanrpc.Faults{
		"":                     {},
		"no batches":           {NoBatches: true},
		"small batches":        {MaxBatch: 3},
		"no questions by hash": {NoHashes: true},
		"removed, shuffled":    {Removed: true, Shuffled: true},
	} {
		n := meanrpc.New(chain, slices.Values(blocks))
		n.Set(faults)
		c, _ := dial(t, Options{Finality: Latest}, n)
		head, err := c.Latest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var numbers []uint64
		for number := uint64(20); number <= head.Number; number++ {
			numbers = append(numbers, number)
		}
		headers, err := c.Headers(t.Context(), numbers)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var of []Block
		for i, h := range headers {
			if i > 0 && h.Parent != headers[i-1].Hash || h.Number != numbers[i] {
				t.Fatalf("%s: got block %d with parent %s after %v", name, h.Number, h.Parent, headers[i-1])
			}
			of = append(of, h.Block)
		}
		addresses, topics := []common.Address{records}, []common.Hash{history.TopicListOp}
		found, err := c.LogsOf(t.Context(), addresses, topics, of)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got, want []types.Log
		for i, p := range found {
			got = append(got, p.Logs...)
			if len(p.Logs) > 0 != headers[i].MayHave(addresses, topics) {
				t.Errorf("%s: block %d has %d logs, and its bloom filter says otherwise", name, of[i].Number, len(p.Logs))
			}
		}
		err = c.Logs(t.Context(), addresses, topics, 20, head.Number, func(p Blocks) error {
			want = append(want, p.Logs...)
			return nil
		})
		if err != nil || len(want) == 0 || !slices.EqualFunc(got, want, sameLog) {
			t.Errorf("%s: got %d logs, want %d: %v", name, len(got), len(want), err)
		}
	}
}

// A bloom filter with a missing bit proves something only for a block without transactions.
func TestMayHave(t *testing.T) {
	addresses, topics := []common.Address{records}, []common.Hash{history.TopicListOp}
	full := types.Bloom{}
	for i := range full {
		full[i] = 0xff
	}
	var other, both types.Bloom
	other.Add(registry[:])
	other.Add(history.TopicListOp[:])
	both.Add(records[:])
	both.Add(history.TopicListOp[:])
	for _, test := range []struct {
		h    Header
		want bool
	}{
		{Header{Empty: true}, false}, {Header{}, true}, {Header{Bloom: full}, true}, {Header{Bloom: other}, false}, {Header{Bloom: both}, true},
	} {
		if got := test.h.MayHave(addresses, topics); got != test.want {
			t.Errorf("bloom %x…, empty %v: got %v, want %v", test.h.Bloom[:4], test.h.Empty, got, test.want)
		}
	}
}

// With any input from a WebSocket, Watch ends with an error that contains only the host of the URL.
func TestWatchOfHostileNodes(t *testing.T) {
	const id = `{"jsonrpc":"2.0","id":1,"result":"0x2105"}`
	const subscribed = `{"jsonrpc":"2.0","id":1,"result":"0x9"}`
	for name, test := range map[string]struct {
		messages []string
		want     string
	}{
		"no WebSocket":      {nil, "status 404"},
		"another chain":     {[]string{`{"jsonrpc":"2.0","id":1,"result":"0x1"}`}, "not of chain 8453"},
		"no subscriptions":  {[]string{id, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"secret-key is not allowed"}}`}, "[hidden] is not allowed"},
		"no JSON":           {[]string{id, subscribed, "<html>"}, "a value beginning with '<'"},
		"a long message":    {[]string{id, subscribed, `{"x":"` + strings.Repeat("x", 2*largestMessage) + `"}`}, "read limit"},
		"a header of lies":  {[]string{id, subscribed, `{"params":{"result":{"number":"0x1","hash":"0x12"}}}`}, "does not have 32 bytes"},
		"half of a header":  {[]string{id, subscribed, `{"params":{"result":{"number":"0x1"}}}`}, "it has no hash"},
		"something else":    {[]string{id, subscribed, `{"method":"other","params":{"x":1}}`}, "close"},
		"an answer of null": {[]string{id, `null`}, "no result"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if test.messages == nil {
				http.NotFound(w, r)
				return
			}
			if user, password, _ := r.BasicAuth(); user != "user" || password != "pass-word" {
				t.Errorf("%s: got user %q, password %q", name, user, password)
			}
			conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
			if err != nil {
				return
			}
			defer conn.Close()
			for i, m := range test.messages {
				if i < 2 {
					if _, _, err := conn.ReadMessage(); err != nil {
						return
					}
				}
				if conn.WriteMessage(websocket.TextMessage, []byte(m)) != nil {
					return
				}
			}
		}))
		s, ok := newSocket(strings.Replace(server.URL, "http://", "ws://user:pass-word@", 1) + "/v2/secret-key")
		if !ok {
			t.Fatal("no socket")
		}
		c := &Chain{id: chain, sockets: []*socket{s}}
		err := c.Watch(t.Context(), 0, func(Header) { t.Errorf("%s: got a header", name) })
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret-key") || strings.Contains(err.Error(), "pass-word") {
			t.Errorf("%s: got %v, want %q and no secret", name, err, test.want)
		}
		server.Close()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := &Chain{id: chain, sockets: []*socket{{url: "ws://127.0.0.1:1", hide: &secret.Hider{}}}}
	if err := c.Watch(ctx, 0, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: got %v", err)
	}
}

// A host that DNS does not know may be there again soon, so it is asked again, and the error names the flag, and no key.
func TestUnknownHost(t *testing.T) {
	unknown := &net.DNSError{Err: "no such host", Name: "nodes.example", IsNotFound: true}
	err := classify(t.Context(), &url.Error{Op: "Post", URL: "https://nodes.example/a-key", Err: unknown}, new(secret.Hider))
	if text := err.Error(); !strings.Contains(text, "no such host") || !strings.Contains(text, "check --rpc") || strings.Contains(text, "a-key") {
		t.Errorf("got %v, want the host and what to check", err)
	}
}
