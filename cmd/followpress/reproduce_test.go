package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
	"github.com/followpress/followpress/site/note"
)

// ran runs a command, and returns its status, its standard output, and all its output.
func ran(args ...string) (status int, stdout, all string) {
	var out, messages bytes.Buffer
	status = command.Run("followpress", about, &verbs{}, args, &out, &messages)
	return status, out.String(), out.String() + messages.String()
}

// A playedSite is a site of the chains that nodes of this process have.
type playedSite struct {
	dir   string
	nodes map[uint64]*meanrpc.Node
	chain history.Chain // one with records
}

func (p *playedSite) at(name string) string { return filepath.Join(p.dir, name) }

// play starts nodes with a random history, and makes a snapshot from them.
func play(t *testing.T, seed uint64) (*playedSite, *history.History) {
	t.Helper()
	t.Setenv("FOLLOWPRESS_NO_SYNC", "1")
	played := history.Random(seed, history.Options{Chains: history.Production(), Transactions: 200})
	p := &playedSite{dir: t.TempDir(), nodes: map[uint64]*meanrpc.Node{}, chain: played.Chains[0]}
	var rpc []string
	for _, c := range played.Chains {
		p.nodes[c.ID] = meanrpc.Start(t, c.ID, slices.Values(played.Blocks))
		rpc = append(rpc, fmt.Sprintf("%d=%s", c.ID, p.nodes[c.ID].URL))
	}
	t.Setenv("RPC_OF_TEST", strings.Join(rpc, ";"))
	done(t, "snapshot", "chain", "--rpc", p.rpc(), "--state", p.at("state"), "--out", p.at("snapshot"))
	return p, played
}

func (*playedSite) rpc() string { return os.Getenv("RPC_OF_TEST") }

// publish publishes a snapshot as a bucket, and returns its URL.
func (p *playedSite) publish(t *testing.T, snapshot, bucket string, flags ...string) string {
	t.Helper()
	to := "file://" + p.at(bucket)
	done(t, append([]string{"publish", "--snapshot", p.at(snapshot), "--dest", to, "--inputs", "--max-loss", "100%"}, flags...)...)
	return to
}

// TestReproduceFromTheChains: reproduce --rpc makes the tables of the chains up to the blocks of
// the root, and finds them equal to those of the site. The earlier state and the current blocks of
// the nodes do not matter.
func TestReproduceFromTheChains(t *testing.T) {
	p, played := play(t, 21)
	for _, c := range played.Chains {
		last, _ := played.Last(c.ID)
		middle := c.First + (last.Number-c.First)/2
		p.nodes[c.ID].SetHead(middle, middle, middle)
	}
	done(t, "snapshot", "chain", "--rpc", p.rpc(), "--state", p.at("half-state"), "--out", p.at("half"))
	for _, c := range played.Chains {
		last, _ := played.Last(c.ID)
		p.nodes[c.ID].SetHead(last.Number+5, last.Number+2, last.Number+2)
	}
	half := p.publish(t, "half", "half-bucket", "--api", "efp", "--history-window", "50000h")
	all := p.publish(t, "snapshot", "bucket")
	for _, place := range []string{half, all, half} { // one state goes forwards and back
		status, stdout, said := ran("reproduce", place, "--rpc", p.rpc(), "--state", p.at("kept"))
		lines := strings.Split(stdout, "\n")
		if status != command.Done || !strings.HasPrefix(lines[len(lines)-2], "equal ") || strings.Contains(stdout, "differs") {
			t.Errorf("%s: got status %d and %s", place, status, said)
		}
		for _, table := range []string{"lists", "records", "accounts"} {
			if !strings.Contains(stdout, fmt.Sprintf("%-15s equal\n", table)) {
				t.Errorf("%s: got %s, want that %s are equal", place, stdout, table)
			}
		}
		if strings.Contains(stdout, "ops") != (place == half) {
			t.Errorf("%s: got %s, want ops if the site has operations", place, stdout)
		}
	}
	done(t, "snapshot", "chain", "--state", p.at("state"), "--out", p.at("past"), "--until", fmt.Sprintf("%d:%d", p.chain.ID, p.chain.First+10))
	past := p.publish(t, "past", "past-bucket")
	if status, stdout, said := ran("reproduce", past, "--rpc", p.rpc()); status != command.Done || !strings.Contains(stdout, "does not record the block's hash") {
		t.Errorf("of an earlier moment: got status %d and %s", status, said)
	}
}

// TestForgedTables: the chains expose a signed site that agrees with its own forged tables, and the
// output names the difference. Profiles are not on a chain.
func TestForgedTables(t *testing.T) {
	p, _ := play(t, 22)
	private, public, err := note.NewKey("site.example")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.at("key"), []byte(private+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	edit := func(name string, change func(lines []string) []string) func(map[string][]byte) {
		return func(of map[string][]byte) {
			lines := strings.SplitAfter(strings.TrimSuffix(string(of[name]), "\n"), "\n")
			lines[len(lines)-1] += "\n"
			of[name] = []byte(strings.Join(change(lines), ""))
		}
	}
	meta := func(change func(map[string]any)) func(map[string][]byte) {
		return func(of map[string][]byte) {
			var members map[string]any
			decoder := json.NewDecoder(bytes.NewReader(of["meta.json"]))
			decoder.UseNumber()
			if err := decoder.Decode(&members); err != nil {
				t.Fatal(err)
			}
			change(members)
			if of["meta.json"], err = json.Marshal(members); err != nil {
				t.Fatal(err)
			}
		}
	}
	firstChain := func(m map[string]any) map[string]any { return m["chains"].([]any)[0].(map[string]any) }
	lists := strings.SplitAfter(string(files(t, p.at("snapshot"))["lists.ndjson"]), "\n")
	var list struct {
		Token string `json:"token_id"`
	}
	if err := json.Unmarshal([]byte(lists[0]), &list); err != nil {
		t.Fatal(err)
	}
	const someone = "0x00000000000000000000000000000000000000aa"
	more := fmt.Sprintf(`{"token_id":%q,"version":1,"record_type":"address","data":%q,"added":"2026-01-01T00:00:00Z"}`, list.Token, someone) + "\n"
	profile := `{"address":"` + someone + `","ens":{"name":"someone.eth","avatar":"","records":{},"fresh":1}}` + "\n"
	named := `{"address":"` + someone + `","primary_list":"1"}` + "\n"
	for name, tc := range map[string]struct {
		change func(map[string][]byte)
		flags  []string
		want   []string
		right  bool
	}{
		"nothing": {func(map[string][]byte) {}, nil, []string{"records         equal\n", "accounts        equal\n"}, true},
		"a profile more": {
			edit("accounts.ndjson", func(l []string) []string { return slices.Insert(l, 0, profile) }), nil,
			[]string{"lists           equal\n", "accounts        equal in ", "profiles come from services"}, true,
		},
		"a record more": {
			edit("records.ndjson", func(l []string) []string { return slices.Insert(l, 1, more) }), nil,
			[]string{"lists           equal\n", "records         differs: digest", "1 rows only in the site, 0 only on the chains\n", "  site:   {\"token_id\":\"" + list.Token + "\"", "accounts        equal\n"}, false,
		},
		"a record less": {
			edit("records.ndjson", func(l []string) []string { return slices.Delete(l, 5, 6) }), nil,
			[]string{"0 rows only in the site, 1 only on the chains\n", "  chains: {\"token_id\":"}, false,
		},
		"four lists": {
			edit("lists.ndjson", func(l []string) []string { return l[4:] }), nil,
			[]string{"0 rows only in the site, 4 only on the chains\n", "  chains: and 1 more\n"}, false,
		},
		"another order": {
			edit("records.ndjson", func(l []string) []string { slices.Reverse(l); return l }), nil,
			[]string{"records         differs: the same rows, in another order"}, false,
		},
		"a primary list more": {
			edit("accounts.ndjson", func(l []string) []string { return slices.Insert(l, 0, named) }), nil,
			[]string{"accounts        differs: 1 rows only in the site", "account " + someone + " has the primary list 1"}, false,
		},
		"accounts in another order": {
			edit("accounts.ndjson", func(l []string) []string { slices.Reverse(l); return l }), nil, []string{"accounts        equal in "}, true,
		},
		"an operation less": {
			edit("ops.ndjson", func(l []string) []string { return l[1:] }), []string{"--api=efp", "--history-window=50000h"},
			[]string{"ops             differs: digest", "0 rows only in the site, 1 only on the chains\n"}, false,
		},
		"operations counted": {
			meta(func(m map[string]any) { m["list_ops"] = 7 }), []string{"--api=efp"},
			[]string{"operations      differs: ", "7 in the root\n"}, false,
		},
		"events": {meta(func(m map[string]any) { firstChain(m)["events"] = 7 }), nil, []string{"differs: the root has 7 events"}, false},
		"another hash": {
			meta(func(m map[string]any) { firstChain(m)["hash"] = "0x" + strings.Repeat("0a", 32) }), nil,
			[]string{"want 0x0a0a", "the chain was reorganized, or is another one"}, false,
		},
		"a chain less": {
			meta(func(m map[string]any) { m["chains"] = m["chains"].([]any)[1:] }), nil,
			[]string{"name the site's deployment"}, false,
		},
		"no chains": {meta(func(m map[string]any) { delete(m, "chains") }), nil, []string{"records no blocks of the chains"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			body, forged := files(t, p.at("snapshot")), t.TempDir()
			tc.change(body)
			for file, text := range body {
				if err := os.WriteFile(filepath.Join(forged, file), text, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			bucket := "file://" + t.TempDir()
			done(t, append([]string{"publish", "--snapshot", forged, "--dest", bucket, "--inputs", "--sign", p.at("key")}, tc.flags...)...)
			if status, stdout, said := ran("reproduce", bucket, "--key", public); status != command.Done || !strings.HasPrefix(stdout, "equal ") {
				t.Fatalf("without the chains: got status %d and %s, want that nothing is found", status, said)
			}
			status, _, said := ran("reproduce", bucket, "--key", public, "--rpc", p.rpc())
			if (status == command.Done) != tc.right || !tc.right && status != command.Failed {
				t.Errorf("got status %d and %s", status, said)
			}
			for _, want := range tc.want {
				if !strings.Contains(said, want) {
					t.Errorf("got %s, want %q", said, want)
				}
			}
		})
	}
}
