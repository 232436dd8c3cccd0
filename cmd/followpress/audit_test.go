package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
	"github.com/followpress/followpress/internal/testenv/testkey"
	"github.com/followpress/followpress/internal/testenv/upstreams"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
)

// TestAudit: audit accepts snapshots and sites that agree with the contracts, in folders and online.
// It finds the site of a node that lost a log, and an altered object, and its status says so.
func TestAudit(t *testing.T) {
	t.Setenv("FOLLOWPRESS_NO_SYNC", "1")
	played := history.Random(1, history.Options{Chains: history.Production(), Transactions: 200})
	rpc, nodes := startNodes(t, played)
	t.Setenv("FOLLOWPRESS_RPC", strings.Join(rpc, ";"))
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	sites := func(name string, args ...string) {
		done(t, append([]string{"snapshot", "chain", "--state", at(name + "-state"), "--out", at(name)}, args...)...)
		done(t, "generate", "--snapshot", at(name), "--out", at(name+".tar"), "--api", "efp")
	}
	sites("snapshot")
	done(t, "generate", "--snapshot", at("snapshot"), "--out", at("site"))
	done(t, "publish", "--site", at("site"), "--dest", "file://"+at("bucket"))
	online := served(t, http.FileServer(http.Dir(at("bucket"))))
	for _, place := range []string{at("snapshot"), at("snapshot.tar"), at("site"), "file://" + at("bucket"), online} {
		done(t, "audit", place, "--sample=0")
		done(t, "audit", place, "--sample", "3", "--seed", "1", "--report", at("report.json"))
		var report struct {
			Sampled, Right int
			Bound          float64
			Seed           uint64
		}
		if read(t, at("report.json"), &report); report.Sampled != 3 || report.Right != 3 || report.Seed != 1 || report.Bound < 0.6 {
			t.Errorf("%s: got %+v", place, report)
		}
	}

	public := sign(t, at("bucket"))
	other := testkey.New(t, "other.example").Public
	done(t, "audit", online, "--sample", "5", "--key", public)
	if text := failed(t, "audit", online, "--key", other); !strings.Contains(text, "sign") {
		t.Errorf("another key: %s", text)
	}
	if text := failed(t, "audit", at("site"), "--key", public); !strings.Contains(text, "sign") {
		t.Errorf("no note: %s", text)
	}

	// The last operations of a chain are lost, and no contract is asked.
	last := meanrpc.LogID{}
	for b := range played.Of(8453) {
		for i, l := range b.Logs {
			if l.Topics[0] == history.TopicLocation {
				last = meanrpc.LogID{Block: b.Number, Index: uint64(i)}
			}
		}
	}
	nodes[8453].Set(meanrpc.Faults{NoState: true, Forget: func(id meanrpc.LogID) bool { return id.Block == last.Block && id.Index >= last.Index }})
	sites("lossy", "--unchecked")
	nodes[8453].Set(meanrpc.Faults{})
	for _, name := range []string{"lossy", "lossy.tar"} {
		text := failed(t, "audit", at(name), "--sample=0")
		for _, f := range findings {
			if f.command == "audit" {
				f.isSaidIn(t, text)
			}
		}
	}

	lists, err := filepath.Glob(at("site/api/v1/lists/*/records"))
	if err != nil || len(lists) == 0 {
		t.Fatalf("got no records: %v", err)
	}
	if err := os.WriteFile(lists[0], []byte(`{"records":[]} `), 0o600); err != nil {
		t.Fatal(err)
	}
	if text := failed(t, "audit", at("site"), "--sample=0"); !strings.Contains(text, filepath.Base(filepath.Dir(lists[0]))+", object: ") {
		t.Errorf("an altered object: %s", text)
	}
}

// sign signs the site in a folder, and returns the public key.
func sign(t *testing.T, folder string) (public string) {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(folder, string(site.RootKey)))
	if err != nil {
		t.Fatal(err)
	}
	key := testkey.New(t, "site.example")
	signed := []byte(key.Note(t, memsite.Site{site.RootKey: string(body)}, 1))
	if err := os.WriteFile(filepath.Join(folder, string(note.Key)), signed, 0o644); err != nil {
		t.Fatal(err)
	}
	return key.Public
}

// TestUntil: the snapshot of an earlier time equals, byte for byte, that of chains that end then.
// It needs no node and no service. Two such snapshots show the changes in between.
func TestUntil(t *testing.T) {
	t.Setenv("FOLLOWPRESS_NO_SYNC", "1")
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	played := history.Random(5, history.Options{Chains: history.Production(), Transactions: 300})
	middle := played.Blocks[len(played.Blocks)/2].Time
	ended := *played
	ended.Blocks = slices.DeleteFunc(slices.Clone(played.Blocks), func(b history.Block) bool { return b.Time > middle })
	rpc := func(h *history.History) string {
		urls, nodes := startNodes(t, h)
		for _, c := range h.Chains {
			if _, ok := h.Last(c.ID); !ok {
				nodes[c.ID].SetHead(c.First, c.First, c.First)
			}
		}
		return strings.Join(urls, ";")
	}
	ens := &upstreams.ENS{MaxBulk: 50, Profiles: map[string]string{}}
	for i, l := range played.Truth().Lists {
		owner := fmt.Sprintf("0x%x", l.Owner)
		ens.Set(owner, upstreams.Profile(owner, fmt.Sprintf("name%s.eth", owner[2:6]), int64(i)))
	}
	services := []string{"--profiles", served(t, ens), "--table", "recommended=" + at("recommended.ndjson")}
	if err := os.WriteFile(at("recommended.ndjson"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	chain := func(out string, flags ...string) []string {
		return slices.Concat([]string{"snapshot", "chain", "--out", at(out)}, flags)
	}
	done(t, chain("new", slices.Concat([]string{"--state", at("state"), "--rpc", rpc(played)}, services)...)...)
	done(t, chain("ended", "--state", at("other"), "--rpc", rpc(&ended))...)

	asked := len(ens.Asked())
	until := time.Unix(middle, 0).UTC().Format(time.RFC3339)
	// Nodes and services that would fail: they are not asked.
	t.Setenv("FOLLOWPRESS_RPC", "8453=http://127.0.0.1:1;10=http://127.0.0.1:1;1=http://127.0.0.1:1")
	ens.Fault = func(int, http.ResponseWriter, *http.Request) bool { t.Error("a service is asked"); return false }
	done(t, chain("old", slices.Concat([]string{"--state", at("state"), "--until", until}, services)...)...)
	got, want := files(t, at("old")), files(t, at("ended"))
	for _, table := range []string{"lists", "records", "ops"} {
		if name := table + ".ndjson"; !bytes.Equal(got[name], want[name]) || len(want[name]) == 0 {
			t.Errorf("%s: got other rows than those of chains that end there, or none", table)
		}
	}
	if !bytes.Contains(got["meta.json"], []byte(`"as_of":"`+until+`"`)) {
		t.Errorf("meta.json: got %s, want as of %s", got["meta.json"], until)
	}
	if !bytes.Contains(got["accounts.ndjson"], []byte(".eth")) || len(ens.Asked()) != asked {
		t.Error("profiles: got none, or they were asked for")
	}

	// The snapshot of a block lacks all later blocks. earliest is the last block of the chain with
	// the oldest head.
	var earliest history.Block
	for _, c := range played.Chains {
		if last, ok := played.Last(c.ID); ok && (earliest.Time == 0 || last.Time < earliest.Time) {
			earliest = last
		}
	}
	done(t, chain("block", "--state", at("state"), "--until", fmt.Sprintf("%d:%d", earliest.Chain, earliest.Number-1))...)
	ops := files(t, at("block"))["ops.ndjson"]
	if bytes.Contains(ops, fmt.Appendf(nil, `"chain_id":%d,"block":%d,`, earliest.Chain, earliest.Number)) || !bytes.Contains(ops, fmt.Appendf(nil, `"chain_id":%d,`, earliest.Chain)) {
		t.Error("until a block: got operations of a later one, or none")
	}

	report := at("report.json")
	done(t, "report", "--from", at("old"), "--to", at("new"), "--out", report)
	var changes struct {
		Lists struct{ New, Gone int } `json:"lists"`
	}
	read(t, report, &changes)
	gained := bytes.Count(files(t, at("new"))["lists.ndjson"], []byte("\n")) - bytes.Count(got["lists.ndjson"], []byte("\n"))
	if gained == 0 || changes.Lists.New-changes.Lists.Gone != gained {
		t.Errorf("the report of two snapshots: got %+v, want %d lists more", changes, gained)
	}
	done(t, "generate", "--snapshot", at("new"), "--out", at("site"))
	if text := failed(t, "report", "--from", at("old"), "--to", at("site"), "--out", report); !strings.Contains(text, "generate a site from the snapshot") {
		t.Errorf("a snapshot and a site: got %s", text)
	}

	for flags, want := range map[string]string{
		"--until 2026-13-01":                        "neither a time",
		"--until 2100-01-01":                        "only: read more without --until",
		"--until 8453:99999999999":                  "only: read more without --until",
		"--until 8453:1":                            "knows no time up to block 1",
		"--until 5:1":                               "the deployment has no chain 5",
		"--until 2024-01-01 --explain 1":            "excludes --explain",
		"--until 2024-01-01 --reread 1":             "excludes --reread",
		"--until 2024-01-01 --profiles-from " + dir: "excludes --profiles-from",
	} {
		if text := failed(t, chain("no", append([]string{"--state", at("state")}, strings.Fields(flags)...)...)...); !strings.Contains(text, want) {
			t.Errorf("%s: got %s, want %q", flags, text, want)
		}
	}
	if text := failed(t, chain("no", "--state", at("nowhere"), "--until", until)...); !strings.Contains(text, "is empty") {
		t.Errorf("no state: got %s", text)
	}
}
