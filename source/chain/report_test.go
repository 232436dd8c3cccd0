package chain

import (
	"testing"
	"time"

	"github.com/goccy/go-json"

	"github.com/followpress/followpress/source/chain/provider"
)

func TestReport(t *testing.T) {
	r := &Report{Seconds: 1.5, Chains: []PerChain{
		{
			Chain: 8453, Name: "Base", From: 100, To: 199, AsOf: "2026-11-22T03:00:00Z", Events: 7, Stored: 20, Tokens: 3, Check: &Check{How: CheckedByContracts, Host: "a.example", Block: 199, Tokens: 3, Slots: 4, Values: 10},
			Cost: []provider.Cost{{Host: "node.example", Requests: 5, Calls: map[string]int64{"eth_getLogs": 4, "eth_chainId": 1}, Received: 2_500_000, Retries: 2, Limited: 1, Waited: time.Second}},
		},
		{Chain: 10, Name: "OP Mainnet", From: 50, To: 49, Undone: &Undone{Blocks: 3, Events: 1}},
	}}
	want := `Base (8453): read blocks 100 to 199, 7 new events of 20, as of 2026-11-22T03:00:00Z; confirmed by the contracts (a.example, block 199): 3 tokens, the operations of 4 slots, 10 values
  node.example: 5 requests with 5 calls, 2.5 MB received, 2 tried again, 1 of them because of a rate limit
OP Mainnet (10): read no blocks, 0 new events of 0; forgot 3 blocks with 1 events, which may no longer be part of the chain
`
	if got := r.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	got, err := json.Marshal(r.Chains[1])
	wantJSON := `{"chain":10,"name":"OP Mainnet","from":50,"to":49,"as_of":"","events":0,"stored":0,"tokens":0,"check":null,"undone":{"blocks":3,"events":1},"repairs":null,"cost":null}`
	if err != nil || string(got) != wantJSON {
		t.Errorf("got %s, %v, want %s", got, err, wantJSON)
	}
}
