// Command sources measures followpress snapshot chain against nodes in this process, whose history
// has the real network's size, and prints a table. `make bench-sources` builds the programs.
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/bench/measure"
	"github.com/followpress/followpress/bench/rig"
	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
)

func main() {
	b := &bench{Bench: rig.Bench{}}
	b.Main(b.start, b.first, b.nothingNew, b.replay)
}

// A bench holds the nodes of a run.
type bench struct {
	rig.Bench
	nodes map[uint64]*meanrpc.Node
	rpc   string
}

const (
	latency    = 50 * time.Millisecond
	mostBlocks = 10_000 // limit of a request
)

// start starts the nodes. They run in this process and share its cores.
func (b *bench) start(context.Context) error {
	network := history.Real()
	b.nodes = map[uint64]*meanrpc.Node{}
	for _, c := range history.Production() {
		node := meanrpc.New(c.ID, history.Usual(1, network))
		node.Set(meanrpc.Faults{Latency: latency, MaxBlocks: mostBlocks})
		server := httptest.NewServer(http.HandlerFunc(node.ServeHTTP))
		b.nodes[c.ID] = node
		b.rpc += fmt.Sprintf("%d=%s;", c.ID, server.URL)
	}
	return nil
}

// command makes a snapshot. More flags may name another state.
func (b *bench) command(ctx context.Context, more []string) *exec.Cmd {
	return exec.CommandContext(ctx, b.Built("followpress"), append([]string{
		"snapshot", "chain", "--state", b.Path("state"), "--rpc", b.rpc, "--out", b.Path("snapshot"), "--report", b.Path("report.json"),
	}, more...)...)
}

// A report decodes the members of the command's report that the benchmark uses.
type report struct {
	Seconds float64
	Replay  struct{ Events, Lists, Records int }
	Chain   struct {
		Seconds float64
		Chains  []struct {
			Chain  uint64
			Events int
			Cost   []struct{ Requests int }
		}
	}
}

func (b *bench) run(ctx context.Context, more ...string) (r report, u measure.Usage, err error) {
	for _, node := range b.nodes {
		node.Reset()
	}
	if u, err = measure.Run(b.command(ctx, more)); err != nil {
		return r, u, err
	}
	text, err := os.ReadFile(b.Path("report.json"))
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	return r, u, err
}

// first measures the first run, which reads everything.
func (b *bench) first(ctx context.Context) error {
	r, u, err := b.run(ctx)
	if err != nil {
		return err
	}
	requests, blocks, least := 0, uint64(0), 0
	for _, node := range b.nodes {
		c := node.Counts()
		requests, blocks, least = requests+c.Requests, blocks+c.Blocks, least+int((c.Blocks+mostBlocks-1)/mostBlocks)
	}
	fmt.Fprintf(os.Stderr, "%d events of %d blocks, %d lists, %d records\n", r.Replay.Events, blocks, r.Replay.Lists, r.Replay.Records)
	b.Figure("first sync, 8 requests at a time to each chain", "s", []float64{r.Chain.Seconds}, "≤ 120 s",
		fmt.Sprintf("%.0f million blocks, %d events", float64(blocks)/1e6, r.Replay.Events), fmt.Sprintf("%.0f s of waiting", float64(least)*latency.Seconds()/8))
	b.Compare("requests / the least possible", "", []measure.Pair{{Ours: float64(requests), Other: float64(least)}}, "≤ 1.1")
	b.Figure("peak memory of the first run", "MiB", []float64{u.Memory}, "≤ 512 MiB")
	return nil
}

// nothingNew measures a run that finds no new block.
func (b *bench) nothingNew(ctx context.Context) error {
	var requests []float64
	took, err := measure.Repeat(b.Rounds, func(int) (float64, error) {
		r, _, err := b.run(ctx)
		most := 0
		for _, node := range b.nodes {
			most = max(most, node.Counts().Requests)
		}
		requests = append(requests, float64(most))
		return r.Chain.Seconds, err
	})
	if err != nil {
		return err
	}
	b.Figure("asking when nothing is new", "s", took, "≤ 2 s")
	b.Figure("its requests, the most of a chain", "", requests, "≤ 10")
	return nil
}

// replay measures a run that spends nearly all its time replaying the state into a snapshot.
func (b *bench) replay(ctx context.Context) error {
	var memory []float64
	took, err := measure.Repeat(b.Rounds, func(int) (float64, error) {
		r, u, err := b.run(ctx)
		memory = append(memory, u.Memory)
		return r.Seconds - r.Chain.Seconds, err
	})
	if err != nil {
		return err
	}
	b.Figure("replay from the state into a snapshot", "s", took, "≤ 15 s")
	b.Figure("its peak memory", "MiB", memory, "≤ 512 MiB")
	return nil
}
