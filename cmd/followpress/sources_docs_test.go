package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
)

// example returns the history that docs/sources.md shows: a list is minted, and its account follows others.
func example() *history.History {
	h := &history.History{Chains: history.Production()}
	base := h.Chains[0]
	account := func(n byte) history.Address { return history.Address(bytes.Repeat([]byte{n}, 20)) }
	token, slot := history.Number(0), history.Number(0xabc)
	add := func(chain uint64, number uint64, logs ...history.Log) {
		h.Blocks = append(h.Blocks, history.Block{Chain: chain, Number: number, Time: 1_727_000_000 + int64(number%1000)*2, Logs: logs})
	}
	op := func(code byte, of history.Address, tag string) history.Log {
		return history.Op(base.Records[0], slot, slices.Concat([]byte{1, code, 1, 1}, of[:], []byte(tag)))
	}
	owner := account(0x11)
	add(base.ID, 20190000,
		history.Transfer(*base.Registry, history.Address{}, owner, token),
		history.Location(*base.Registry, token, history.LocationBytes(history.Number(base.ID), base.Records[0], slot)),
		history.AccountMetadata(*base.Accounts, owner, "primary-list", token[:]),
		history.ListMetadata(base.Records[0], slot, "user", owner[:]))
	add(base.ID, 20190100, op(1, account(0x22), ""), op(1, account(0x33), ""), op(3, account(0x33), "top8"))
	add(base.ID, 20190200, op(1, account(0x22), ""), op(3, account(0x22), ""), op(2, account(0x22), ""))
	for _, c := range h.Chains[1:] {
		add(c.ID, c.First+100)
	}
	return h
}

var sourceSample = regexp.MustCompile("(?s)```console\n\\$ followpress (snapshot chain [^\n]*)\n(.*?)```")

// TestSourcesSampleOutput runs the commands of docs/sources.md whose output it shows.
func TestSourcesSampleOutput(t *testing.T) {
	samples := sourceSample.FindAllStringSubmatch(documents(t)[filepath.Join("docs", "sources.md")], -1)
	if len(samples) != 2 {
		t.Errorf("docs/sources.md: got %d examples with output, want 2", len(samples))
	}
	t.Chdir(t.TempDir())
	t.Setenv("FOLLOWPRESS_NO_SYNC", "1")
	played := example()
	var rpc, hosts []string
	for i, c := range played.Chains {
		node := meanrpc.Start(t, c.ID, slices.Values(played.Blocks))
		rpc = append(rpc, fmt.Sprintf("%d=%s", c.ID, node.URL))
		hosts = append(hosts, strings.TrimPrefix(node.URL, "http://"), []string{"base.example", "op.example", "eth.example"}[i])
	}
	t.Setenv("FOLLOWPRESS_RPC", strings.Join(rpc, ";"))
	for _, s := range samples {
		var out bytes.Buffer
		if status := command.Run("followpress", about, &verbs{}, strings.Fields(s[1]), &out, &out); status != command.Done {
			t.Fatalf("%s: got status %d, %s", s[1], status, &out)
		}
		got := strings.NewReplacer(hosts...).Replace(progressLine.ReplaceAllString(out.String(), ""))
		if got, want := timing.ReplaceAllString(got, "TIME"), timing.ReplaceAllString(s[2], "TIME"); got != want {
			t.Errorf("%s: got\n%s\nwant as in docs/sources.md\n%s", s[1], got, want)
		}
	}
}
