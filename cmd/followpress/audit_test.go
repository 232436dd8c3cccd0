package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
	"github.com/followpress/followpress/internal/testenv/testkey"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
)

// TestAudit: audit accepts snapshots and sites that agree with the contracts, in folders and online.
// It finds the site of a node that lost a log, and an altered object, and its status says so.
func TestAudit(t *testing.T) {
	t.Setenv("FOLLOWPRESS_NO_SYNC", "1")
	played := history.Random(1, history.Options{Chains: history.Production(), Transactions: 200})
	nodes := map[uint64]*meanrpc.Node{}
	var rpc []string
	for _, c := range played.Chains {
		nodes[c.ID] = meanrpc.Start(t, c.ID, slices.Values(played.Blocks))
		rpc = append(rpc, fmt.Sprintf("%d=%s", c.ID, nodes[c.ID].URL))
	}
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
