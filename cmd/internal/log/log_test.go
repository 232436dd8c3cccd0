package log

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
	"github.com/followpress/followpress/internal/testenv/tempdir"
	"github.com/followpress/followpress/site"
	rows "github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/chain"
	"github.com/followpress/followpress/source/chain/provider"
	profiles "github.com/followpress/followpress/source/profile"
)

func TestMain(m *testing.M) {
	tempdir.InMemory()
	m.Run()
}

var update = flag.Bool("update", false, "write the golden files")

func account(n byte) history.Address { return history.Address(bytes.Repeat([]byte{n}, 20)) }

// hostile is a name and a tag that would clear a terminal, and turn the text round.
const hostile = "\x1b[2Jred\u202eteR\u009b1m"

// story is a history with all that log tells: who followed whom, and why it is no longer so.
func story() *history.History {
	h := &history.History{Chains: history.Production()}
	base, number := h.Chains[0], uint64(20_190_000)
	var logs []history.Log
	end := func() {
		number++
		h.Blocks = append(h.Blocks, history.Block{Chain: base.ID, Number: number, Time: 1_727_000_000 + int64(number%1000)*3600, Logs: logs})
		logs = nil
	}
	list := func(id uint64, owner history.Address) {
		token, slot := history.Number(id), history.Number(0xa00+id)
		logs = append(logs,
			history.Transfer(*base.Registry, history.Address{}, owner, token),
			history.Location(*base.Registry, token, history.LocationBytes(history.Number(base.ID), base.Records[0], slot)),
			history.AccountMetadata(*base.Accounts, owner, "primary-list", token[:]),
			history.ListMetadata(base.Records[0], slot, "user", owner[:]))
		end()
	}
	op := func(slot uint64, code byte, of history.Address, tag string) {
		logs = append(logs, history.Op(base.Records[0], history.Number(slot), slices.Concat([]byte{1, code, 1, 1}, of[:], []byte(tag))))
	}
	alice, bob, carol, dave := account(0xaa), account(0xbb), account(0xcc), account(0xdd)
	list(1, alice)
	list(2, bob)
	list(3, carol)
	op(0xa01, 1, bob, "")
	op(0xa01, 3, bob, "top8")
	op(0xa01, 1, carol, "")
	end()
	op(0xa02, 1, alice, "")
	op(0xa02, 3, alice, hostile)
	op(0xa03, 1, alice, "")
	op(0xb99, 1, alice, "") // of no list
	end()
	op(0xa01, 2, carol, "")
	op(0xa01, 2, carol, "")
	op(0xa01, 4, bob, "top8")
	op(0xa01, 3, bob, "")
	logs = append(logs, history.ListMetadata(base.Records[0], history.Number(0xa01), "manager", alice[:]))
	end()
	token := history.Number(2)
	logs = append(logs, history.Location(*base.Registry, token, history.LocationBytes(history.Number(base.ID), base.Records[0], history.Number(0xb02))))
	op(0xb02, 1, carol, "")
	end()
	list(4, carol) // carol's primary list is another one, by which she follows nobody
	logs = append(logs, history.Transfer(*base.Registry, alice, dave, history.Number(1)))
	end()
	for _, c := range h.Chains {
		h.Blocks = append(h.Blocks, history.Block{Chain: c.ID, Number: max(number, c.First) + 100, Time: 1_727_100_000})
	}
	return h
}

// deploymentOf is where the contracts of a history are.
func deploymentOf(h *history.History) *source.Deployment {
	d := &source.Deployment{}
	start := func(c history.Chain, a *history.Address) *source.Start {
		if a == nil {
			return nil
		}
		return &source.Start{Address: site.Address(*a), FirstBlock: c.First}
	}
	for _, c := range h.Chains {
		chain := source.Chain{ID: c.ID, Name: fmt.Sprint("chain ", c.ID), Registry: start(c, c.Registry), Accounts: start(c, c.Accounts)}
		for _, r := range c.Records {
			chain.Records = append(chain.Records, *start(c, &r))
		}
		d.Chains = append(d.Chains, chain)
	}
	return d
}

// stateOf is the folder of a state with a history, and with profiles.
func stateOf(t *testing.T, h *history.History) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	o := chain.Options{URLs: map[uint64][]string{}, NoSync: true, Progress: noProgress{}, Provider: provider.Options{Finality: provider.Latest}}
	for _, c := range h.Chains {
		o.URLs[c.ID] = []string{meanrpc.Start(t, c.ID, slices.Values(h.Blocks)).URL}
	}
	state, err := chain.Open(dir, deploymentOf(h))
	if err != nil {
		t.Fatal(err)
	}
	_, err = state.Sync(t.Context(), o)
	if err = errors.Join(err, state.Close()); err != nil {
		t.Fatal(err)
	}
	_, err = profiles.Import(dir, func(yield func(rows.Account, error) bool) {
		for _, p := range []struct {
			of   byte
			name string
		}{{0xaa, "alice.eth"}, {0xbb, "bob.eth"}, {0xcc, hostile}} {
			if !yield(rows.Account{Address: site.Address(account(p.of)), ENS: &site.Profile{Name: p.name, Fresh: 1}}, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

type noProgress struct{}

func (noProgress) Stage(string, int64) {}
func (noProgress) Add(int64)           {}
func (noProgress) End()                {}

// run runs the command.
func run(args ...string) (status int, stdout, stderr string) {
	var out, messages bytes.Buffer
	status = command.Run("log", "", &Command{}, args, &out, &messages)
	return status, out.String(), messages.String()
}

// golden compares with a file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	file = filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
	}
	for _, r := range got {
		if r != '\n' && (r < ' ' || 0x7f <= r && r < 0xa0 || r == '\u202e') {
			t.Errorf("%s: got the character %U, which steers a terminal", file, r)
		}
	}
}

func TestState(t *testing.T) {
	state := stateOf(t, story())
	for _, test := range []struct{ name, args string }{
		{"user", "--user alice.eth"},
		{"user-all", "--user ALICE.eth --all"},
		{"user-json", "--user 0x" + strings.Repeat("bB", 20) + " --json"},
		{"list", "--list 1 --all"},
		{"list-user", "--list 1 --user " + site.Address(account(0xcc)).String()},
		{"since", "--list 2 --since 2024-09-22T16:00:00Z"},
		{"duration", "--list 2 --since 21h"},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, out, stderr := run(append(strings.Fields(test.args), state)...)
			if status != command.Done || stderr != "" {
				t.Fatalf("got status %d: %s", status, stderr)
			}
			golden(t, "state-"+test.name+".txt", out)
		})
	}
}
