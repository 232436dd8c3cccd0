package nodes_test

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
	"github.com/followpress/followpress/internal/testenv/nodes"
	"github.com/followpress/followpress/internal/testenv/servers"
)

// supply returns the result of a contract's totalSupply() at a block.
func supply(t *testing.T, url string, contract history.Address, block uint64) int {
	t.Helper()
	client, err := ethclient.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	to := common.Address(contract)
	answer, err := client.CallContract(context.Background(), ethereum.CallMsg{To: &to, Data: common.FromHex("0x18160ddd")}, new(big.Int).SetUint64(block))
	if err != nil {
		t.Fatal(err)
	}
	return int(new(big.Int).SetBytes(answer).Int64())
}

// TestAnvilPlaysHistories: Play and Reorg themselves check the content of the node.
func TestAnvilPlaysHistories(t *testing.T) {
	for seed := range uint64(servers.Rounds(1, 3)) {
		h := history.Random(seed, history.Options{})
		for _, c := range h.Chains {
			n := nodes.StartAnvil(t, h.Chains, c.ID, 2)
			n.Play(h.Blocks...)
			last, _ := h.Last(c.ID)
			if got := n.Head(); got != last.Number {
				t.Errorf("seed %d, chain %d: got head %d, want %d", seed, c.ID, got, last.Number)
			}
			if c.Registry != nil {
				for _, at := range []uint64{last.Number - 10, last.Number} {
					if got, want := supply(t, n.URL, *c.Registry, at), len(h.Upto(c.ID, at).Truth().Lists); got != want {
						t.Errorf("seed %d: total supply at block %d: got %d, want %d", seed, at, got, want)
					}
				}
			}
			first := last.Number - 5
			_, instead := h.Fork(c.ID, first, seed+100, history.Options{Transactions: 20})
			before := slices.Collect(h.Upto(c.ID, first-1).Of(c.ID))
			if got := n.Reorg(first, instead...); len(got) != len(instead) {
				t.Errorf("seed %d, chain %d: got %d blocks, want %d", seed, c.ID, len(got), len(instead))
			}
			if got := n.Blocks(c.First, first-1); len(got) != len(before) {
				t.Errorf("seed %d, chain %d: got %d blocks before the fork, want %d", seed, c.ID, len(got), len(before))
			}
			head := n.Head()
			n.Finalize()
			if got := n.Finalized(); got != head {
				t.Errorf("seed %d, chain %d: got the final block %d, want %d", seed, c.ID, got, head)
			}
		}
	}
}

// TestTheNodeInThisProcessIsLikeAnvil: meanrpc's node, and its proxy of an anvil, answer as an anvil
// does with the same history. Only hashes differ.
func TestTheNodeInThisProcessIsLikeAnvil(t *testing.T) {
	h := history.Random(7, history.Options{})
	base := h.Chains[0]
	anvil := nodes.StartAnvil(t, h.Chains, base.ID, 2)
	anvil.Play(h.Blocks...)
	node, proxy := meanrpc.Start(t, base.ID, h.Of(base.ID)), meanrpc.StartProxy(t, anvil.URL)
	last, _ := h.Last(base.ID)
	node.SetHead(last.Number, last.Number-2, last.Number-4)
	want := answers(t, anvil.URL, base, last.Number)
	for name, url := range map[string]string{"node": node.URL, "proxy": proxy.URL} {
		if got := answers(t, url, base, last.Number); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
}

// answers returns a node's answers about a chain, without hashes, as text.
func answers(t *testing.T, url string, c history.Chain, last uint64) string {
	t.Helper()
	client, err := ethclient.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var text strings.Builder
	ctx := context.Background()
	id, err := client.ChainID(ctx)
	fmt.Fprintln(&text, "chain", id, err)
	for _, tag := range []int64{int64(rpc.LatestBlockNumber), int64(rpc.SafeBlockNumber), int64(rpc.FinalizedBlockNumber), int64(last) - 1, int64(last) + 1} {
		header, err := client.HeaderByNumber(ctx, big.NewInt(tag))
		if err != nil {
			fmt.Fprintln(&text, "block", tag, err)
			continue
		}
		fmt.Fprintln(&text, "block", tag, header.Number)
	}
	for _, q := range []ethereum.FilterQuery{
		{FromBlock: new(big.Int).SetUint64(c.First), ToBlock: new(big.Int).SetUint64(last)},
		{FromBlock: new(big.Int).SetUint64(c.First + 3), ToBlock: new(big.Int).SetUint64(last - 5), Addresses: []common.Address{*c.Registry}},
		{FromBlock: new(big.Int).SetUint64(c.First), Addresses: []common.Address{*c.Registry, c.Records[0]}, Topics: [][]common.Hash{{history.TopicTransfer, history.TopicListOp}}},
		{FromBlock: new(big.Int).SetUint64(c.First), Topics: [][]common.Hash{nil, {history.Number(0)}}},
	} {
		logs, err := client.FilterLogs(ctx, q)
		fmt.Fprintln(&text, len(logs), "logs", err)
		for _, l := range logs {
			fmt.Fprintf(&text, "%d %d %d %x %x %x %v\n", l.BlockNumber, l.Index, l.BlockTimestamp, l.Address, l.Topics, l.Data, l.Removed)
		}
	}
	fmt.Fprintln(&text, "supply", supply(t, url, *c.Registry, last-3), supply(t, url, *c.Registry, last))
	return text.String()
}

// TestGethPlaysHistories: Play itself checks the content of the node.
func TestGethPlaysHistories(t *testing.T) {
	g := nodes.StartGeth(t)
	h := history.Random(1, history.Options{Chains: g.Chains})
	played := &history.History{Chains: g.Chains, Blocks: g.Play(h.Blocks...)}
	if got, want := played.Logs(), h.Logs(); got != want {
		t.Errorf("got %d logs, want %d", got, want)
	}
	g.Finalize()
	last, _ := played.Last(g.Chain)
	for _, at := range []uint64{last.Number / 2, last.Number} {
		if got, want := supply(t, g.URL, *g.Chains[0].Registry, at), len(played.Upto(g.Chain, at).Truth().Lists); got != want {
			t.Errorf("total supply at block %d: got %d, want %d", at, got, want)
		}
	}
}
