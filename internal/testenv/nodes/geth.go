package nodes

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/process"
	"github.com/followpress/followpress/internal/testenv/servers"
)

// A Geth is geth with its own chain. It makes a block as soon as there is a transaction, so geth
// chooses the logs of each block, and the times.
type Geth struct {
	Node

	Chains []history.Chain // its only chain, with a registry, account metadata, and two contracts of records

	stranger history.Address // emits the logs of all other contracts
	nonce    uint64          // nonce of the next transaction
}

// devChain is the id of geth's own chain.
const devChain = 1337

// StartGeth starts a geth with contracts, which ends with the test. The test is skipped unless TEST_GETH
// is set: geth takes long to build.
func StartGeth(t testing.TB) *Geth {
	t.Helper()
	if os.Getenv("TEST_GETH") == "" {
		t.Skip("needs geth: `make test-geth` builds and runs it")
	}
	address, folder := servers.FreeAddress(t), t.TempDir()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	_, authPort, err := net.SplitHostPort(servers.FreeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(geth(t), "--dev", "--dev.gaslimit", "1000000000", "--datadir", filepath.Join(folder, "data"), "--gcmode", "archive",
		"--http", "--http.addr", host, "--http.port", port, "--http.api", "eth,net,web3,dev", "--authrpc.addr", host, "--authrpc.port", authPort,
		"--ipcdisable", "--port", "0", "--nodiscover", "--maxpeers", "0", "--nat", "none", "--verbosity", "1")
	command.Env = append(os.Environ(), "HOME="+folder)
	g := &Geth{Node: Node{URL: "http://" + address, Chain: devChain, t: t, ctx: t.Context(), process: process.Start(t, command)}}
	t.Cleanup(g.process.Stop)
	g.connect()
	made := make([]history.Address, 5)
	create := map[string]any{"from": g.sender, "input": hexutil.Bytes(creation()), "gas": hexutil.Uint64(3_000_000)}
	for i := range made {
		made[i] = g.run(create)[0].ContractAddress
	}
	g.stranger = made[4]
	g.Chains = []history.Chain{{ID: devChain, First: g.Head() + 1, Registry: &made[0], Accounts: &made[1], Records: made[2:4]}}
	return g
}

// geth returns the path of the program that make installed.
func geth(t testing.TB) string {
	t.Helper()
	module, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatalf("find the root of the module: %v", err)
	}
	name := filepath.Join(filepath.Dir(strings.TrimSpace(string(module))), ".tools", "geth")
	if _, err := os.Stat(name); err != nil {
		t.Fatalf("%v: `make test-geth` builds it", err)
	}
	return name
}

// Play emits the logs of blocks, in order, and returns the resulting blocks of the node. A stranger
// emits the logs of contracts that are not in Chains.
func (g *Geth) Play(blocks ...history.Block) []history.Block {
	g.t.Helper()
	first := g.Head() + 1
	ours := map[history.Address]bool{}
	for _, c := range g.Chains {
		for _, a := range append([]history.Address{*c.Registry, *c.Accounts}, c.Records...) {
			ours[a] = true
		}
	}
	var want []history.Log
	for _, b := range blocks {
		var transactions []map[string]any
		for _, l := range b.Logs {
			if !ours[l.Address] {
				l.Address = g.stranger
			}
			want = append(want, l)
			transactions = append(transactions, g.transaction(l, l.Address))
		}
		g.run(transactions...)
	}
	made := g.Blocks(first, g.Head())
	var got []history.Log
	for _, b := range made {
		got = append(got, b.Logs...)
	}
	if fmt.Sprintf("%x", got) != fmt.Sprintf("%x", want) {
		g.t.Fatalf("blocks from %d on: got logs %x, want %x", first, got, want)
	}
	return made
}

// Mine adds a block without logs.
func (g *Geth) Mine() {
	g.t.Helper()
	g.run(map[string]any{"from": g.sender, "to": common.Address{19: 1}, "gas": hexutil.Uint64(500_000)})
}

// run sends transactions and waits until they are mined, one by one: geth may give two concurrent
// ones the same nonce.
func (g *Geth) run(transactions ...map[string]any) (receipts []*types.Receipt) {
	g.t.Helper()
	for _, transaction := range transactions {
		transaction["nonce"] = hexutil.Uint64(g.nonce)
		g.nonce++
	}
	for _, hash := range g.send(transactions) {
		receipts = append(receipts, g.check(hash))
	}
	return receipts
}

// Finalize adds enough blocks to make the present ones final.
func (g *Geth) Finalize() {
	g.t.Helper()
	head := g.Head()
	for begun := time.Now(); g.Finalized() < head; g.Mine() {
		if time.Since(begun) > patience {
			g.t.Fatalf("got the final block %d, want %d", g.Finalized(), head)
		}
	}
}
