package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/databases"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
	"github.com/followpress/followpress/internal/testenv/nodes"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

// TestTwoOperators: two operators that read the same blocks make the same snapshot and the same
// site. It does not matter how they got the state: at once, block by block, from blocks that were
// not final, a second time, or from a published log.
func TestTwoOperators(t *testing.T) {
	t.Setenv("FOLLOWPRESS_NO_SYNC", "1")
	t.Run("nodes of this process", func(t *testing.T) {
		played := history.Random(11, history.Options{Chains: history.Production(), Transactions: 300})
		all := map[uint64]*meanrpc.Node{}
		var rpc []string
		for _, c := range played.Chains {
			all[c.ID] = meanrpc.Start(t, c.ID, slices.Values(played.Blocks))
			rpc = append(rpc, fmt.Sprintf("%d=%s", c.ID, all[c.ID].URL))
		}
		twoOperators(t, played, rpc, func(part, parts uint64) {
			for _, c := range played.Chains {
				last, _ := played.Last(c.ID)
				head := c.First + (last.Number-c.First)*part/parts
				all[c.ID].SetHead(head, head, head)
			}
		})
	})
	t.Run("anvil", func(t *testing.T) {
		played := history.Random(12, history.Options{Chains: history.Production(), Transactions: 150})
		var rpc []string
		for _, c := range played.Chains {
			node := nodes.StartAnvil(t, played.Chains, c.ID, 1)
			node.Play(slices.Collect(played.Of(c.ID))...)
			node.Finalize()
			rpc = append(rpc, fmt.Sprintf("%d=%s", c.ID, node.URL))
		}
		twoOperators(t, played, rpc, func(uint64, uint64) {})
	})
}

// twoOperators is TestTwoOperators with nodes, whose chains grow to some part of their blocks.
func twoOperators(t *testing.T, played *history.History, rpc []string, grow func(part, parts uint64)) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	read := func(operator string, more ...string) {
		t.Helper()
		done(t, append([]string{"snapshot", "chain", "--state", at(operator + "-state"), "--out", at(operator), "--rpc", strings.Join(rpc, ";")}, more...)...)
	}
	const parts = 5
	for part := uint64(1); part <= parts; part++ {
		grow(part, parts)
		read("steps", "--rate", "1000")
	}
	slices.Reverse(rpc)
	read("once")
	read("weak", "--finality", "latest")
	read("weak")
	home := played.Chains[0]
	read("again")
	read("again", "--reread", fmt.Sprintf("%d:%d", home.ID, home.First+20))
	done(t, "generate", "--snapshot", at("once"), "--out", at("once.tar"))

	others := []string{"steps", "weak", "again"}
	compare := func(what, suffix string) {
		t.Helper()
		want := files(t, at("once"+suffix))
		done(t, "generate", "--snapshot", at("once"+suffix), "--out", at("site.tar"))
		site, err := os.ReadFile(at("site.tar"))
		if err != nil || len(want["records.ndjson"]) == 0 {
			t.Fatal(err)
		}
		for _, other := range others {
			got := files(t, at(other+suffix))
			if !bytes.Equal(got["meta.json"], want["meta.json"]) {
				t.Errorf("%s, %s: got %s, want %s", what, other, got["meta.json"], want["meta.json"])
			}
			if !maps.EqualFunc(got, want, bytes.Equal) {
				t.Errorf("%s, %s: got other tables", what, other)
			}
			done(t, "generate", "--snapshot", at(other+suffix), "--out", at("other.tar"))
			if body, err := os.ReadFile(at("other.tar")); err != nil || !bytes.Equal(body, site) {
				t.Errorf("%s, %s: got another site (%v)", what, other, err)
			}
		}
	}
	compare("now", "")
	var roots [][]byte
	for _, operator := range []string{"once", "steps"} {
		done(t, "publish", "--snapshot", at(operator), "--dest", "file://"+at(operator+"-bucket"), "--inputs", "--api", "efp", "--history-window", "87600h")
		root, err := os.ReadFile(at(operator + "-bucket/_site"))
		if err != nil {
			t.Fatal(err)
		}
		roots = append(roots, root)
	}
	if !bytes.Equal(roots[0], roots[1]) {
		t.Errorf("got the roots %s and %s, want the same one", roots[0], roots[1])
	}
	status, stdout, said := ran("reproduce", "file://"+at("steps-bucket"), "--rpc", strings.Join(rpc, ";"))
	if status != command.Done || strings.Contains(stdout, "differs") || !strings.Contains(stdout, "ops             equal\n") {
		t.Errorf("made again from the chains: got status %d and %s", status, said)
	}
	inputs, err := snapshot.ReadInputs(afero.NewBasePathFs(afero.NewOsFs(), at("once")))
	if err != nil || len(inputs.Chains) != len(played.Chains) {
		t.Fatalf("got %+v and the error %v, want %d chains", inputs, err, len(played.Chains))
	}
	for _, c := range inputs.Chains {
		if c.Hash == "" || c.Events == 0 || c.Block == 0 {
			t.Errorf("got %+v, want a block with its hash, and events", c)
		}
	}
	asOf, err := snapshot.ReadAsOf(afero.NewBasePathFs(afero.NewOsFs(), at("once")))
	if err != nil {
		t.Fatal(err)
	}
	now, err := time.Parse(time.RFC3339, asOf)
	if err != nil {
		t.Fatal(err)
	}
	last, _ := played.Last(home.ID)
	between := home.First + (last.Number-home.First)/2
	for slices.ContainsFunc(played.Blocks, func(b history.Block) bool {
		return b.Chain == home.ID && b.Number == between && len(b.Logs) > 0
	}) {
		between++
	}
	for _, moment := range []string{now.Add(-20 * time.Second).Format(time.RFC3339), fmt.Sprintf("%d:%d", home.ID, between)} {
		for _, name := range append(others, "once") {
			done(t, "snapshot", "chain", "--state", at(name+"-state"), "--out", at(name+"-until"), "--until", moment)
		}
		compare("until "+moment, "-until")
	}
}

// TestDatabaseAndChain: a snapshot of an indexer's database has the rows of that of the chains, in the same order, and tells
// the same blocks. So it makes the same site, which can be made again from the chains.
func TestDatabaseAndChain(t *testing.T) {
	t.Setenv("FOLLOWPRESS_NO_SYNC", "1")
	server := databases.Start(t)
	played := &history.History{Chains: history.Production(), Blocks: slices.Collect(history.Usual(5, history.Network{Lists: 60, Ops: 900, Blocks: 3000}))}
	slices.SortStableFunc(played.Blocks, func(a, b history.Block) int { return int(a.Time - b.Time) })
	dir, dsn := t.TempDir(), server.Database(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	databases.FillV2(t, dsn, played, 1)
	var rpc []string
	for _, c := range played.Chains {
		rpc = append(rpc, fmt.Sprintf("%d=%s", c.ID, meanrpc.Start(t, c.ID, slices.Values(played.Blocks)).URL))
	}
	done(t, "snapshot", "chain", "--state", at("state"), "--out", at("chain"), "--rpc", strings.Join(rpc, ";"))
	done(t, "snapshot", "postgres", "--dsn", dsn, "--out", at("database"))
	byChain, byDatabase := files(t, at("chain")), files(t, at("database"))
	for _, table := range []string{"lists", "records", "accounts"} {
		if want := byChain[table+".ndjson"]; len(want) == 0 || !bytes.Equal(byDatabase[table+".ndjson"], want) {
			t.Errorf("%s: got %d bytes of the database, and %d of the chains, want the same ones", table, len(byDatabase[table+".ndjson"]), len(want))
		}
	}
	var roots []site.Root
	for _, name := range []string{"chain", "database"} {
		done(t, "publish", "--snapshot", at(name), "--dest", "file://"+at(name+"-bucket"), "--inputs")
		body, err := os.ReadFile(at(name + "-bucket/_site"))
		if err != nil {
			t.Fatal(err)
		}
		root, err := site.ParseRoot(body)
		if err != nil {
			t.Fatal(err)
		}
		for i := range root.Inputs.Chains {
			root.Inputs.Chains[i].Hash, root.Inputs.Chains[i].Events = "", 0 // the database does not know them
		}
		roots = append(roots, root)
		status, stdout, said := ran("reproduce", "file://"+at(name+"-bucket"), "--rpc", strings.Join(rpc, ";"))
		if status != command.Done || strings.Contains(stdout, "differs") || !strings.Contains(stdout, "\nequal ") {
			t.Errorf("%s: got status %d and %s", name, status, said)
		}
	}
	if !roots[0].Equal(&roots[1]) {
		t.Errorf("got the roots %+v and %+v, want equal roots except for hashes and events of blocks", roots[0], roots[1])
	}
	of := func(folder string) []site.ChainInput {
		t.Helper()
		in, err := snapshot.ReadInputs(afero.NewBasePathFs(afero.NewOsFs(), at(folder)))
		if err != nil {
			t.Fatal(err)
		}
		return in.Chains
	}
	want := of("chain")
	for i := range want {
		if want[i].Hash == "" {
			t.Errorf("chain %d: got no hash of the nodes", want[i].ChainID)
		}
		want[i].Hash, want[i].Events = "", 0 // the database does not know them
	}
	if got := of("database"); !slices.Equal(got, want) {
		t.Errorf("chains: got %+v, want %+v", got, want)
	}
}
