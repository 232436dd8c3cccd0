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
	"net"
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

	"github.com/followpress/followpress/fixtures/history"
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

// URLs with one host have one rate and one number of requests at a time, also for several chains.
func TestShares(t *testing.T) {
	for name, test := range map[string]struct {
		urls   [2]string
		shared bool
	}{
		"one host":  {[2]string{"https://a.test/base", "https://A.test/op"}, true},
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

// Errors of providers are classified by their text. TestTroubles and TestLimits have the texts of known providers.
func TestWords(t *testing.T) {
	for text, want := range map[string]struct {
		code int
		kind kind
	}{
		"Too many requests, reason: call rate limit exhausted, retry in 10s": {-32090, limited}, "exceeded the quota usage": {-32000, limited},
		"Request rate exceeded; see Retry-After": {-32005, limited}, "Your app has exceeded its concurrent requests capacity": {429, limited},
		"max requests per second reached": {-32000, limited}, "slow down": {-32029, limited},
		"eth_getLogs requests with up to a 500 block range": {-32005, asked}, "query exceeds max results 20000, retry with the range 1-2": {-32005, asked},
		"limited to 1024 blocks per request": {-32005, asked}, "exceed maximum block range: 5000": {-32005, asked},
		"requested too many blocks from 1 to 9, maximum is set to 2048": {-32005, asked}, "execution timeout": {-32005, asked},
		"please limit the query to at most 1000 blocks": {-32005, asked},
		"block range extends beyond current head block": {-32000, behind}, "header not found": {-32000, behind},
		"One of the blocks specified in filter (fromBlock, toBlock or blockHash) cannot be found.": {-32000, behind},
		"pruned history unavailable": {4444, behind}, "history has been pruned for this block": {-32000, behind}, "toBlock is greater than latest block": {-32602, behind},
	} {
		if f := failedCall(want.code, text); f.kind != want.kind {
			t.Errorf("%d %s: got kind %d, want %d", want.code, text, f.kind, want.kind)
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
		"a log of no block": `[{"id":1,"jsonrpc":"2.0","result":[{"address":"0x0000000000000000000000000000000000000001","blockHash":null}]}]`,
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

// Logs by the hashes of blocks are those of the range;
// one that does not have a block answers no logs.
func TestLogsOf(t *testing.T) {
	blocks := some(1, 60, 500)
	for name, faults := range map[string]meanrpc.Faults{
		"":                  {},
		"no batches":        {NoBatches: true},
		"small batches":     {MaxBatch: 3},
		"removed, shuffled": {Removed: true, Shuffled: true},
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

// A block is empty only if its list of transactions, its bloom filter and its receipts root say so.
// Errors name the member.
func TestBlockAnswer(t *testing.T) {
	const empty = `{"number":"0x7","hash":"0x1111111111111111111111111111111111111111111111111111111111111111","timestamp":"0x70",` +
		`"transactions":[],"logsBloom":"0xBLOOM","receiptsRoot":"ROOT"}`
	text := strings.NewReplacer("BLOOM", strings.Repeat("00", 256), "ROOT", types.EmptyReceiptsHash.String()).Replace(empty)
	for name, test := range map[string]struct {
		old, by string
		empty   bool
		err     string
	}{
		"empty":                {"", "", true, ""},
		"no list":              {`"transactions":[],`, "", false, ""},
		"null":                 {`"transactions":[]`, `"transactions":null`, false, ""},
		"an object":            {`"transactions":[]`, `"transactions":{}`, false, ""},
		"a transaction":        {`"transactions":[]`, `"transactions":["0x12"]`, false, ""},
		"no bloom filter":      {`"logsBloom"`, `"bloom"`, false, ""},
		"bits":                 {`"0x00`, `"0x01`, false, ""},
		"another root":         {`"receiptsRoot":"0x5`, `"receiptsRoot":"0x6`, false, ""},
		"a number as number":   {`"0x7"`, `7`, false, "number: it is not JSON"},
		"a short hash":         {`"0x1111`, `"0x11`, false, "hash: "},
		"an unquoted hash":     {`"0x1111`, `[]"0x1111`, false, "hash: it is not JSON"},
		"no time of the block": {`"timestamp"`, `"time"`, false, "it has no timestamp"},
	} {
		var a blockAnswer
		err := (&rpcAnswer{result: []byte(strings.Replace(text, test.old, test.by, 1))}).take(&a)
		if err == nil && test.err != "" || err != nil && (test.err == "" || !strings.Contains(err.Error(), test.err)) {
			t.Errorf("%s: got error %v, want %q", name, err, test.err)
		}
		if err == nil && a.Empty != test.empty {
			t.Errorf("%s: got that it is empty: %v", name, a.Empty)
		}
	}
	log := strings.Replace(oneLog, `"0x41aa`, `5,"x":"0x41aa`, 1)
	err := (&rpcAnswer{result: []byte(`[{"logs":[` + log + `]}]`)}).take(&receiptsAnswer{wanted: &question{}})
	if err == nil || !strings.Contains(err.Error(), "address: it is not JSON") {
		t.Errorf("a number as address: got error %v", err)
	}
}

// A block without the hash of its parent is not believed.
func TestNoParent(t *testing.T) {
	blocks := some(1, 60, 500)
	synctest.Test(t, func(t *testing.T) {
		node := newNodeOf(blocks, meanrpc.Faults{})
		without := altered(node, func(_, answer []byte) []byte {
			return bytes.ReplaceAll(answer, []byte(`"parentHash"`), []byte(`"parent"`))
		})
		c, _ := dial(t, Options{Patience: time.Minute}, without)
		_, err := c.Latest(t.Context())
		checkError(t, "the newest block", err, "0.test: block 60 has no parentHash")
		_, err = c.Headers(t.Context(), []uint64{7, 8})
		checkError(t, "headers", err, "0.test: block 7 has no parentHash")

		c, _ = dial(t, Options{Patience: time.Minute}, without, node)
		h, err := c.Latest(t.Context())
		if err != nil || h.Parent != common.Hash(node.Hash(59)) {
			t.Errorf("with another node: got parent %s and %v", h.Parent, err)
		}
		found, err := c.Headers(t.Context(), []uint64{7, 8, 61})
		if err != nil || found[1].Parent != found[0].Hash || found[2] != (Header{}) {
			t.Errorf("with another node: got %v and %v", found, err)
		}
	})
}

// A host that DNS does not know may be there again soon, so it is asked again, and the error names the flag, and no key.
func TestUnknownHost(t *testing.T) {
	unknown := &net.DNSError{Err: "no such host", Name: "nodes.example", IsNotFound: true}
	err := classify(t.Context(), &url.Error{Op: "Post", URL: "https://nodes.example/a-key", Err: unknown}, new(secret.Hider))
	if text := err.Error(); !strings.Contains(text, "no such host") || !strings.Contains(text, "check --rpc") || strings.Contains(text, "a-key") {
		t.Errorf("got %v, want the host and what to check", err)
	}
}
