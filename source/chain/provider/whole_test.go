package provider

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
)

// without are methods that a node does not have.
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

// Under any limits, and with or without receipts, a node gives all logs of a full block.
func TestFullBlock(t *testing.T) {
	words := meanrpc.AllWords()
	for name, test := range map[string]struct {
		operations, size int
		o                Options
		f                meanrpc.Faults
	}{
		"10,001 of 10,000":             {10_001, 40, Options{}, meanrpc.Faults{MaxResults: 10_000}},
		"301 of 300, in words":         {301, 40, Options{}, meanrpc.Faults{MaxResults: 300, Words: &words[0]}},
		"1,000 are silently left":      {1_200, 40, Options{}, meanrpc.Faults{SilentCap: 1_000}},
		"777 are silently left":        {900, 40, Options{}, meanrpc.Faults{SilentCap: 777}},
		"exactly 1,000 there are":      {1_000, 40, Options{}, meanrpc.Faults{SilentCap: 1_000}},
		"bytes":                        {400, 4_000, Options{MaxAnswer: 1 << 20}, meanrpc.Faults{}},
		"bytes, by transaction":        {200, 4_000, Options{MaxAnswer: 1 << 20}, meanrpc.Faults{Methods: without("eth_getBlockReceipts")}},
		"by transaction":               {250, 40, Options{}, meanrpc.Faults{MaxResults: 200, Methods: without("eth_getBlockReceipts")}},
		"by transaction, small batch":  {250, 40, Options{}, meanrpc.Faults{MaxResults: 200, MaxBatch: 7, Methods: without("eth_getBlockReceipts")}},
		"by transaction, one by one":   {250, 40, Options{}, meanrpc.Faults{SilentCap: 200, NoBatches: true, Methods: without("eth_getBlockReceipts")}},
		"no receipts, cut in no place": {250, 40, Options{}, meanrpc.Faults{Methods: without("eth_getBlockReceipts")}},
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

// If a node has no receipts, a full block is read by contract and topic. If that is not conclusive
// either, it is an error.
func TestFullBlockInPieces(t *testing.T) {
	blocks := full(900, 40)
	for most, ok := range map[int]bool{1_000: true, 800: false} {
		synctest.Test(t, func(t *testing.T) {
			node := newNodeOf(blocks, meanrpc.Faults{MaxResults: most, Methods: without("eth_getBlockReceipts", "eth_getTransactionReceipt")})
			c, _ := dial(t, Options{}, node)
			n := c.nodes[0]
			n.wasWhole(5_000)
			logs := 0
			err := c.Logs(t.Context(), []common.Address{registry, records}, []common.Hash{history.TopicListOp, history.TopicTransfer}, 50, 50,
				func(p Blocks) error { logs = len(p.Logs); return nil })
			if ok && (err != nil || logs != len(blocks[slices.IndexFunc(blocks, func(b history.Block) bool { return b.Number == 50 })].Logs)) {
				t.Errorf("%d: got %d logs and %v", most, logs, err)
			}
			if !ok {
				checkError(t, "pieces", err, "query returned more than 800", "by contract and topic", "does not exist")
			}
		})
	}
}

// A truncated answer of any size is detected, even if the size is not a round number, for any
// remaining logs.
func TestSilentCuts(t *testing.T) {
	blocks := some(4, 2_500, 600)
	for _, most := range []int{237, 1_000, 1_024, 2_500} {
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

// Receipts that do not fit their block are not believed.
func TestWrongReceipts(t *testing.T) {
	blocks := full(250, 40)
	const last = 250 + 36 - 1 // index of the last log
	for name, replace := range map[string][2]string{
		"a log lacks":       {`"logIndex":"0x7",`, `"logIndex":"0x7000",`},
		"the first lacks":   {`"logIndex":"0x0",`, `"logIndex":"0x7000",`},
		"a receipt lacks":   {`"logs":[`, `"lags":[`},
		"another block":     {`"blockHash":"0x`, `"blockHash":"0x0`},
		"no receipts":       {`"result":[`, `"result":[],"old":[`},
		"null":              {`"result":[`, `"result":null,"old":[`},
		"the last one":      {fmt.Sprintf(`"logIndex":"%#x",`, last), `"logIndex":"0x7000",`},
		"with other topics": {`"topics":["0x`, `"topics":["0x11`},
	} {
		synctest.Test(t, func(t *testing.T) {
			node := newNodeOf(blocks, meanrpc.Faults{MaxResults: 200, Methods: without("eth_getTransactionReceipt")})
			wrong := altered(node, func(request, answer []byte) []byte {
				if bytes.Contains(request, []byte("eth_getBlockReceipts")) {
					return bytes.ReplaceAll(answer, []byte(replace[0]), []byte(replace[1]))
				}
				return answer
			})
			c, _ := dial(t, Options{Patience: time.Minute}, wrong)
			if _, _, err := collect(t.Context(), c, 1, 100); err == nil {
				t.Errorf("%s: got no error", name)
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
