package provider

import (
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/fixtures/worst"
)

// A request takes at most some times the bytes of the largest answer, whatever comes instead of an
// answer, or in any part of it. The answer itself is never in memory more than twice.
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
	for _, name := range worst.Names() {
		for where, begin := range around {
			text := worst.JSON[name].Around(begin)
			o := Options{MaxAnswer: most, transport: text.Answer(worst.Size)}
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
				"block":    func() error { return n.one(t.Context(), "eth_getBlockByNumber", new(fullBlock)) },
				"receipts": func() error { return n.one(t.Context(), "eth_getBlockReceipts", &receiptsAnswer{wanted: &r.question}) },
				"id":       func() error { return n.check(t.Context(), chain) },
			}
			for what, ask := range ask {
				if strings.HasPrefix(begin, "[") != (what == "logs") && begin != "" {
					continue
				}
				worst.Check(t, what+", "+where+": "+name, 6*most, func() {
					if err := ask(); err == nil {
						t.Errorf("%s, %s: %s: got no error", what, where, name)
					}
				})
			}
		}
	}
}
