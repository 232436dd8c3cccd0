// Package nodes starts real Ethereum nodes for tests, and plays histories on them: each log is emitted
// by a contract at its address. Tests that need them are skipped unless TEST_SERVERS is set.
package nodes

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/process"
)

// patience limits the time of a start, and of an answer. On an idle machine both take less than a
// second.
const patience = 2 * time.Minute

// A Node is a process that listens on this machine only. Its methods end the test on failure, so
// only the goroutine of the test may call them.
type Node struct {
	URL   string // http://127.0.0.1:port
	Chain uint64

	t       testing.TB
	ctx     context.Context
	process *process.Process
	client  *ethclient.Client
	sender  common.Address // an account of the node's with money
}

// connect waits until the node answers.
func (n *Node) connect() {
	n.t.Helper()
	client, err := ethclient.Dial(n.URL)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(client.Close)
	n.client = client
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		var accounts []common.Address
		ctx, cancel := context.WithTimeout(n.ctx, 5*time.Second)
		err := client.Client().CallContext(ctx, &accounts, "eth_accounts")
		cancel()
		if err == nil && len(accounts) > 0 {
			n.sender = accounts[0]
			return
		}
		select {
		case <-n.process.Ended():
			n.t.Fatalf("the node has ended:\n%s", n.process.Output())
		default:
		}
		if time.Since(begun) > patience {
			n.t.Fatalf("the node at %s: got %v, %v, want an account:\n%s", n.URL, accounts, err, n.process.Output())
		}
	}
}

// call calls a method and ignores its result.
func (n *Node) call(method string, params ...any) {
	n.t.Helper()
	if err := n.client.Client().CallContext(n.ctx, nil, method, params...); err != nil {
		n.t.Fatalf("%s: %v", method, err)
	}
}

// Head returns the newest block.
func (n *Node) Head() uint64 {
	n.t.Helper()
	return n.number(rpc.LatestBlockNumber)
}

// Finalized returns the newest block that is final.
func (n *Node) Finalized() uint64 {
	n.t.Helper()
	return n.number(rpc.FinalizedBlockNumber)
}

func (n *Node) number(tag rpc.BlockNumber) uint64 {
	n.t.Helper()
	header, err := n.client.HeaderByNumber(n.ctx, big.NewInt(int64(tag)))
	if err != nil {
		n.t.Fatalf("the %s block: %v", tag, err)
	}
	return header.Number.Uint64()
}

// Blocks returns the node's blocks with logs, from one number to another.
func (n *Node) Blocks(from, to uint64) (blocks []history.Block) {
	n.t.Helper()
	logs, err := n.client.FilterLogs(n.ctx, ethereum.FilterQuery{FromBlock: number(from), ToBlock: number(to)})
	if err != nil {
		n.t.Fatalf("logs of blocks %d to %d: %v", from, to, err)
	}
	for _, l := range logs {
		if len(blocks) == 0 || blocks[len(blocks)-1].Number != l.BlockNumber {
			blocks = append(blocks, history.Block{Chain: n.Chain, Number: l.BlockNumber, Time: int64(l.BlockTimestamp)})
		}
		b := &blocks[len(blocks)-1]
		if int(l.Index) != len(b.Logs) {
			n.t.Fatalf("block %d: got log %d, want %d", b.Number, l.Index, len(b.Logs))
		}
		topics := make([]history.Word, len(l.Topics))
		for i, topic := range l.Topics {
			topics[i] = topic
		}
		b.Logs = append(b.Logs, history.Log{Address: l.Address, Topics: topics, Data: l.Data})
	}
	return blocks
}

// transaction returns the argument of eth_sendTransaction that emits a log.
func (n *Node) transaction(l history.Log, to common.Address) map[string]any {
	b := input(l)
	return map[string]any{
		"from": n.sender, "to": to, "input": hexutil.Bytes(b),
		"gas": hexutil.Uint64(500_000 + 1000*len(b)), // 32 bytes that are kept cost 22,100
	}
}

// send sends transactions, in their order.
func (n *Node) send(transactions []map[string]any) (hashes []common.Hash) {
	n.t.Helper()
	for some := range slices.Chunk(transactions, 50) {
		sent := make([]common.Hash, len(some))
		calls := make([]rpc.BatchElem, len(some))
		for i, transaction := range some {
			calls[i] = rpc.BatchElem{Method: "eth_sendTransaction", Args: []any{transaction}, Result: &sent[i]}
		}
		if err := n.client.Client().BatchCallContext(n.ctx, calls); err != nil {
			n.t.Fatalf("send %d transactions: %v", len(calls), err)
		}
		for _, c := range calls {
			if c.Error != nil {
				n.t.Fatalf("send a transaction: %v", c.Error)
			}
		}
		hashes = append(hashes, sent...)
	}
	return hashes
}

// check checks that a transaction was mined and has logged.
func (n *Node) check(hash common.Hash) *types.Receipt {
	n.t.Helper()
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		receipt, err := n.client.TransactionReceipt(n.ctx, hash)
		switch {
		case err == nil && receipt.Status == types.ReceiptStatusSuccessful:
			return receipt
		case err == nil:
			n.t.Fatalf("transaction %v failed: %+v", hash, receipt)
		case time.Since(begun) > patience:
			n.t.Fatalf("transaction %v: %v", hash, err)
		}
	}
}

// same describes how two sequences of blocks differ; it returns "" if they are equal.
func same(got, want []history.Block) string {
	got, want = withLogs(got), withLogs(want)
	if len(got) != len(want) {
		return fmt.Sprintf("got %d blocks, want %d", len(got), len(want))
	}
	for i := range got {
		if g, w := fmt.Sprintf("%x", got[i]), fmt.Sprintf("%x", want[i]); g != w {
			return fmt.Sprintf("got %s, want %s", g, w)
		}
	}
	return ""
}

func withLogs(blocks []history.Block) []history.Block {
	return slices.DeleteFunc(slices.Clone(blocks), func(b history.Block) bool { return len(b.Logs) == 0 })
}

func number(n uint64) *big.Int { return new(big.Int).SetUint64(n) }
