package provider

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/followpress/followpress/internal/secret"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
)

func failing(trouble meanrpc.Trouble) meanrpc.Faults {
	return meanrpc.Faults{Trouble: meanrpc.Every(1, trouble)}
}

// A URL of another chain, or one that does not answer, is found out by Dial. Errors have hosts and
// nothing else of URLs.
func TestDial(t *testing.T) {
	blocks := some(1, 10, 1000)
	good := func() http.Handler { return newNodeOf(blocks, meanrpc.Faults{}) }
	for _, test := range []struct {
		name  string
		nodes []http.Handler
		o     Options
		says  string // text of the error; "" for none
	}{
		{"all good", []http.Handler{good(), good()}, Options{}, ""},
		{"one away", []http.Handler{nil, good()}, Options{}, ""},
		{"one refuses", []http.Handler{newNodeOf(blocks, failing(meanrpc.Trouble{Status: 401})), good()}, Options{}, ""},
		{"all away", []http.Handler{nil, nil}, Options{}, "connection refused (tried for "},
		{"all refuse", []http.Handler{newNodeOf(blocks, failing(meanrpc.Trouble{Status: 401, Body: "no access for secret-key"}))}, Options{},
			"chain 8453: no usable node, 0.test: status 401: no access for [hidden] (check the URL and its key)"},
		{"another chain", []http.Handler{good(), newNodeOf(blocks, meanrpc.Faults{ChainID: 10})}, Options{},
			"1.test: it is a node of chain 10, not of chain 8453"},
		{"no URLs", nil, Options{}, "chain 8453 has 0 hosts"},
		{"quorum", []http.Handler{good()}, Options{Quorum: 2}, "chain 8453 has 1 hosts, but the quorum is 2"},
		{"finality", []http.Handler{good()}, Options{Finality: "soon"}, `finality is "soon", not finalized, safe or latest`},
		{"negative", []http.Handler{good()}, Options{Rate: -1}, "negative"},
		{"answers nonsense", []http.Handler{newNodeOf(blocks, failing(meanrpc.Trouble{Body: `{"id":1,"result":"secret-key"}`}))}, Options{Patience: time.Second}, "0.test: "},
		{"redirects", []http.Handler{newNodeOf(blocks, failing(meanrpc.Trouble{Status: 302}))}, Options{}, "0.test: status 302"},
	} {
		synctest.Test(t, func(t *testing.T) {
			h, urls := reach(test.nodes...)
			test.o.Transport = h
			c, err := Dial(t.Context(), chain, urls, test.o)
			if test.says != "" {
				checkError(t, test.name, err, test.says)
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			if b, err := c.Head(t.Context(), 0); err != nil || b.Number != 10 {
				t.Errorf("%s: got %v, %v, want block 10", test.name, b, err)
			}
			c.Close()
		})
	}
	for _, text := range []string{"", "secret-key", "https:///secret-key", "ws://0.test/secret-key", "https://0.test/%zz-secret"} {
		_, err := Dial(t.Context(), chain, []string{text}, Options{})
		checkError(t, text, err, "chain 8453")
	}
	_, err := Dial(t.Context(), chain, []string{"https://a.test/1", "https://A.test/2", "https://a.test:443/3", "https://a.test./4"}, Options{Quorum: 2})
	checkError(t, "one host", err, "has 1 hosts, but the quorum is 2")
	_, err = Dial(t.Context(), chain, []string{"http://a/secret-1", "http://a/secret-2", "http://a/secret-1"}, Options{})
	checkError(t, "twice", err, "a: duplicate URL")
}

// A node that cannot be reached at first is asked for its chain before it is used.
func TestLateNode(t *testing.T) {
	blocks := some(1, 1000, 100)
	synctest.Test(t, func(t *testing.T) {
		first, late := newNodeOf(blocks, meanrpc.Faults{}), newNodeOf(blocks, meanrpc.Faults{ChainID: 10})
		c, h := dial(t, Options{}, first, nil)
		h.handlers = map[string]http.Handler{"1.test": late}
		_, _, err := collect(t.Context(), c, 1, 1000)
		checkError(t, "late", err, "1.test: it is a node of chain 10")
	})
}

// The head is that of the finality. Nodes that lag are found out, and others asked.
func TestHead(t *testing.T) {
	blocks := some(1, 1000, 100)
	at := func(newest, safe, finalized uint64) *meanrpc.Node {
		n := newNodeOf(blocks, meanrpc.Faults{})
		n.SetHead(newest, safe, finalized)
		return n
	}
	synctest.Test(t, func(t *testing.T) {
		node := at(1000, 950, 900)
		for finality, want := range map[string]uint64{"": 900, Finalized: 900, Safe: 950, Latest: 1000} {
			c, _ := dial(t, Options{Finality: finality}, node)
			b, err := c.Head(t.Context(), want)
			if err != nil || b != (Block{want, node.Hash(want), node.Time(want)}) {
				t.Errorf("%s: got %v, %v, want block %d", finality, b, err, want)
			}
			requests := int64(3) // the chain's id, the head, and the final block
			if c.o.Finality == Finalized {
				requests = 2
			}
			if n := c.Cost()[0].Requests; n != requests {
				t.Errorf("%s: %d requests, want %d", finality, n, requests)
			}
		}
		lags := at(1000, 800, 800)
		c, _ := dial(t, Options{}, lags, node)
		if b, err := c.Head(t.Context(), 850); err != nil || b.Number != 900 {
			t.Errorf("with one that lags: got %v, %v, want block 900", b, err)
		}
		c, _ = dial(t, Options{Patience: time.Minute}, lags)
		_, err := c.Head(t.Context(), 850)
		checkError(t, "lags", err, "chain 8453: the finalized block: 0.test: its finalized block is 800, before 850")
		if !errors.Is(err, ErrBehind) {
			t.Errorf("lags: got %v, want ErrBehind", err)
		}
		c, _ = dial(t, Options{Quorum: 2}, node, lags)
		if b, err := c.Head(t.Context(), 0); err != nil || b.Number != 800 {
			t.Errorf("quorum: got %v, %v, want block 800", b, err)
		}
	})
}

// A node that knows no finalized block says so in many ways. Each is an error soon, which says what to do.
func TestNoFinalizedBlock(t *testing.T) {
	for name, body := range map[string]string{
		"null":           `{"jsonrpc":"2.0","id":0,"result":null}`,
		"no such block":  `{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"finalized block not found"}}`,
		"unknown block":  `{"jsonrpc":"2.0","id":0,"error":{"code":-39001,"message":"Unknown block"}}`,
		"no such number": `{"jsonrpc":"2.0","id":0,"error":{"code":-32603,"message":"strconv.ParseUint: parsing \"finalized\": invalid syntax"}}`,
		"unknown tag":    `{"jsonrpc":"2.0","id":0,"error":{"code":-32602,"message":"unknown tag finalized"}}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			knows, node := newNodeOf(nil, meanrpc.Faults{}), newNodeOf(nil, meanrpc.Faults{})
			knows.SetHead(1000, 950, 900)
			c, _ := dial(t, Options{}, node)
			node.Set(failing(meanrpc.Trouble{Body: body}))
			began := time.Now()
			_, err := c.Head(t.Context(), 0)
			checkError(t, name, err, "0.test: it knows no finalized block")
			checkError(t, name, err, "choose another last block with --finality")
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("%s: an error after %v, want it soon", name, took)
			}
			c, _ = dial(t, Options{}, node, knows)
			if b, err := c.Head(t.Context(), 0); err != nil || b.Number != 900 {
				t.Errorf("%s, with another node: got %v, %v, want block 900", name, b, err)
			}
		})
	}
}

// A log of no block is an error soon.
func TestLogOfNoBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := newNodeOf(nil, meanrpc.Faults{})
		node.SetHead(100, 100, 100)
		c, _ := dial(t, Options{}, node)
		const answer = `{"jsonrpc":"2.0","id":0,"result":[{"address":"0x0000000000000000000000000000000000000001","blockHash":null}]}`
		node.Set(meanrpc.Faults{Trouble: func(r meanrpc.Request) *meanrpc.Trouble {
			switch {
			case !slices.Contains(r.Methods, "eth_getLogs"):
				return nil
			case len(r.Methods) > 1:
				return &meanrpc.Trouble{Body: "[" + answer + "]"}
			}
			return &meanrpc.Trouble{Body: answer}
		}})
		began := time.Now()
		_, _, err := collect(t.Context(), c, 1, 100)
		checkError(t, "blockHash", err, "0.test: log 0 of the answer: blockHash: null")
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("an error after %v, want it soon", took)
		}
	})
}

// Some nodes refuse a call with a list of errors.
func TestErrorsInAList(t *testing.T) {
	const text = "Block range limit exceeded. See more details at https://docs.example/limits"
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"` + text + `"}}`,
		` [{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"` + text + `"}},{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"b"}}]`,
	} {
		f := failedStatus(&http.Response{StatusCode: http.StatusForbidden, Body: io.NopCloser(strings.NewReader(body))}, &secret.Hider{})
		if f.kind != asked || !strings.Contains(f.Error(), text) {
			t.Errorf("%s: got %v of kind %d, want a question to halve", body, f, f.kind)
		}
	}
	for _, body := range []string{"[]", "[1]", "[{}]", "[", ""} {
		if f := failedStatus(&http.Response{StatusCode: http.StatusForbidden, Body: io.NopCloser(strings.NewReader(body))}, &secret.Hider{}); f.kind != refused {
			t.Errorf("%s: got %v of kind %d, want a URL that answers nothing", body, f, f.kind)
		}
	}
}

// A block has the number, hash and time that the node says. One that no node has is ErrBehind.
func TestBlock(t *testing.T) {
	blocks := some(1, 1000, 100)
	synctest.Test(t, func(t *testing.T) {
		node := newNodeOf(blocks, meanrpc.Faults{NewFields: true})
		c, _ := dial(t, Options{Patience: 10 * time.Second}, node)
		if b, err := c.Block(t.Context(), 77); err != nil || b != (Block{77, node.Hash(77), node.Time(77)}) {
			t.Errorf("got %v, %v", b, err)
		}
		if _, err := c.Block(t.Context(), 1001); !errors.Is(err, ErrBehind) {
			t.Errorf("got %v, want ErrBehind", err)
		}
		c, _ = dial(t, Options{Quorum: 2}, node, newNodeOf(blocks, meanrpc.Faults{OtherChain: true}))
		_, err := c.Block(t.Context(), 77)
		checkError(t, "quorum", err, "nodes disagree: 0.test and 1.test: block 77 is 0x")
	})
}

// Times of blocks come in batches of the size that a node takes, and only of the blocks that logs
// were in.
func TestTimes(t *testing.T) {
	blocks := some(1, 1000, 100)
	synctest.Test(t, func(t *testing.T) {
		for _, f := range []meanrpc.Faults{{}, {MaxBatch: 30}, {MaxBatch: 30, Refusal: 200}, {NoBatches: true}, {NoBatches: true, Refusal: 200}, {Backwards: true},
			{Trouble: meanrpc.Sometimes(1, 0.3, meanrpc.Troubles()...)}} {
			node := newNodeOf(blocks, f)
			c, _ := dial(t, Options{Concurrency: 1}, node)
			wanted := map[uint64]common.Hash{}
			for n := uint64(1); n <= 1000; n += 4 {
				wanted[n] = node.Hash(n)
			}
			wanted[9] = common.Hash{}
			times, err := c.Times(t.Context(), wanted)
			if err != nil || len(times) != len(wanted) {
				t.Fatalf("%+v: got %d times, %v, want %d", f, len(times), err, len(wanted))
			}
			for n, time := range times {
				if time != node.Time(n) {
					t.Fatalf("block %d is of %d, want %d", n, time, node.Time(n))
				}
			}
			if n := node.Counts().Requests; f.MaxBatch == 0 && f.Trouble == nil && !f.NoBatches && n != 1+3 || f.MaxBatch == 30 && n > 1+2+12 {
				t.Errorf("%+v: %d requests", f, n)
			}
		}
		other, node := newNodeOf(blocks, meanrpc.Faults{OtherChain: true}), newNodeOf(blocks, meanrpc.Faults{})
		wanted := map[uint64]common.Hash{5: node.Hash(5), 6: node.Hash(6)}
		c, _ := dial(t, Options{}, other, node)
		if times, err := c.Times(t.Context(), wanted); err != nil || !maps.Equal(times, map[uint64]int64{5: node.Time(5), 6: node.Time(6)}) {
			t.Errorf("got %v, %v, want those of the second node", times, err)
		}
		c, _ = dial(t, Options{}, other)
		_, err := c.Times(t.Context(), wanted)
		checkError(t, "another chain's blocks", err, "0.test: nodes disagree: block 5 is ")
		if !errors.Is(err, ErrDisagree) {
			t.Errorf("got %v, want ErrDisagree", err)
		}
	})
}

// A node with a rate is asked a little more slowly than it allows, and not at all while it says so.
func TestRateLimits(t *testing.T) {
	blocks := some(1, 20_000, 10)
	synctest.Test(t, func(t *testing.T) {
		const perSecond = 10
		var second atomic.Int64
		var inSecond atomic.Int64
		node := newNodeOf(blocks, meanrpc.Faults{Latency: 50 * time.Millisecond, Trouble: func(meanrpc.Request) *meanrpc.Trouble {
			if now := time.Now().Unix(); second.Swap(now) != now {
				inSecond.Store(0)
			}
			if inSecond.Add(1) <= perSecond {
				return nil
			}
			return &meanrpc.Trouble{Status: http.StatusTooManyRequests}
		}})
		c, _ := dial(t, Options{MaxRange: 10}, node)
		begun := time.Now()
		if _, _, err := collect(t.Context(), c, 1, 20_000); err != nil {
			t.Fatal(err)
		}
		least, took := 2000/perSecond*time.Second, time.Since(begun)
		cost := c.Cost()[0]
		t.Logf("%s of at least %s, %d beyond the rate", took, least, cost.Limited)
		if took > 2*least {
			t.Errorf("2,000 requests at 10 a second took %s, want at most twice %s", took, least)
		}
		if cost.Limited > 200 || cost.Limited == 0 || cost.Halved > 0 {
			t.Errorf("%d requests were beyond the rate, want few of 2,000; %d ranges were halved, want none", cost.Limited, cost.Halved)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		node := newNodeOf(blocks, meanrpc.Faults{Trouble: func(r meanrpc.Request) *meanrpc.Trouble {
			if r.N != 20 {
				return nil
			}
			return &meanrpc.Trouble{Status: http.StatusTooManyRequests, RetryAfter: "30"}
		}})
		c, h := dial(t, Options{MaxRange: 1000, Concurrency: 4}, node)
		if _, _, err := collect(t.Context(), c, 1, 20_000); err != nil {
			t.Fatal(err)
		}
		at := h.at["0.test"]
		for i, when := range at[1:] {
			if gap := when.Sub(at[i]); gap >= 30*time.Second {
				return
			}
		}
		t.Errorf("no pause of 30 s in %d requests", len(at))
	})
	synctest.Test(t, func(t *testing.T) { // a minute without any answer is forgotten soon
		node := newNodeOf(blocks, meanrpc.Faults{})
		c, _ := dial(t, Options{MaxRange: 10}, node)
		begun := time.Now()
		node.Set(meanrpc.Faults{Latency: 50 * time.Millisecond, Trouble: func(meanrpc.Request) *meanrpc.Trouble {
			if time.Since(begun) > time.Minute {
				return nil
			}
			return &meanrpc.Trouble{Error: &meanrpc.RPCError{Code: 429, Message: "capacity"}}
		}})
		if _, _, err := collect(t.Context(), c, 1, 20_000); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took > 4*time.Minute {
			t.Errorf("2,000 requests after a minute without answers took %s", took)
		}
	})
	synctest.Test(t, func(t *testing.T) { // our own rate
		c, h := dial(t, Options{MaxRange: 1000, Rate: 5}, newNodeOf(blocks, meanrpc.Faults{}))
		if _, _, err := collect(t.Context(), c, 1, 20_000); err != nil {
			t.Fatal(err)
		}
		at := h.at["0.test"]
		if took := at[len(at)-1].Sub(at[0]); took < 20*time.Second/5-time.Millisecond {
			t.Errorf("%d requests took %s, want 5 a second", len(at), took)
		}
	})
}

// URLs with one key, or one host and no key, have one rate and one number of requests at a time,
// also for several chains.
func TestShares(t *testing.T) {
	const key = "0123456789abcdef0123456789abcdef"
	for name, test := range map[string]struct {
		urls   [2]string
		shared bool
	}{
		"one key":   {[2]string{"https://base.test/v3/" + key, "https://mainnet.test/v3/" + key}, true},
		"one query": {[2]string{"https://base.test/?chain=base&key=" + key, "https://op.test/?key=" + key}, true},
		"one host":  {[2]string{"https://a.test/base", "https://A.test/op"}, true},
		"two keys":  {[2]string{"https://a.test/" + key, "https://a.test/" + key + "1"}, false},
		"two hosts": {[2]string{"https://a.test/v3", "https://b.test/v3"}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			var now, most atomic.Int64
			node := newNodeOf(nil, meanrpc.Faults{Latency: time.Second})
			node.SetHead(100, 100, 100)
			count := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				most.Store(max(most.Load(), now.Add(1)))
				node.ServeHTTP(w, r)
				now.Add(-1)
			})
			h := &hosts{handlers: map[string]http.Handler{}, at: map[string][]time.Time{}}
			shares, begun := new(Shares), time.Now()
			var all sync.WaitGroup
			for _, text := range test.urls {
				u, err := url.Parse(text)
				if err != nil {
					t.Fatal(err)
				}
				h.handlers[u.Host] = count
			}
			for _, text := range test.urls {
				all.Go(func() {
					c, err := Dial(t.Context(), chain, []string{text}, Options{MaxRange: 1, Rate: 2, Concurrency: 1, Shares: shares, Transport: h})
					if err == nil {
						_, _, err = collect(t.Context(), c, 1, 49)
					}
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			all.Wait()
			if took := time.Since(begun); (took > 75*time.Second) != test.shared || (most.Load() == 1) != test.shared {
				t.Errorf("%s: 100 requests took %s, at most %d at a time", name, took, most.Load())
			}
		})
	}
}

// An error in place of a list of answers applies to all calls.
func TestErrorForABatch(t *testing.T) {
	blocks := some(1, 1_000, 10)
	synctest.Test(t, func(t *testing.T) {
		body := `{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"request rate exceeded"}}`
		node := newNodeOf(blocks, meanrpc.Faults{Trouble: meanrpc.Every(2, meanrpc.Trouble{Body: body})})
		c, _ := dial(t, Options{MaxRange: 100, Concurrency: 1}, node)
		logs, parts, err := collect(t.Context(), c, 1, 1_000)
		if err != nil {
			t.Fatal(err)
		}
		checkLogs(t, logs, node, blocks, 1, 1_000)
		if cost := c.Cost()[0]; parts != 10 || cost.Limited < 5 || cost.Halved > 0 {
			t.Errorf("got %d parts and %+v, want 10, and rate limits only", parts, cost)
		}
	})
}

// A permanent failure becomes an error after the patience, or at once if the node says that it is
// permanent.
func TestPatience(t *testing.T) {
	blocks := some(1, 1000, 10)
	for name, test := range map[string]struct {
		trouble meanrpc.Trouble
		says    string
		within  time.Duration
	}{
		"down":          {meanrpc.Trouble{Status: 503, Body: "secret-key is down"}, "0.test: status 503: [hidden] is down (tried for ", 3 * time.Minute},
		"rate":          {meanrpc.Trouble{Status: 429}, "0.test: status 429:  (tried for", 3 * time.Minute},
		"at once":       {meanrpc.Trouble{Status: 429, RetryAfter: "0"}, "0.test: status 429:  (tried for", 3 * time.Minute},
		"in the past":   {meanrpc.Trouble{Status: 503, RetryAfter: "Wed, 21 Oct 1998 07:28:00 GMT"}, "0.test: status 503:  (tried for", 3 * time.Minute},
		"tomorrow":      {meanrpc.Trouble{Status: 429, RetryAfter: "86400"}, "asks to wait 24h0m0s, longer than the patience of 3m0s", time.Second},
		"hangs":         {meanrpc.Trouble{Hang: true}, "0.test: no answer in time (tried for", 5 * time.Minute},
		"cut":           {meanrpc.Trouble{Cut: true}, "0.test: the answer is cut off", 3 * time.Minute},
		"no more money": {meanrpc.Trouble{Status: 402}, "0.test: status 402:", time.Second},
		"no more money, in JSON": {
			meanrpc.Trouble{Status: 402, Error: &meanrpc.RPCError{Code: -32005, Message: "daily request count exceeded, request rate limited"}},
			"0.test: status 402, error -32005: daily request", time.Second,
		},
		"no more of today": {meanrpc.Trouble{Error: &meanrpc.RPCError{Code: -32003, Message: "daily request limit reached - upgrade your account"}},
			"0.test: error -32003: daily request", time.Second},
		"no more of this month": {meanrpc.Trouble{Status: 429, Body: "Monthly capacity limit exceeded. Upgrade your plan"}, "0.test: status 429: Monthly", time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			node := newNodeOf(blocks, meanrpc.Faults{})
			var logged bytes.Buffer
			c, _ := dial(t, Options{Patience: 3 * time.Minute, Log: slog.New(slog.NewTextHandler(&logged, nil))}, node)
			node.Set(failing(test.trouble))
			begun := time.Now()
			_, err := c.Head(t.Context(), 0)
			checkError(t, name, err, test.says)
			if took := time.Since(begun); took > test.within || took < test.within/3 && test.within > time.Second {
				t.Errorf("%s: the error came after %s, want about %s", name, took, test.within)
			}
			if n := c.Cost()[0].Retries; n > 40 {
				t.Errorf("%s: got %d retries, want at most 40", name, n)
			}
			checkError(t, name+", log", errors.New(logged.String()), "host=0.test")
			_, _, err = collect(t.Context(), c, 1, 10)
			checkError(t, name, err, "logs of blocks 1 to ", "0.test")
		})
	}
}

// Requests use HTTP/2 and accept compressed answers, and the costs count the bytes sent.
func TestTransport(t *testing.T) {
	blocks := some(1, 10_000, 200)
	node := newNodeOf(blocks, meanrpc.Faults{})
	var other atomic.Int64
	var answers atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 || r.Header.Get("Accept-Encoding") != "gzip" {
			other.Add(1)
		}
		answers.Add(1)
		node.ServeHTTP(w, r)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	c := overTLS(t, server, Options{MaxRange: 2000})
	logs, _, err := collect(t.Context(), c, 1, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	checkLogs(t, logs, node, blocks, 1, 10_000)
	if other.Load() > 0 {
		t.Errorf("%d of %d requests were not HTTP/2 or did not ask for gzip", other.Load(), answers.Load())
	}
	cost, sent := c.Cost()[0], node.Counts().Bytes
	if cost.Received < int64(sent) || cost.Received > int64(sent)+200*answers.Load()+20_000 || cost.Sent == 0 {
		t.Errorf("counted %d bytes received and %d sent; the node has sent %d", cost.Received, cost.Sent, sent)
	}
}

// overTLS reaches a server with its own certificate.
func overTLS(t testing.TB, server *httptest.Server, o Options) *Chain {
	t.Helper()
	c := &Chain{id: chain, o: o}
	if err := c.o.check(); err != nil {
		t.Fatal(err)
	}
	n, err := c.newNode(0, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	n.http.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: roots}
	c.nodes = []*node{n}
	t.Cleanup(c.Close)
	return c
}

// An answer without end costs no more memory than the largest that is allowed; a range whose answer
// is larger than that is halved.
func TestLargeAnswers(t *testing.T) {
	blocks := some(1, 300, 1000)
	synctest.Test(t, func(t *testing.T) {
		node := newNodeOf(blocks, meanrpc.Faults{})
		c, _ := dial(t, Options{MaxAnswer: 30_000}, node)
		logs, parts, err := collect(t.Context(), c, 1, 300)
		if err != nil || parts < 10 {
			t.Fatalf("got %d parts and %v, want many small ones", parts, err)
		}
		checkLogs(t, logs, node, blocks, 1, 300)
	})
	var sent atomic.Int64
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for text := []byte(`{"result":"`); ; text = bytes.Repeat([]byte("a"), 1<<16) {
			n, err := w.Write(text)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	}))
	defer endless.Close()
	_, err := Dial(t.Context(), chain, []string{endless.URL}, Options{MaxAnswer: 1 << 20, Patience: time.Second})
	checkError(t, "endless", err, "the answer is too large")
	if sent.Load() > 100<<20 {
		t.Errorf("%d bytes were taken", sent.Load())
	}
}

// Parts of URLs that may be secret are not in errors, whatever the node says; hosts are.
func TestHiding(t *testing.T) {
	u, err := url.Parse("https://someone:pass%20word@eth.example/v3/0123456789abcdef%2F/rpc?apikey=abcdef%20123&x=1")
	if err != nil {
		t.Fatal(err)
	}
	text := "no access to " + u.String() + " with 0123456789abcdef/ or abcdef 123 or pass word at eth.example/v3"
	got := hiding(u).Replace(text)
	for _, secret := range []string{"someone", "pass", "0123456789", "abcdef"} {
		if strings.Contains(got, secret) {
			t.Errorf("%q has %q", got, secret)
		}
	}
	if !strings.Contains(got, "eth.example/v3") {
		t.Errorf("%q has no host", got)
	}
}

// A quote does not end in the middle of a secret, whose first part would be left.
func TestHidingBeforeTheEnd(t *testing.T) {
	for pad := maxQuote - 40; pad < maxQuote; pad++ {
		text := strings.Repeat(".", pad) + "secret-key"
		for _, trouble := range []meanrpc.Trouble{{Status: 401, Body: text}, {Error: &meanrpc.RPCError{Code: -32600, Message: text}}} {
			h, urls := reach(newNodeOf(nil, failing(trouble)))
			_, err := Dial(t.Context(), chain, urls, Options{Transport: h, Patience: time.Millisecond})
			if err == nil || strings.Contains(err.Error(), "secre") {
				t.Fatalf("got %v, want an error without any part of the key", err)
			}
		}
	}
}

// A wait until a time is measured by the clock that says it.
func TestRetryAfter(t *testing.T) {
	theirs := time.Now().Add(-time.Hour)
	h := http.Header{"Date": {theirs.UTC().Format(http.TimeFormat)}, "Retry-After": {theirs.Add(20 * time.Second).UTC().Format(http.TimeFormat)}}
	if got := retryAfter(h); got != 20*time.Second {
		t.Errorf("got %s, want 20s", got)
	}
}

// Providers' errors about rates are distinguished from errors about ranges.
func TestRateWords(t *testing.T) {
	for _, trouble := range meanrpc.Troubles() {
		if e := trouble.Error; e != nil && failedCall(e.Code, e.Message).kind != limited {
			t.Errorf("%d %s: want a rate limit", e.Code, e.Message)
		}
	}
	for _, words := range meanrpc.AllWords() {
		var all []*meanrpc.RPCError
		if words.Blocks != nil {
			all = append(all, words.Blocks(1, 100_000, 10_000))
		}
		if words.Results != nil {
			all = append(all, words.Results(1, 100_000, 500, 10_000))
		}
		for _, e := range all {
			if failedCall(e.Code, e.Message).kind != asked {
				t.Errorf("%s: %d %s: want a limit of ranges", words.Provider, e.Code, e.Message)
			}
		}
	}
	for text, code := range map[string]int{
		"Too many requests, reason: call rate limit exhausted, retry in 10s": -32090, "exceeded the quota usage": -32000,
		"Request rate exceeded; see Retry-After": -32005, "Your app has exceeded its concurrent requests capacity": 429,
		"max requests per second reached": -32000, "slow down": -32029,
	} {
		if failedCall(code, text).kind != limited {
			t.Errorf("%d %s: want a rate limit", code, text)
		}
	}
	for _, text := range []string{
		"eth_getLogs requests with up to a 500 block range", "query exceeds max results 20000, retry with the range 1-2",
		"limited to 1024 blocks per request", "exceed maximum block range: 5000", "requested too many blocks from 1 to 9, maximum is set to 2048",
		"execution timeout", "please limit the query to at most 1000 blocks",
	} {
		if failedCall(-32005, text).kind != asked {
			t.Errorf("%s: want a limit of ranges", text)
		}
	}
}

// Errors about blocks that a node lacks are distinguished from errors about ranges.
func TestBlockWords(t *testing.T) {
	for text, code := range map[string]int{
		"block range extends beyond current head block": -32000, "header not found": -32000, "One of the blocks specified in filter (fromBlock, toBlock or blockHash) cannot be found.": -32000,
		"pruned history unavailable": 4444, "history has been pruned for this block": -32000, "toBlock is greater than latest block": -32602,
	} {
		if f := failedCall(code, text); f.kind != behind {
			t.Errorf("%d %s: got kind %d, want behind", code, text, f.kind)
		}
	}
	for _, words := range meanrpc.AllWords() {
		if words.Blocks != nil {
			if e := words.Blocks(1, 100_000, 10_000); failedCall(e.Code, e.Message).kind != asked {
				t.Errorf("%s: %s: want a range that is too large", words.Provider, e.Message)
			}
		}
	}
}

// Two readings of one chain at a time do not wait for each other.
func TestTwoReadings(t *testing.T) {
	blocks := some(1, 20_000, 10)
	synctest.Test(t, func(t *testing.T) {
		node := newNodeOf(blocks, meanrpc.Faults{Latency: time.Second, MaxBlocks: 300})
		c, _ := dial(t, Options{}, node)
		done := make(chan error)
		for range 2 {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				logs, _, err := collect(ctx, c, 1, 20_000)
				if err == nil && !slices.IsSortedFunc(logs, func(a, b types.Log) int { return int(a.BlockNumber) - int(b.BlockNumber) }) {
					err = errors.New("not in order")
				}
				done <- err
			}()
		}
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// Answers that are made to do harm are errors like others.
func TestHarmfulAnswers(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for name, body := range map[string]string{
		"deep": deep(1 << 20), "deep, in a log": `[{"id":1,"jsonrpc":"2.0","result":[{"blockTimestamp":` + deep(9_900) + `}]}]`,
		"deep, in an object": strings.Repeat(`{"a":`, 1<<18), "nulls": "[null,null]", "none": "[]", "null": "null", "a number": "1e999999999",
		"deep, in an error": `[{"id":1,"jsonrpc":"2.0","error":{"code":1,"message":"a","data":` + deep(9_900) + `}}]`,
		"one result twice":  `[{"id":2,"jsonrpc":"2.0","result":[]},{"id":2,"jsonrpc":"2.0","result":[]}]`,
	} {
		synctest.Test(t, func(t *testing.T) {
			node := newNodeOf(nil, meanrpc.Faults{})
			node.SetHead(100, 100, 100)
			c, _ := dial(t, Options{Patience: 5 * time.Second, Concurrency: 1}, node)
			node.Set(failing(meanrpc.Trouble{Body: body}))
			_, _, err := collect(t.Context(), c, 1, 100)
			checkError(t, name, err, "0.test: ")
			if err != nil && len(err.Error()) > 1000 {
				t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
			}
		})
	}
}
