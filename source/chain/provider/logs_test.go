package provider

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
	"github.com/followpress/followpress/internal/testenv/servers"
)

// A range is read in as few requests as there can be, side by side. Each has the logs and the last
// block, in one batch if the node takes batches.
func TestLogs(t *testing.T) {
	blocks := some(1, 200_000, 5)
	for _, single := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			node := newNodeOf(blocks, meanrpc.Faults{Latency: 50 * time.Millisecond, NoBatches: single, NewFields: true, Backwards: true})
			c, _ := dial(t, Options{}, node)
			begun := time.Now()
			logs, parts, err := collect(t.Context(), c, 5, 200_000)
			if err != nil {
				t.Fatal(err)
			}
			checkLogs(t, logs, node, blocks, 5, 200_000)
			counts := node.Counts()
			requests, rounds := 21, 4 // one for the chain's id; the first range alone, and then eight at a time
			if single {
				requests, rounds = 1+1+40, 8 // the first one tells that it takes no batches
			}
			if parts != 20 || counts.Requests != requests || counts.InFlight != 8 {
				t.Errorf("single %v: %d parts by %d requests, %d at a time; want 20 by %d, 8 at a time",
					single, parts, counts.Requests, counts.InFlight, requests)
			}
			if took := time.Since(begun); took > time.Duration(rounds)*2*50*time.Millisecond {
				t.Errorf("single %v: it took %s", single, took)
			}
			cost := c.Cost()[0]
			if cost.Requests != int64(counts.Requests) || cost.Calls["eth_getLogs"] != int64(counts.Calls["eth_getLogs"]) || cost.Retries != 0 {
				t.Errorf("the cost is %+v, the node counted %+v", cost, counts)
			}
		})
	}
}

// An empty range, or no contracts, causes no request.
func TestLogsOfNothing(t *testing.T) {
	node := newNodeOf(some(1, 10, 0), meanrpc.Faults{})
	c, _ := dial(t, Options{}, node)
	if logs, parts, err := collect(t.Context(), c, 6, 5); len(logs) != 0 || parts != 0 || err != nil {
		t.Errorf("blocks 6 to 5: got %d logs, %d parts and %v", len(logs), parts, err)
	}
	if err := c.Logs(t.Context(), nil, nil, 1, 5, nil); err == nil {
		t.Error("logs of no contract: got no error")
	}
	if n := node.Counts().Calls["eth_getLogs"]; n != 0 {
		t.Errorf("%d requests for logs, want none", n)
	}
}

// Where a provider limits the blocks of a request, there are at most a tenth more requests than the
// least possible, whatever is configured, and however many are made at a time.
func TestRequestsAreFew(t *testing.T) {
	const blocks = 6_000_000
	for _, test := range []struct {
		limit, most uint64
		workers     int
	}{{10_000, 10_000, 8}, {5_000, 10_000, 8}, {10_000, 1_000_000, 1}, {10_000, 1_000_000, 8}} {
		synctest.Test(t, func(t *testing.T) {
			node := newNodeOf([]history.Block{{Chain: chain, Number: blocks}}, meanrpc.Faults{MaxBlocks: test.limit, Latency: time.Second})
			c, _ := dial(t, Options{MaxRange: test.most, Concurrency: test.workers}, node)
			if _, _, err := collect(t.Context(), c, 1, blocks); err != nil {
				t.Fatal(err)
			}
			least, n := blocks/int(test.limit), node.Counts().Requests
			if n > least+least/10 {
				t.Errorf("%+v: %d requests, want at most a tenth more than %d", test, n, least)
			}
		})
	}
}

// Whatever the limits of a provider are, in the words of each one, and wherever logs are dense, all
// logs come, and most requests have an answer.
func TestLimits(t *testing.T) {
	for _, words := range meanrpc.AllWords() {
		for seed := range servers.Rounds(1, 3) {
			synctest.Test(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(uint64(seed), uint64(len(words.Provider))))
				blocks := some(uint64(seed), 1_200, 1+r.IntN(100))
				dense := some(uint64(seed), 1_500, 900)
				blocks = append(blocks, dense[slices.IndexFunc(dense, func(b history.Block) bool { return b.Number > 1_200 }):]...)
				f := meanrpc.Faults{Words: &words, Latency: time.Duration(r.IntN(50)) * time.Millisecond, NoBatches: r.IntN(3) == 0}
				if r.IntN(3) > 0 {
					f.MaxBlocks = 10 + r.Uint64N(1000)
				}
				if f.MaxBlocks == 0 || r.IntN(2) == 0 {
					f.MaxResults = 20 + r.IntN(1000)
				}
				node := newNodeOf(blocks, f)
				c, _ := dial(t, Options{Concurrency: 1 + r.IntN(8), MaxRange: 1 + r.Uint64N(20_000)}, node)
				logs, parts, err := collect(t.Context(), c, 1, 1_500)
				if err != nil {
					t.Fatalf("%s, seed %d: %v", words.Provider, seed, err)
				}
				checkLogs(t, logs, node, blocks, 1, 1_500)
				cost := c.Cost()[0]
				if int(cost.Halved) > 30+parts/2 || cost.Limited > 0 {
					t.Errorf("%s, seed %d: %d parts, %d requests too large, %d too many", words.Provider, seed, parts, cost.Halved, cost.Limited)
				}
			})
		}
	}
}

// A provider that fails now and then, in any way, costs time and nothing else.
func TestTroubles(t *testing.T) {
	blocks := some(3, 1_500, 100)
	all := meanrpc.Troubles()
	all = append(all, meanrpc.Trouble{Hang: true})
	check := func(t *testing.T, name string, some ...meanrpc.Trouble) {
		for seed := range servers.Rounds(1, 2) {
			synctest.Test(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(uint64(seed), 4))
				node := newNodeOf(blocks, meanrpc.Faults{})
				c, _ := dial(t, Options{MaxRange: 100, Patience: time.Hour, Concurrency: 1 + r.IntN(8)}, node) // for which there is less patience
				node.Set(meanrpc.Faults{
					Latency: 20 * time.Millisecond, Trouble: meanrpc.Sometimes(uint64(seed), 0.25, some...), NoBatches: r.IntN(2) == 0,
				})
				logs, _, err := collect(t.Context(), c, 1, 1_500)
				if err != nil {
					t.Fatalf("%s, seed %d: %v", name, seed, err)
				}
				checkLogs(t, logs, node, blocks, 1, 1_500)
			})
		}
	}
	for i, trouble := range all {
		check(t, fmt.Sprintf("%d: %+v", i, trouble), trouble)
	}
	check(t, "all", all...)
}

// If one node lies, the answer of another one is taken; if all do, there is an error, in time, that
// names the host and nothing of the key.
func TestLies(t *testing.T) {
	blocks := some(5, 3_000, 100)
	for name, test := range map[string]struct {
		lie  meanrpc.Faults
		says string
	}{
		"logs of another contract":    {meanrpc.Faults{Foreign: true}, "is of another contract"},
		"logs of other blocks":        {meanrpc.Faults{OutOfRange: true}, "is of another block"},
		"behind":                      {meanrpc.Faults{Lag: 1000}, "no block"},
		"another block's hash":        {meanrpc.Faults{Methods: nil, OtherChain: true}, ""}, // consistent: nothing is wrong with it alone
		"removed, twice, in no order": {meanrpc.Faults{Removed: true, Twice: true, Shuffled: true, NoTimestamp: true}, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			liar, honest := newNodeOf(blocks, test.lie), newNodeOf(blocks, meanrpc.Faults{})
			c, _ := dial(t, Options{MaxRange: 500, Patience: time.Minute}, liar, honest)
			logs, _, err := collect(t.Context(), c, 1, 3_000)
			if err != nil {
				t.Fatalf("%s, with another node: %v", name, err)
			}
			if !test.lie.OtherChain {
				checkLogs(t, logs, honest, blocks, 1, 3_000)
			}

			c, _ = dial(t, Options{MaxRange: 500, Patience: time.Minute}, liar)
			begun := time.Now()
			_, _, err = collect(t.Context(), c, 1, 3_000)
			if test.says == "" {
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				return
			}
			checkError(t, name, err, "0.test: ", test.says)
			if took := time.Since(begun); took > 2*time.Minute {
				t.Errorf("%s: the error came after %s", name, took)
			}
			if name == "behind" && !errors.Is(err, ErrBehind) {
				t.Errorf("%s: got %v, want ErrBehind", name, err)
			}
		})
	}
}

// checkError fails unless an error contains the given texts, and no part of a key.
func checkError(t *testing.T, name string, err error, says ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error, want one that says %q", name, says)
		return
	}
	for _, text := range says {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: got %q, want it to say %q", name, err, text)
		}
	}
	for _, secret := range []string{"secret", "pass-word", "user", "v2/"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error has a part of the URL: %s", name, err)
		}
	}
}

// With a quorum a log that one node forgets, or another chain of blocks, is an error that names
// both hosts, and a passing difference costs a few requests.
func TestQuorum(t *testing.T) {
	blocks := some(6, 3_000, 100)
	forgets := func(l meanrpc.LogID) bool { return l.Block > 1_500 && l.Block < 1_600 }
	for name, lie := range map[string]meanrpc.Faults{
		"forgets": {Forget: forgets}, "another chain's blocks": {OtherChain: true}, "pruned": {Pruned: 2_000},
	} {
		synctest.Test(t, func(t *testing.T) {
			liar, honest := newNodeOf(blocks, lie), newNodeOf(blocks, meanrpc.Faults{})
			c, _ := dial(t, Options{MaxRange: 500, Quorum: 2}, honest, liar)
			_, _, err := collect(t.Context(), c, 1, 3_000)
			checkError(t, name, err, "0.test and 1.test")
			if !errors.Is(err, ErrDisagree) {
				t.Errorf("%s: got %v, want ErrDisagree", name, err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		passes := newNodeOf(blocks, meanrpc.Faults{Forget: forgets})
		honest := newNodeOf(blocks, meanrpc.Faults{MaxBlocks: 300})
		c, _ := dial(t, Options{MaxRange: 500, Quorum: 2}, honest, passes)
		time.AfterFunc(2*time.Second, func() { passes.Set(meanrpc.Faults{}) })
		logs, _, err := collect(t.Context(), c, 1, 3_000)
		if err != nil {
			t.Fatal(err)
		}
		checkLogs(t, logs, honest, blocks, 1, 3_000)
	})
}

// Hosts of a quorum that take other ranges, or have other newest blocks, cost about as many requests as
// the host that takes least, several at a time.
func TestQuorumOfUnequalHosts(t *testing.T) {
	const last, least = 100_000, 500
	blocks := some(6, last, 5)
	for _, limits := range [][2]uint64{{0, least}, {least, 0}, {6 * least, least}, {least, 6 * least}} {
		synctest.Test(t, func(t *testing.T) {
			a := newNodeOf(blocks, meanrpc.Faults{MaxBlocks: limits[0], Latency: time.Second})
			b := newNodeOf(blocks, meanrpc.Faults{MaxBlocks: limits[1], Latency: time.Second})
			b.SetHead(last-100, last-100, last-100)
			c, _ := dial(t, Options{Quorum: 2, Concurrency: 4}, a, b)
			head, err := c.Head(t.Context(), 0)
			if err != nil || head.Number != last-100 {
				t.Fatalf("%v: got block %d and %v, want the older of the newest blocks", limits, head.Number, err)
			}
			begun := time.Now()
			logs, _, err := collect(t.Context(), c, 1, head.Number)
			if err != nil {
				t.Fatalf("%v: %v", limits, err)
			}
			checkLogs(t, logs, a, blocks, 1, head.Number)
			halved := c.Cost()[0].Halved + c.Cost()[1].Halved
			if took := time.Since(begun); halved > 30 || took > 2*time.Minute {
				t.Errorf("%v: %d requests were too large, and it took %s, want at most 30 and 2m", limits, halved, took)
			}
		})
	}
}

// The first URL gets all requests while it answers, and the others the rest.
func TestURLs(t *testing.T) {
	blocks := some(7, 20_000, 10)
	synctest.Test(t, func(t *testing.T) {
		first, second := newNodeOf(blocks, meanrpc.Faults{}), newNodeOf(blocks, meanrpc.Faults{})
		c, _ := dial(t, Options{MaxRange: 100}, first, second)
		read := func() {
			t.Helper()
			logs, _, err := collect(t.Context(), c, 1, 20_000)
			if err != nil {
				t.Fatal(err)
			}
			checkLogs(t, logs, first, blocks, 1, 20_000)
		}
		read()
		if n := second.Counts().Calls["eth_getLogs"]; n != 0 {
			t.Errorf("the second node was asked %d times, want only after a failure of the first", n)
		}
		first.Set(meanrpc.Faults{Trouble: meanrpc.Every(1, meanrpc.Trouble{Status: http.StatusServiceUnavailable})})
		read()
		if n := second.Counts().Calls["eth_getLogs"]; n < 150 {
			t.Errorf("the second node was asked %d times, want it to take over", n)
		}
		first.Reset()
		first.Set(meanrpc.Faults{})
		time.Sleep(time.Minute)
		read()
		if n := first.Counts().Calls["eth_getLogs"]; n != 200 {
			t.Errorf("the first node was asked %d times, want 200 because it answers again", n)
		}
	})
}

// A node of another chain with the same id does not step in for one that fails.
func TestNodeOfAnotherChain(t *testing.T) {
	blocks := some(9, 3_000, 100)
	for _, more := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			right, other := newNodeOf(blocks, meanrpc.Faults{}), newNodeOf(nil, meanrpc.Faults{OtherChain: true})
			other.SetHead(3_000, 3_000, 3_000)
			nodes := []http.Handler{right, other}
			third := newNodeOf(blocks, meanrpc.Faults{})
			if more {
				nodes = append(nodes, third)
			}
			c, _ := dial(t, Options{MaxRange: 500, Patience: time.Minute}, nodes...)
			if _, err := c.Head(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			right.Set(failing(meanrpc.Trouble{Status: 503}))
			logs, parts, err := collect(t.Context(), c, 1, 3_000)
			if more && err == nil {
				checkLogs(t, logs, third, blocks, 1, 3_000)
			} else if more || err == nil || parts > 0 {
				t.Errorf("a third node: %v: got %d parts and error %v", more, parts, err)
			}
			if _, err := c.Times(t.Context(), map[uint64]common.Hash{5: {}}); (err == nil) != more {
				t.Errorf("a third node: %v: times: got error %v", more, err)
			}
			if _, err := c.Block(t.Context(), 5); (err == nil) != more {
				t.Errorf("a third node: %v: a block: got error %v", more, err)
			}
		})
	}
}

// An error of done, or the end of the context, ends everything soon. Parts before an error are
// delivered.
func TestLogsEnd(t *testing.T) {
	blocks := some(8, 10_000, 10)
	errFull := errors.New("the disk is full")
	synctest.Test(t, func(t *testing.T) {
		c, _ := dial(t, Options{MaxRange: 100}, newNodeOf(blocks, meanrpc.Faults{Latency: time.Second}))
		calls := 0
		err := c.Logs(t.Context(), []common.Address{records}, nil, 1, 10_000, func(Blocks) error {
			if calls++; calls == 3 {
				return errFull
			}
			return nil
		})
		if err != errFull || calls != 3 { //nolint:errorlint // as it is
			t.Errorf("got %v after %d calls, want the error of the third", err, calls)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(2500*time.Millisecond, func() { cancel(errFull) })
		begun := time.Now()
		if _, parts, err := collect(ctx, c, 1, 10_000); !errors.Is(err, errFull) || parts == 0 || time.Since(begun) > 3*time.Second {
			t.Errorf("got %v after %d parts and %s, want the cause of the context's end", err, parts, time.Since(begun))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		node := newNodeOf(blocks, meanrpc.Faults{})
		node.SetHead(5_050, 5_050, 5_050)
		c, _ := dial(t, Options{MaxRange: 100, Patience: 10 * time.Second}, node)
		_, parts, err := collect(t.Context(), c, 1, 10_000)
		if !errors.Is(err, ErrBehind) || parts != 50 {
			t.Errorf("got %v after %d parts, want ErrBehind after 50", err, parts)
		}
	})
}

// If a node cannot return the logs of a block in any way, the error names the block and the node's
// message.
func TestOneBlockTooLarge(t *testing.T) {
	blocks := some(9, 1_000, 1000)
	synctest.Test(t, func(t *testing.T) {
		most := 4
		node := newNodeOf(blocks, meanrpc.Faults{MaxResults: most, Methods: without("eth_getBlockReceipts")})
		c, _ := dial(t, Options{Patience: time.Minute, Concurrency: 1}, node)
		_, _, err := collect(t.Context(), c, 1, 1_000)
		first := slices.IndexFunc(blocks, func(b history.Block) bool {
			ours := 0
			for _, l := range b.Logs {
				if l.Address == records {
					ours++
				}
			}
			return ours > most
		})
		number := blocks[first].Number
		checkError(t, "dense", err, fmt.Sprintf("logs of blocks %d to %d: 0.test: ", number, number), "query returned more than 4 results")
	})
}

// Whatever some nodes do, the logs are right, or there is an error: lies that one node alone can
// tell unseen, such as forgotten logs, need a quorum.
func TestRightOrError(t *testing.T) {
	wrong := 0
	for seed := range uint64(servers.Rounds(10, 150)) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 5))
			last := 100 + r.Uint64N(2_000)
			blocks := some(seed, last, 1+r.IntN(200))
			o := Options{
				Quorum: 1 + r.IntN(2), Concurrency: 1 + r.IntN(8), MaxRange: 1 + r.Uint64N(last),
				Patience: time.Duration(1+r.IntN(300)) * time.Second, Batch: 1 + r.IntN(3),
			}
			var nodes []http.Handler
			words := meanrpc.AllWords()
			for i := range o.Quorum + r.IntN(3) {
				f := meanrpc.Faults{
					Latency: time.Duration(r.IntN(200)) * time.Millisecond, NoBatches: r.IntN(4) == 0, Words: &words[r.IntN(len(words))],
					Removed: r.IntN(2) == 0, Twice: r.IntN(2) == 0, Shuffled: r.IntN(2) == 0, NoTimestamp: r.IntN(2) == 0,
				}
				if r.IntN(2) == 0 {
					f.Trouble = meanrpc.Sometimes(seed, 0.2*r.Float64(), meanrpc.Troubles()...)
				}
				if r.IntN(2) == 0 {
					f.MaxBlocks, f.MaxResults = 1+r.Uint64N(300), 10+r.IntN(300)
				}
				if r.IntN(4) == 0 {
					f.Lag, f.Foreign, f.OutOfRange = r.Uint64N(50), r.IntN(2) == 0, r.IntN(2) == 0
				}
				if i == 1 && o.Quorum == 2 && r.IntN(2) == 0 {
					f.OtherChain = r.IntN(2) == 0
					f.Forget = func(l meanrpc.LogID) bool { return l.Block%10 == 0 }
				}
				nodes = append(nodes, newNodeOf(blocks, f))
			}
			h, urls := reach(nodes...)
			o.Transport = h
			c, err := Dial(t.Context(), chain, urls, o)
			if err == nil {
				var logs []types.Log
				if logs, _, err = collect(t.Context(), c, 1, last); err == nil {
					checkLogs(t, logs, nodes[0].(*meanrpc.Node), blocks, 1, last)
				}
				c.Close()
			}
			if err != nil {
				wrong++
				checkError(t, fmt.Sprint("seed ", seed), err, ".test")
			}
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		})
	}
	t.Logf("%d had an error", wrong)
}

// without returns faults for methods that a node lacks.
func without(methods ...string) map[string]func() *meanrpc.RPCError {
	all := map[string]func() *meanrpc.RPCError{}
	for _, method := range methods {
		all[method] = func() *meanrpc.RPCError {
			return &meanrpc.RPCError{Code: -32601, Message: "the method " + method + " does not exist/is not available"}
		}
	}
	return all
}

// full returns some blocks. Block 50 has the given number of operations, mixed with logs of other
// contracts.
func full(operations, size int) []history.Block {
	blocks := some(11, 100, 300)
	b := history.Block{Chain: chain, Number: 50, Time: 1100}
	for i := range operations {
		op := make([]byte, size)
		binary.BigEndian.PutUint64(op, uint64(i))
		if i%7 == 0 {
			b.Logs = append(b.Logs, history.Transfer(registry, history.Address{}, history.Address{1}, history.Number(uint64(i))))
		}
		b.Logs = append(b.Logs, history.Op(records, history.Number(uint64(i)), op))
	}
	at := slices.IndexFunc(blocks, func(b history.Block) bool { return b.Number >= 50 })
	end := at
	if blocks[at].Number == 50 {
		end++
	}
	return slices.Replace(blocks, at, end, b)
}

// Under any limits, a node gives all logs of a full block.
func TestFullBlock(t *testing.T) {
	words := meanrpc.AllWords()
	for name, test := range map[string]struct {
		operations, size int
		o                Options
		f                meanrpc.Faults
	}{
		"10,001 of 10,000":        {10_001, 40, Options{}, meanrpc.Faults{MaxResults: 10_000}},
		"301 of 300, in words":    {301, 40, Options{}, meanrpc.Faults{MaxResults: 300, Words: &words[0]}},
		"1,000 are silently left": {1_200, 40, Options{}, meanrpc.Faults{SilentCap: 1_000}},
		"exactly 1,000 there are": {1_000, 40, Options{}, meanrpc.Faults{SilentCap: 1_000}},
		"bytes":                   {400, 4_000, Options{MaxAnswer: 1 << 20}, meanrpc.Faults{}},
	} {
		synctest.Test(t, func(t *testing.T) {
			blocks := full(test.operations, test.size)
			node := newNodeOf(blocks, test.f)
			c, _ := dial(t, test.o, node)
			logs, _, err := collect(t.Context(), c, 1, 100)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			checkLogs(t, logs, node, blocks, 1, 100)
		})
	}
}

// An answer that was truncated at a round number of logs is detected.
func TestSilentCuts(t *testing.T) {
	blocks := some(4, 2_500, 600)
	for _, most := range []int{1_000, 2_000} {
		synctest.Test(t, func(t *testing.T) {
			node := newNodeOf(blocks, meanrpc.Faults{SilentCap: most, Latency: 50 * time.Millisecond})
			c, _ := dial(t, Options{}, node)
			logs, parts, err := collect(t.Context(), c, 1, 2_500)
			if err != nil {
				t.Fatal(err)
			}
			checkLogs(t, logs, node, blocks, 1, 2_500)
			if n := node.Counts().Calls["eth_getLogs"]; n > 20+4*parts {
				t.Errorf("%d: %d requests for %d parts", most, n, parts)
			}
		})
	}
}

// After a doubt, a single block whose answer is as large as the earlier ones is read from its receipts.
func TestSilentCutOfOneBlock(t *testing.T) {
	blocks := full(250, 40)
	synctest.Test(t, func(t *testing.T) {
		node := newNodeOf(blocks, meanrpc.Faults{SilentCap: 77})
		c, _ := dial(t, Options{}, node)
		if logs, _, err := collect(t.Context(), c, 1, 100); err != nil || len(logs) != 77 {
			t.Fatalf("got %d logs and %v, want the 77 that the node gives", len(logs), err)
		}
		c.Again()
		logs, _, err := collect(t.Context(), c, 1, 100)
		if err != nil {
			t.Fatal(err)
		}
		checkLogs(t, logs, node, blocks, 1, 100)
		of := []Block{{Number: 50, Hash: common.Hash(node.Hash(50))}}
		found, err := c.LogsOf(t.Context(), []common.Address{records}, []common.Hash{history.TopicListOp}, of)
		if err != nil {
			t.Fatal(err)
		}
		checkLogs(t, found[0].Logs, node, blocks, 50, 50)
	})
}

// An altered node answers what a handler makes of a node's answers.
func altered(node http.Handler, alter func(request, answer []byte) []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, err := io.ReadAll(r.Body)
		if err != nil {
			panic(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(request))
		r.Header.Del("Accept-Encoding")
		answer := httptest.NewRecorder()
		node.ServeHTTP(answer, r)
		w.WriteHeader(answer.Code)
		_, _ = w.Write(alter(request, answer.Body.Bytes()))
	})
}

// Receipts that do not fit their block are not believed, and neither is a block of unknown transactions.
func TestWrongReceipts(t *testing.T) {
	blocks := full(250, 40)
	const last = 250 + 36 - 1 // index of the last log
	for name, replace := range map[string][]string{
		"a log lacks":       {`"logIndex":"0x7",`, `"logIndex":"0x7000",`},
		"the first lacks":   {`"logIndex":"0x0",`, `"logIndex":"0x7000",`},
		"a receipt lacks":   {`"logs":[`, `"lags":[`},
		"another block":     {`"blockHash":"0x`, `"blockHash":"0x0`},
		"no receipts":       {`"result":[`, `"result":[],"old":[`},
		"null":              {`"result":[`, `"result":null,"old":[`},
		"the last one":      {fmt.Sprintf(`"logIndex":"%#x",`, last), `"logIndex":"0x7000",`},
		"with other topics": {`"topics":["0x`, `"topics":["0x11`},
		"of another number": {`"number":"0x32"`, `"number":"0x33"`},
		"of no list":        {`"transactions":[`, `"transactions":null,"old":[`, `"logsBloom":`, `"bloom":`, `"result":[`, `"result":[],"old":[`},
	} {
		synctest.Test(t, func(t *testing.T) {
			node := newNodeOf(blocks, meanrpc.Faults{MaxResults: 200})
			wrong := altered(node, func(request, answer []byte) []byte {
				if bytes.Contains(request, []byte("eth_getLogs")) {
					return answer
				}
				return []byte(strings.NewReplacer(replace...).Replace(string(answer)))
			})
			c, _ := dial(t, Options{Patience: time.Minute}, wrong)
			if _, _, err := collect(t.Context(), c, 1, 100); err == nil || errors.Is(err, ErrBehind) != (name == "of another number") {
				t.Errorf("%s: got error %v", name, err)
			}
			c, _ = dial(t, Options{Patience: time.Minute}, wrong, newNodeOf(blocks, meanrpc.Faults{}))
			logs, _, err := collect(t.Context(), c, 1, 100)
			if err != nil {
				t.Fatalf("%s, with another node: %v", name, err)
			}
			checkLogs(t, logs, node, blocks, 1, 100)
		})
	}
}

// A log of a block that was replaced is noticed wherever it is, unless its block is final: then no
// request is made for it.
func TestReplacedBlock(t *testing.T) {
	blocks := some(12, 400, 200)
	at := slices.IndexFunc(blocks, func(b history.Block) bool {
		return b.Number > 200 && slices.ContainsFunc(b.Logs, func(l history.Log) bool { return l.Address == records })
	})
	for _, finality := range []string{Latest, Safe, Finalized} {
		for _, final := range []uint64{0, 300} {
			synctest.Test(t, func(t *testing.T) {
				node := newNodeOf(blocks, meanrpc.Faults{NoTimestamp: true})
				node.SetHead(400, 400, final)
				if finality == Finalized {
					node.SetHead(400, 400, 400)
				}
				old := node.Hash(blocks[at].Number)
				orphaned := altered(node, func(request, answer []byte) []byte {
					if bytes.Contains(request, []byte("eth_getLogs")) {
						return bytes.ReplaceAll(answer, fmt.Appendf(nil, `"%#x"`, old), fmt.Appendf(nil, `"0x%064x"`, 7))
					}
					return answer
				})
				noticed := finality != Finalized && final < blocks[at].Number
				c, _ := dial(t, Options{Patience: time.Minute, Finality: finality}, orphaned)
				if _, err := c.Head(t.Context(), 0); err != nil {
					t.Fatal(err)
				}
				_, _, err := collect(t.Context(), c, 1, 400)
				if noticed {
					checkError(t, finality, err, fmt.Sprintf("block %d is %#x", blocks[at].Number, old))
				} else if err != nil {
					t.Errorf("%s, final %d: %v", finality, final, err)
				}
				c, _ = dial(t, Options{Patience: time.Minute, Finality: finality}, orphaned, node)
				if _, err := c.Head(t.Context(), 0); err != nil {
					t.Fatal(err)
				}
				if logs, _, err := collect(t.Context(), c, 1, 400); noticed && err != nil {
					t.Errorf("%s, final %d, with another node: %v", finality, final, err)
				} else if noticed {
					checkLogs(t, logs, node, blocks, 1, 400)
				}
			})
		}
	}
}
