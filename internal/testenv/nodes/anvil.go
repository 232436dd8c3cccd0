package nodes

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/process"
	"github.com/followpress/followpress/internal/testenv/servers"
)

// An Anvil is a node whose blocks have given numbers, times and logs. A block takes about a
// millisecond, even without logs, so histories on it need small gaps.
type Anvil struct {
	Node

	epoch uint64
}

// StartAnvil starts an anvil for one of the chains. Its newest block is the one before the chain's
// first. It has Multicall3 unless epoch is odd. The newest 2·epoch blocks are not final, and the
// newest epoch blocks are not safe. The node ends with the test, which is skipped unless
// TEST_SERVERS is set.
func StartAnvil(t testing.TB, chains []history.Chain, id, epoch uint64) *Anvil {
	t.Helper()
	servers.Wanted(t)
	c := chains[slices.IndexFunc(chains, func(c history.Chain) bool { return c.ID == id })]
	address, folder := servers.FreeAddress(t), t.TempDir()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(anvil(t), "--silent", "--no-mining", "--host", host, "--port", port, "--chain-id", fmt.Sprint(c.ID),
		"--number", fmt.Sprint(c.First-2), "--timestamp", "1600000000", "--slots-in-an-epoch", fmt.Sprint(epoch),
		"--accounts", "1", "--gas-limit", "10000000000", "--cache-path", folder)
	command.Env = append(os.Environ(), "HOME="+folder)
	n := &Anvil{
		Node:  Node{URL: "http://" + address, Chain: c.ID, t: t, ctx: t.Context(), process: process.Start(t, command)},
		epoch: epoch,
	}
	n.connect()
	n.call("anvil_setBlockTimestampInterval", 1)
	// Start from a block that has the emitters: later ones would be gone after a reorganization.
	for _, a := range history.Addresses(chains) {
		n.call("anvil_setCode", common.Address(a), hexutil.Bytes(emitter()))
	}
	if epoch%2 == 0 {
		n.call("anvil_setCode", multicall3, hexutil.Bytes(code(multicallHex)))
	}
	n.Mine(1)
	return n
}

// anvil returns the path of the program that npm installed.
func anvil(t testing.TB) string {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("internal/tools/anvil/package-lock.json has anvil for linux/amd64 only")
	}
	module, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatalf("find the root of the module: %v", err)
	}
	root := filepath.Dir(strings.TrimSpace(string(module)))
	name := filepath.Join(root, "internal", "tools", "anvil", "node_modules", "@foundry-rs", "anvil-linux-amd64", "bin", "anvil")
	if _, err := os.Stat(name); err != nil {
		t.Fatalf("%v: `make test-tools` installs it", err)
	}
	return name
}

// Play adds those blocks that belong to the node's chain, and blocks without logs for missing
// numbers. Times must grow by at least a second per block number. The addresses of logs must be in
// history.Addresses.
func (n *Anvil) Play(blocks ...history.Block) {
	n.t.Helper()
	head := n.Head()
	first := head + 1
	var played []history.Block
	for _, b := range blocks {
		if b.Chain != n.Chain {
			continue
		}
		if b.Number <= head {
			n.t.Fatalf("block %d cannot be added after block %d", b.Number, head)
		}
		n.Mine(b.Number - head - 1)
		transactions := make([]map[string]any, len(b.Logs))
		for i, l := range b.Logs {
			transactions[i] = n.transaction(l, l.Address)
		}
		n.send(transactions)
		n.call("evm_setNextBlockTimestamp", b.Time)
		n.call("evm_mine")
		head = b.Number
		played = append(played, b)
	}
	if len(played) == 0 {
		return
	}
	if different := same(n.Blocks(first, head), played); different != "" {
		n.t.Fatalf("blocks from %d on: %s", first, different)
	}
}

// Mine adds blocks without logs, a second apart.
func (n *Anvil) Mine(blocks uint64) {
	n.t.Helper()
	if blocks > 0 {
		n.call("anvil_mine", hexutil.Uint64(blocks))
	}
}

// Finalize adds enough blocks to make the present ones final.
func (n *Anvil) Finalize() {
	n.t.Helper()
	n.Mine(2 * n.epoch)
}

// Reorg replaces the blocks from first on. The new chain has the given blocks and is at least as
// long as the old one. Times up to that of the old newest block are replaced, a second apart. Reorg
// returns the blocks from first on that have logs.
func (n *Anvil) Reorg(first uint64, blocks ...history.Block) []history.Block {
	n.t.Helper()
	head := n.Head()
	if first > head {
		n.t.Fatalf("reorganise from block %d on: the newest one is %d", first, head)
	}
	nonce, err := n.client.NonceAt(n.ctx, n.sender, number(first-1))
	if err != nil {
		n.t.Fatal(err)
	}
	pairs := []any{}
	rest := blocks
	for len(rest) > 0 && rest[0].Number <= head {
		for _, l := range rest[0].Logs {
			transaction := n.transaction(l, l.Address)
			transaction["nonce"] = hexutil.Uint64(nonce)
			pairs = append(pairs, []any{transaction, rest[0].Number - first})
			nonce++
		}
		rest = rest[1:]
	}
	n.call("anvil_reorg", head-first+1, pairs)
	n.Play(rest...)
	now := n.Blocks(first, n.Head())
	if different := same(withTimes(now, blocks), blocks); different != "" {
		n.t.Fatalf("blocks from %d on: %s", first, different)
	}
	return now
}

// withTimes returns blocks with the times of others.
func withTimes(blocks, others []history.Block) []history.Block {
	timed := withLogs(blocks)
	for i, b := range withLogs(others) {
		if i < len(timed) {
			timed[i].Time = b.Time
		}
	}
	return timed
}
