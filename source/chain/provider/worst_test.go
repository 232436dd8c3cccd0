package provider

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/fixtures/worst"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
)

// A request takes at most a few times the bytes of the largest answer, with any bytes in the answer
// or in place of it. The answer itself is never in memory more than twice.
func TestWorstAnswers(t *testing.T) {
	const most = 1 << 20
	around := map[string]string{
		"alone":           ``,
		"result":          `{"jsonrpc":"2.0","id":0,"result":`,
		"result before":   `[{"jsonrpc":"2.0","result":`,
		"error":           `{"jsonrpc":"2.0","id":0,"error":`,
		"message":         `[{"jsonrpc":"2.0","id":0,"error":{"code":1,"message":`,
		"unknown":         `{"jsonrpc":"2.0","id":0,"unknown":`,
		"in a list":       `[{"jsonrpc":"2.0","id":0,"result":`,
		"answers":         `[`,
		"in a log":        `[{"jsonrpc":"2.0","id":0,"result":[{"removed":`,
		"topics":          `[{"jsonrpc":"2.0","id":0,"result":[{"topics":`,
		"in a block":      `[{"jsonrpc":"2.0","id":1,"result":{"number":`,
		"in transactions": `{"jsonrpc":"2.0","id":0,"result":{"transactions":`,
		"receipts":        `{"jsonrpc":"2.0","id":0,"result":[{"logs":`,
	}
	for i, name := range worst.Names() {
		for where, begin := range around {
			text := worst.JSON[name].Around(begin)
			size := []int64{most, worst.Size}[i%2]
			o := Options{MaxAnswer: most, Transport: text.Answer(size)}
			if err := o.check(); err != nil {
				t.Fatal(err)
			}
			c := &Chain{id: chain, o: o}
			n, err := c.newNode(0, "https://node.example", nil)
			if err != nil {
				t.Fatal(err)
			}
			r := &reading{c: c, question: question{[]common.Address{records}, []common.Hash{history.TopicListOp}}}
			ask := map[string]func() error{
				"logs": func() error {
					_, err := n.together(t.Context(), []call{{"eth_getLogs", []any{}, new(logsAnswer)}, {"eth_getBlockByNumber", []any{}, new(blockAnswer)}})
					return err
				},
				"block":    func() error { return n.one(t.Context(), "eth_getBlockByNumber", new(blockAnswer)) },
				"receipts": func() error { return n.one(t.Context(), "eth_getBlockReceipts", &receiptsAnswer{wanted: &r.question}) },
				"id":       func() error { return n.check(t.Context(), chain) },
			}
			for what, ask := range ask {
				if strings.HasPrefix(begin, "[") != (what == "logs") && begin != "" {
					continue
				}
				bound := int64(6 * most)
				if what == "receipts" {
					bound *= receiptsFactor
				}
				worst.Check(t, what+", "+where+": "+name, bound, func() {
					if err := ask(); err == nil {
						t.Errorf("%s, %s: %s: got no error", what, where, name)
					}
				})
			}
		}
	}
}

// TestWaitingLogs: while the first range of blocks is under way, others are asked for until their logs
// are 64 MiB. Then the first one still may be, in smaller parts.
func TestWaitingLogs(t *testing.T) {
	c, _ := dial(t, Options{}, newNodeOf(some(1, 10, 0), meanrpc.Faults{}))
	r := &reading{c: c, to: 1 << 20}
	r.changed.L = &r.mu
	large := Blocks{Logs: []types.Log{{Data: make([]byte, mostHeld/3)}}}
	first := r.begin(0, 10)
	for i := 1; i <= 3; i++ {
		if at, ok := r.waiting(); !ok || at != i {
			t.Fatalf("got range %d, %v, want that range %d may begin", at, ok, i)
		}
		r.finish(r.begin(i, 10), large, nil)
	}
	if _, ok := r.waiting(); ok {
		t.Errorf("another range may begin though %d MiB wait", r.held>>20)
	}
	r.finish(first, Blocks{}, errors.New("too large"))
	for range 2 {
		if at, ok := r.waiting(); !ok || at != 0 {
			t.Fatalf("got range %d, %v, want that the first one may begin again", at, ok)
		}
		r.finish(r.begin(0, 5), Blocks{}, nil)
		if _, ok := r.waiting(); ok {
			t.Errorf("another range than the first may begin")
		}
		if _, ok, err := r.first(t.Context()); !ok || err != nil {
			t.Fatalf("got %v and the error %v, want the first range", ok, err)
		}
	}
	if _, ok, err := r.first(t.Context()); !ok || err != nil { // a large one
		t.Fatal(ok, err)
	}
	if at, ok := r.waiting(); !ok || at != 2 {
		t.Errorf("got range %d, %v, want that a new one may begin", at, ok)
	}
}

const oneLog = `{"address":"0x41aa48ef3c0446b46a5b1cc6337ff3d3716e2a33","topics":["0xb067630e3908f166069c77766250c553414e2745e742a562d533f29744a91a73"],
	"data":"0x01","blockNumber":"0x5","transactionHash":"0x12","transactionIndex":"0x0","blockHash":"0x1111111111111111111111111111111111111111111111111111111111111111",
	"blockTimestamp":"0x66","logIndex":"0x2","removed":false}`

// Whatever a node answers, there is an error or a part that keeps its promise; and what go-ethereum
// reads is read in the same way.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("["+oneLog+"]"), []byte(`{"number":"0x9","hash":"0x1111111111111111111111111111111111111111111111111111111111111111","timestamp":"0x70"}`))
	f.Add([]byte(`[]`), []byte(`null`))
	f.Add([]byte(`null`), []byte(`{"number":"0x9","hash":"0x","timestamp":"0xffffffffffffffff"}`))
	f.Add([]byte(`[{"blockTimestamp":5,"data":"0x0"},null]`), []byte(`{"number":9}`))
	f.Fuzz(func(t *testing.T, text, header []byte) {
		var logs logsAnswer
		var last blockAnswer
		if (&rpcAnswer{result: text}).take(&logs) != nil || (&rpcAnswer{result: header}).take(&last) != nil {
			return
		}
		var theirs []types.Log
		if json.Unmarshal(text, &theirs) == nil && len(theirs) == len(logs) {
			for i, l := range theirs {
				if !sameLog(l, logs[i]) {
					t.Errorf("log %d is %+v, go-ethereum reads %+v", i, logs[i], l)
				}
			}
		}
		q := question{[]common.Address{records}, []common.Hash{history.TopicListOp}}
		part, err := q.blocks(4, 9, logs, last.Block)
		if err != nil {
			return
		}
		if part.Last.Number != 9 || part.Last.Time < 0 {
			t.Errorf("the last block is %+v", part.Last)
		}
		for i, l := range part.Logs {
			if l.Address != records || l.Topics[0] != history.TopicListOp || l.BlockNumber < 4 || l.BlockNumber > 9 || l.Removed ||
				i > 0 && (l.BlockNumber < part.Logs[i-1].BlockNumber || l.BlockNumber == part.Logs[i-1].BlockNumber && l.Index <= part.Logs[i-1].Index) {
				t.Errorf("log %d of the part is %+v", i, l)
			}
		}
	})
}
