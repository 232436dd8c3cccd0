// Command live measures followpress live with a graph of the real network's size. Nodes in this
// process make a block every two seconds. It prints a table. `make bench-live` builds the programs.
package main

import (
	"context"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/bench/measure"
	"github.com/followpress/followpress/bench/rig"
	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
)

const (
	blockEvery = 2 * time.Second
	depth      = 30 // number of blocks that are not final
	burstOps   = 33 // operations per block: 1,000 a minute
	api        = "api/v1"
)

func main() {
	b := &bench{Bench: rig.Bench{}, random: rand.New(rand.NewPCG(1, 2))}
	flag.IntVar(&b.blocks, "blocks", 100, "blocks with one operation each")
	flag.DurationVar(&b.burst, "burst", 10*time.Minute, "how long 1,000 operations come a minute")
	flag.DurationVar(&b.idle, "idle", 2*time.Minute, "how long nothing comes")
	flag.DurationVar(&b.load, "load", 10*time.Second, "how long each round of requests takes")
	b.Main(b.start, b.sync, b.ready, b.idleness, b.single, b.bursts, b.memory, b.throughput)
}

// A bench holds the nodes of a run, and the measured process.
type bench struct {
	rig.Bench
	blocks            int
	burst, idle, load time.Duration
	random            *rand.Rand

	nodes  []*node
	rpc    string
	places []place // places of lists on Base
	live   *rig.Process
	status string // URL of the status
}

// A node is a chain with its newest block.
type node struct {
	*meanrpc.Node
	id     uint64
	mu     sync.Mutex
	newest uint64
}

// A place locates the records of a list.
type place struct {
	token    uint64
	contract history.Address
	slot     history.Word
}

// start starts the nodes. They run in this process and share its cores.
func (b *bench) start(context.Context) error {
	network, base := history.Real(), history.Production()[0].ID
	for _, c := range history.Production() {
		n := &node{Node: meanrpc.New(c.ID, history.Usual(1, network)), id: c.ID}
		server := httptest.NewServer(http.HandlerFunc(n.ServeHTTP))
		b.rpc += fmt.Sprintf("%d=%s;", c.ID, server.URL)
		b.nodes = append(b.nodes, n)
	}
	for block := range history.Usual(1, network) {
		for _, n := range b.nodes {
			if n.id == block.Chain {
				n.newest = max(n.newest, block.Number)
			}
		}
		for _, l := range block.Logs {
			if block.Chain == base && len(l.Topics) == 2 && l.Topics[0] == history.TopicLocation {
				if p, ok := parsePlace(l, base); ok {
					b.places = append(b.places, p)
				}
			}
		}
	}
	if len(b.places) == 0 {
		return errors.New("no list has its records on Base")
	}
	return nil
}

// parsePlace parses the ABI-encoded location of a list: version, type, chain, contract and slot.
func parsePlace(l history.Log, chain uint64) (p place, ok bool) {
	const head = 64
	if len(l.Data) < head+86 || history.Number(chain) != history.Word(l.Data[head+2:head+34]) {
		return p, false
	}
	token, err := strconv.ParseUint(strings.TrimLeft(hex.EncodeToString(l.Topics[1][:]), "0"), 16, 64)
	return place{token, history.Address(l.Data[head+34 : head+54]), history.Word(l.Data[head+54 : head+86])}, err == nil
}

// add adds a block in which random lists follow new accounts. It returns its number and one of the
// lists.
func (n *node) add(b *bench, ops int) (block uint64, of place) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.newest++
	made := history.Block{Chain: n.id, Number: n.newest, Time: time.Now().Unix()}
	for range ops {
		of = b.places[b.random.IntN(len(b.places))]
		op := []byte{1, 1, 1, 1}
		for range 20 {
			op = append(op, byte(b.random.Uint32()))
		}
		made.Logs = append(made.Logs, history.Op(of.contract, of.slot, op))
	}
	n.Add(slices.Values([]history.Block{made}))
	n.SetHead(n.newest, n.newest-depth, n.newest-depth)
	return n.newest, of
}

// tick adds blocks without events to all nodes every two seconds until ctx ends, but to Base only if asked.
func (b *bench) tick(ctx context.Context, base bool) {
	ticker := time.NewTicker(blockEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			for i, n := range b.nodes {
				if i > 0 || base {
					n.add(b, 0)
				}
			}
		}
	}
}

// sync reads all blocks into the state.
func (b *bench) sync(ctx context.Context) error {
	_, err := measure.Run(exec.CommandContext(ctx, b.Built("followpress"), "snapshot", "chain", "--state", b.Path("state"), "--rpc", b.rpc,
		"--out", b.Path("snapshot"), "--quiet"))
	return err
}

// begin starts the measured process.
func (b *bench) begin(ctx context.Context) (*rig.Process, error) {
	status, err := rig.FreeAddr()
	if err != nil {
		return nil, err
	}
	b.status = "http://" + status
	return rig.Start(ctx, func(addr string) (*exec.Cmd, error) {
		return exec.CommandContext(ctx, b.Built("followpress"), "live", "--state", b.Path("state"), "--rpc", b.rpc, "--api", "efp",
			"--addr", addr, "--metrics-addr", status, "--max-lag", "100000h", "--log-level", "warn"), nil
	})
}

// ready measures the time from a start with a state to the first answer.
func (b *bench) ready(ctx context.Context) error {
	took, err := measure.Repeat(b.Rounds, func(int) (seconds float64, err error) {
		if b.live != nil {
			b.live.Stop()
		}
		begun := time.Now()
		if b.live, err = b.begin(ctx); err != nil {
			return 0, err
		}
		for {
			if _, err := rig.Get("http://" + b.live.Addr + "/readyz"); err == nil {
				return time.Since(begun).Seconds(), nil
			}
			if time.Since(begun) > 5*time.Minute || ctx.Err() != nil {
				return 0, errors.New("it is not ready")
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	if err == nil {
		b.Figure("ready after a start with its state", "s", took, "≤ 6 s", fmt.Sprintf("%d lists on Base", len(b.places)))
	}
	return err
}

// A status decodes the members of the process's status that the benchmark uses.
type status struct {
	Chains []struct{ Requests int64 }
}

func (b *bench) asked() (requests []int64, err error) {
	body, err := rig.Get(b.status + "/status.json")
	if err != nil {
		return nil, err
	}
	var s status
	if err := json.Unmarshal(body, &s); err != nil {
		return nil, err
	}
	for _, c := range s.Chains {
		requests = append(requests, c.Requests)
	}
	return requests, nil
}

// idleness measures the cost of following chains without news.
func (b *bench) idleness(ctx context.Context) error {
	ticking, stop := context.WithCancel(ctx)
	defer stop()
	go b.tick(ticking, true)
	time.Sleep(10 * time.Second) // let the work of the start end
	requests, err := b.asked()
	if err != nil {
		return err
	}
	used, err := b.live.Processor()
	if err != nil {
		return err
	}
	select {
	case <-time.After(b.idle):
	case <-ctx.Done():
		return ctx.Err()
	}
	after, err := b.asked()
	if err != nil {
		return err
	}
	usedAfter, err := b.live.Processor()
	if err != nil {
		return err
	}
	var aMinute []float64
	for i := range after {
		aMinute = append(aMinute, float64(after[i]-requests[i])/b.idle.Minutes())
	}
	b.Figure("share of a processor without news", "%", []float64{100 * (usedAfter - used).Seconds() / b.idle.Seconds()}, "≤ 1 %", "a block every 2 s on each chain")
	b.Figure("requests a minute to a chain without news", "", aMinute, "≤ 30")
	return nil
}

// follow adds blocks to Base, and measures the seconds from each block to its answer: a request for
// the list's counts that waits for the block.
func (b *bench) follow(ctx context.Context, blocks, ops int) (took []float64, err error) {
	ticking, stop := context.WithCancel(ctx)
	defer stop()
	go b.tick(ticking, false)
	var (
		mu      sync.Mutex
		waiting sync.WaitGroup
	)
	ticker := time.NewTicker(blockEvery)
	defer ticker.Stop()
	for range blocks {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-ticker.C:
		}
		begun := time.Now()
		block, of := b.nodes[0].add(b, ops)
		waiting.Go(func() {
			failed := b.await(ctx, block, of)
			mu.Lock()
			defer mu.Unlock()
			took, err = append(took, time.Since(begun).Seconds()), errors.Join(err, failed)
		})
	}
	waiting.Wait()
	return took, err
}

// await waits until a block is answered.
func (b *bench) await(ctx context.Context, block uint64, of place) error {
	for begun := time.Now(); time.Since(begun) < 2*time.Minute; {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s/%s/lists/%d/stats", b.live.Addr, api, of.token), nil)
		if err != nil {
			return err
		}
		request.Header.Set("X-After", fmt.Sprintf("%d:%d", b.nodes[0].id, block))
		request.Header.Set("Prefer", "wait=10")
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK {
			return fmt.Errorf("list %d: got %s: %s, %w", of.token, answer.Status, body, err)
		}
		for head := range strings.SplitSeq(answer.Header.Get("X-Heads"), ",") {
			chain, number, _ := strings.Cut(strings.TrimSpace(head), ":")
			at, err := strconv.ParseUint(number, 10, 64)
			if err == nil && chain == strconv.FormatUint(b.nodes[0].id, 10) && at >= block {
				return nil
			}
		}
	}
	return fmt.Errorf("block %d is not answered within two minutes", block)
}

// quantile returns a quantile of the times, by the nearest rank.
func quantile(times []float64, q float64) []float64 {
	slices.Sort(times)
	return []float64{times[min(len(times)-1, max(0, int(math.Ceil(q*float64(len(times))))-1))]}
}

func (b *bench) single(ctx context.Context) error {
	used, err := b.live.Processor()
	if err != nil {
		return err
	}
	took, err := b.follow(ctx, b.blocks, 1)
	if err != nil {
		return err
	}
	after, err := b.live.Processor()
	if err != nil {
		return err
	}
	note := fmt.Sprintf("%d blocks, one every 2 s", b.blocks)
	b.Figure("block with one operation to its answer, p50", "s", quantile(took, .5), "≤ 3 s", note)
	b.Figure("block with one operation to its answer, p99", "s", quantile(took, .99), "≤ 6 s")
	b.Figure("processor time per block", "s", []float64{(after - used).Seconds() / float64(b.blocks)}, "")
	return nil
}

func (b *bench) bursts(ctx context.Context) error {
	took, err := b.follow(ctx, int(b.burst/blockEvery), burstOps)
	if err != nil {
		return err
	}
	b.Figure("the same at 1,000 operations a minute, p50", "s", quantile(took, .5), "", fmt.Sprintf("for %s", b.burst))
	b.Figure("the same at 1,000 operations a minute, p99", "s", quantile(took, .99), "≤ 10 s")
	return nil
}

func (b *bench) memory(context.Context) error {
	peak, err := b.live.PeakMemory()
	if err == nil {
		b.Figure("peak memory of all that", "MiB", []float64{peak}, "≤ 900 MiB")
	}
	return err
}

// throughput compares the rates of live and of serve over a folder with the site of the same
// blocks.
func (b *bench) throughput(ctx context.Context) error {
	if _, err := measure.Run(exec.CommandContext(ctx, b.Built("followpress"), "generate", "--snapshot", b.Path("snapshot"), "--out", b.Path("site"),
		"--api", "efp", "--quiet", "--no-sync")); err != nil {
		return err
	}
	other, err := rig.Start(ctx, func(addr string) (*exec.Cmd, error) {
		return exec.CommandContext(ctx, b.Built("followpress"), "serve", "--site", b.Path("site"), "--addr", addr, "--log-level", "warn"), nil
	})
	if err != nil {
		return err
	}
	defer other.Stop()
	defer b.live.Stop()
	details, pages := rig.Load{Time: b.load}, rig.Load{Time: b.load}
	for range 1000 {
		token := b.places[b.random.IntN(len(b.places))].token
		details.Paths = append(details.Paths, fmt.Sprintf("/%s/lists/%d/details", api, token))
		pages.Paths = append(pages.Paths, fmt.Sprintf("/%s/lists/%d/following", api, token))
	}
	// The server listens before it has read the site, and wrk counts a wait of two seconds as an
	// error.
	if _, err := rig.Get("http://" + other.Addr + details.Paths[0]); err != nil {
		return err
	}
	if err := b.CompareRates(ctx, "details of 1,000 lists, warm / from serve", details, b.live.Addr, other.Addr, "≥ 0.9"); err != nil {
		return err
	}
	return b.CompareRates(ctx, "first pages of 1,000 lists, warm / from serve", pages, b.live.Addr, other.Addr, "≥ 0.9")
}
