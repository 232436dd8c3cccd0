package meanrpc_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math/big"
	"net/http"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
)

const chain = 8453

var registry = *history.Production()[0].Registry

// blocks are number 10, 20 … 100, each with n logs.
func blocks(n int) []history.Block {
	var all []history.Block
	for number := uint64(10); number <= 100; number += 10 {
		b := history.Block{Chain: chain, Number: number, Time: int64(1000 + number)}
		for i := range n {
			b.Logs = append(b.Logs, history.Transfer(registry, history.Address{}, history.Address{1}, history.Number(number*100+uint64(i))))
		}
		all = append(all, b)
	}
	return all
}

func client(t *testing.T, url string) *ethclient.Client {
	t.Helper()
	c, err := ethclient.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func logs(c *ethclient.Client, from, to int64) ([]types.Log, error) {
	return c.FilterLogs(context.Background(), ethereum.FilterQuery{
		FromBlock: big.NewInt(from), ToBlock: big.NewInt(to), Addresses: []common.Address{registry},
		Topics: [][]common.Hash{{history.TopicLocation, history.TopicTransfer}},
	})
}

func supply(t *testing.T, c *ethclient.Client, at int64) int64 {
	t.Helper()
	to := common.Address(registry)
	answer, err := c.CallContract(context.Background(), ethereum.CallMsg{To: &to, Data: common.FromHex("0x18160ddd")}, big.NewInt(at))
	if err != nil {
		t.Fatal(err)
	}
	return new(big.Int).SetBytes(answer).Int64()
}

func TestANodeServesAHistory(t *testing.T) {
	node := meanrpc.Start(t, chain, slices.Values(blocks(3)))
	c, ctx := client(t, node.URL), context.Background()
	if id, err := c.ChainID(ctx); err != nil || id.Int64() != chain {
		t.Errorf("chain id: got %v, %v, want %d", id, err, chain)
	}
	got, err := logs(c, 20, 39)
	if err != nil || len(got) != 6 {
		t.Fatalf("logs of two blocks: got %d, %v, want 6", len(got), err)
	}
	l := got[4]
	if l.BlockNumber != 30 || l.Index != 1 || l.BlockTimestamp != 1030 || l.BlockHash != node.Hash(30) || l.Address != registry || l.Topics[3] != history.Number(3001) {
		t.Errorf("a log: got %+v", l)
	}
	header, err := c.HeaderByNumber(ctx, big.NewInt(25))
	if err != nil || header.Number.Int64() != 25 || header.Time != 1025 || header.ParentHash != node.Hash(24) {
		t.Errorf("a block without logs: got %+v, %v, want number 25 and its time", header, err)
	}
	if _, err := c.HeaderByNumber(ctx, big.NewInt(101)); !errors.Is(err, ethereum.NotFound) {
		t.Errorf("a block that is not there yet: got %v, want %v", err, ethereum.NotFound)
	}
	if got, want := supply(t, c, 29), int64(6); got != want {
		t.Errorf("total supply at block 29: got %d, want %d", got, want)
	}
	node.SetHead(90, 50, 40)
	for tag, want := range map[rpc.BlockNumber]int64{rpc.LatestBlockNumber: 90, rpc.SafeBlockNumber: 50, rpc.FinalizedBlockNumber: 40} {
		if header, err := c.HeaderByNumber(ctx, big.NewInt(int64(tag))); err != nil || header.Number.Int64() != want {
			t.Errorf("%s: got %v, %v, want %d", tag, header, err, want)
		}
	}
	if got, err := logs(c, 90, 200); err != nil || len(got) != 3 {
		t.Errorf("logs beyond the newest block: got %d, %v, want 3", len(got), err)
	}
	if c := node.Counts(); c.Requests != c.Calls["eth_chainId"]+c.Calls["eth_getLogs"]+c.Calls["eth_getBlockByNumber"]+c.Calls["eth_call"] || c.Logs != 9 {
		t.Errorf("counts: got %+v, want 9 logs and a call for each request", c)
	}
}

func TestAReorganisedNode(t *testing.T) {
	node := meanrpc.Start(t, chain, slices.Values(blocks(2)))
	c := client(t, node.URL)
	before := node.Hash(79)
	was := node.Hash(80)
	node.Reorg(80, blocks(1)[8:9]...)
	if node.Hash(79) != before || node.Hash(80) == was {
		t.Error("hashes: want those from block 80 on to change, and no others")
	}
	if got, err := logs(c, 70, 100); err != nil || len(got) != 3 || got[2].BlockNumber != 90 || got[2].BlockHash != node.Hash(90) {
		t.Errorf("logs: got %v, %v, want two of block 70 and one of block 90", got, err)
	}
	if got := supply(t, c, 90); got != 15 {
		t.Errorf("total supply: got %d, want 15", got)
	}
}

func TestBatches(t *testing.T) {
	node := meanrpc.Start(t, chain, slices.Values(blocks(1)))
	c := client(t, node.URL).Client()
	batch := func() (string, error) {
		var id, head string
		calls := []rpc.BatchElem{{Method: "eth_chainId", Result: &id}, {Method: "eth_blockNumber", Result: &head}}
		err := c.BatchCall(calls)
		return id + " " + head, err
	}
	for name, f := range map[string]meanrpc.Faults{"plain": {}, "backwards": {Backwards: true}} {
		node.Set(f)
		if got, err := batch(); err != nil || got != "0x2105 0x64" {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	for name, f := range map[string]meanrpc.Faults{"no batches": {NoBatches: true}, "too many": {MaxBatch: 1}} {
		node.Set(f)
		if got, err := batch(); err == nil {
			t.Errorf("%s: got %q, want an error", name, got)
		}
	}
}

// TestFaults: each fault looks as it does at real providers.
func TestFaults(t *testing.T) {
	node := meanrpc.Start(t, chain, slices.Values(blocks(2)))
	c, ctx := client(t, node.URL), context.Background()
	want := func(name string, f meanrpc.Faults, count int) []types.Log {
		t.Helper()
		node.Set(f)
		got, err := logs(c, 1, 100)
		if err != nil || len(got) != count {
			t.Errorf("%s: got %d logs, %v, want %d", name, len(got), err, count)
		}
		return got
	}
	want("none", meanrpc.Faults{}, 20)
	want("lag", meanrpc.Faults{Lag: 25}, 14)
	if _, err := c.HeaderByNumber(ctx, big.NewInt(76)); !errors.Is(err, ethereum.NotFound) {
		t.Errorf("lag: got %v, want %v", err, ethereum.NotFound)
	}
	if head, err := c.BlockNumber(ctx); err != nil || head != 100 {
		t.Errorf("lag: got head %d, %v, want 100", head, err)
	}
	want("known lag", meanrpc.Faults{Lag: 25, LagKnown: true}, 14)
	if h, err := c.HeaderByNumber(ctx, big.NewInt(int64(rpc.FinalizedBlockNumber))); err != nil || h.Number.Int64() != 75 {
		t.Errorf("known lag: got %v, %v, want block 75", h, err)
	}
	want("pruned", meanrpc.Faults{Pruned: 50}, 12)
	want("forgets", meanrpc.Faults{Forget: func(l meanrpc.LogID) bool { return l == meanrpc.LogID{Block: 20, Index: 1} }}, 19)
	if got := want("removed", meanrpc.Faults{Removed: true}, 40); !got[1].Removed || got[0].Removed {
		t.Error("removed: want every other log")
	}
	if got := want("foreign", meanrpc.Faults{Foreign: true}, 40); got[1].Address == got[0].Address {
		t.Error("foreign: want every other log")
	}
	want("out of range", meanrpc.Faults{OutOfRange: true}, 21)
	if got := want("no times", meanrpc.Faults{NoTimestamp: true}, 20); got[0].BlockTimestamp != 0 {
		t.Error("no times: got one")
	}
	if got := want("another chain", meanrpc.Faults{OtherChain: true}, 20); got[0].BlockHash == node.Hash(10) {
		t.Error("another chain: got the same hash")
	}
	want("another node", meanrpc.Faults{Lag: 50, Applies: func(r meanrpc.Request) bool { return r.Methods[0] != "eth_getLogs" }}, 20)
	want("new fields", meanrpc.Faults{NewFields: true}, 20)
	node.Set(meanrpc.Faults{ChainID: 5, Says: func(_ string, true []byte) []byte {
		return binary.BigEndian.AppendUint64(make([]byte, 24), 1+binary.BigEndian.Uint64(true[24:]))
	}})
	if id, err := c.ChainID(ctx); err != nil || id.Int64() != 5 {
		t.Errorf("chain id: got %v, %v, want 5", id, err)
	}
	if got := supply(t, c, 100); got != 21 {
		t.Errorf("supply: got %d, want 21", got)
	}
}

func TestLimitsInTheWordsOfProviders(t *testing.T) {
	node := meanrpc.Start(t, chain, slices.Values(blocks(2)))
	c := client(t, node.URL)
	for _, words := range meanrpc.AllWords() {
		node.Set(meanrpc.Faults{MaxBlocks: 50, Words: &words})
		if _, err := logs(c, 1, 51); err == nil {
			t.Errorf("%s: 51 blocks: got no error", words.Provider)
		}
		if got, err := logs(c, 1, 50); err != nil || len(got) != 10 {
			t.Errorf("%s: 50 blocks: got %d, %v", words.Provider, len(got), err)
		}
		node.Set(meanrpc.Faults{MaxResults: 10, Words: &words})
		if _, err := logs(c, 1, 60); err == nil {
			t.Errorf("%s: 12 logs: got no error", words.Provider)
		}
		if got, err := logs(c, 1, 59); err != nil || len(got) != 10 {
			t.Errorf("%s: 10 logs: got %d, %v", words.Provider, len(got), err)
		}
	}
}

func TestTroublesPass(t *testing.T) {
	node := meanrpc.Start(t, chain, slices.Values(blocks(2)))
	c := client(t, node.URL)
	for i, trouble := range meanrpc.Troubles() {
		node.Reset()
		node.Set(meanrpc.Faults{Trouble: meanrpc.First(1, trouble)})
		if _, err := logs(c, 1, 100); err == nil {
			t.Errorf("trouble %d: got no error", i)
		}
		if got, err := logs(c, 1, 100); err != nil || len(got) != 20 {
			t.Errorf("after trouble %d: got %d, %v", i, len(got), err)
		}
	}
	node.Set(meanrpc.Faults{Trouble: meanrpc.Limited(0.001, 1, meanrpc.Trouble{Status: http.StatusTooManyRequests})})
	if _, err := logs(c, 1, 100); err != nil {
		t.Errorf("the first request of a limited server: got %v", err)
	}
	if _, err := logs(c, 1, 100); err == nil {
		t.Error("the second request of a limited server: got no error")
	}
	node.Set(meanrpc.Faults{Trouble: meanrpc.First(1<<30, meanrpc.Trouble{Hang: true})})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.BlockNumber(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a server that hangs: got %v, want %v", err, context.DeadlineExceeded)
	}
	var _ http.Handler = node
}

// TestAProxyIsItsNode: a proxy answers what its node answers, and has faults of its own.
func TestAProxyIsItsNode(t *testing.T) {
	node := meanrpc.Start(t, chain, slices.Values(blocks(3)))
	proxy := meanrpc.StartProxy(t, node.URL)
	direct, through, ctx := client(t, node.URL), client(t, proxy.URL), context.Background()
	want, err := logs(direct, 1, 100)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := logs(through, 1, 100); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("logs: got %v, %v, want %v", got, err, want)
	}
	for _, tag := range []int64{50, int64(rpc.LatestBlockNumber), int64(rpc.FinalizedBlockNumber)} {
		want, err := direct.HeaderByNumber(ctx, big.NewInt(tag))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := through.HeaderByNumber(ctx, big.NewInt(tag)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("block %d: got %v, %v, want %v", tag, got, err, want)
		}
	}
	if _, err := through.HeaderByNumber(ctx, big.NewInt(101)); !errors.Is(err, ethereum.NotFound) {
		t.Errorf("a block that is not there: got %v, want %v", err, ethereum.NotFound)
	}
	if got := supply(t, through, 100); got != 30 {
		t.Errorf("total supply: got %d, want 30", got)
	}
	proxy.Set(meanrpc.Faults{Lag: 30, Forget: func(l meanrpc.LogID) bool { return l.Index == 0 }})
	if got, err := logs(through, 1, 100); err != nil || len(got) != 14 {
		t.Errorf("a mean proxy: got %d logs, %v, want 14", len(got), err)
	}
	node.Set(meanrpc.Faults{MaxBlocks: 10})
	if _, err := logs(through, 1, 100); err == nil {
		t.Error("an error of the node: got no error")
	}
}
