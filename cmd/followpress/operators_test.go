package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/databases"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
	"github.com/followpress/followpress/internal/testenv/nodes"
	"github.com/followpress/followpress/internal/testenv/process"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/testenv/testkey"
	"github.com/followpress/followpress/internal/testenv/upstreams"
	"github.com/followpress/followpress/internal/twin/naive"
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
		rpc, all := startNodes(t, played)
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
		rpc := startAnvils(t, played)
		twoOperators(t, played, rpc, func(uint64, uint64) {})
	})
}

// startNodes starts a node in this process for each chain, with all blocks of the history. It returns values of --rpc,
// and the nodes by chain.
func startNodes(t *testing.T, played *history.History) (rpc []string, nodes map[uint64]*meanrpc.Node) {
	t.Helper()
	nodes = map[uint64]*meanrpc.Node{}
	for _, c := range played.Chains {
		nodes[c.ID] = meanrpc.Start(t, c.ID, slices.Values(played.Blocks))
		rpc = append(rpc, fmt.Sprintf("%d=%s", c.ID, nodes[c.ID].URL))
	}
	return rpc, nodes
}

// startAnvils starts a node per chain with all blocks of the history final, and returns them as --rpc takes them.
func startAnvils(t *testing.T, played *history.History) (rpc []string) {
	t.Helper()
	for _, c := range played.Chains {
		node := nodes.StartAnvil(t, played.Chains, c.ID, 1)
		node.Play(slices.Collect(played.Of(c.ID))...)
		node.Finalize()
		rpc = append(rpc, fmt.Sprintf("%d=%s", c.ID, node.URL))
	}
	return rpc
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
	rpc, _ := startNodes(t, played)
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

// No command prints a password in a URL, whether or not a server answers there.
func TestPasswordsInURLs(t *testing.T) {
	there := served(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		http.Error(w, r.URL.String()+password+r.Header.Get("Authorization"), http.StatusForbidden)
	}))
	key := testkey.New(t, "follow.example").Public
	for _, host := range []string{"127.0.0.1:1", strings.TrimPrefix(there, "http://")} {
		url := "http://user-name:pass-WORD@" + host
		for _, args := range [][]string{
			{"verify", "--dest", url, "--key", key, "--patience", "1ms", "--report", "-"}, {"reproduce", url}, {"reproduce", url + "?key=pass-WORD"},
			{"verify", "--dest", url}, {"verify", "--dest", url, "--exclude", "x", "--key", key},
			{"audit", url, "--rpc", "1=" + url}, {"audit", url + "#pass-WORD", "--rpc", "1=" + url},
			{"snapshot", "chain", "--rpc", "8453=" + url + ";10=" + url + ";1=" + url, "--state", t.TempDir(), "--out", filepath.Join(t.TempDir(), "s"), "--rpc-patience", "1ms"},
			{"publish", "--site", "x", "--dest", "s3://bucket", "--endpoint", url, "--patience", "1ms"},
			{"serve", "--site", "s3://bucket", "--endpoint", url},
		} {
			if host == "127.0.0.1:1" && args[0] != "verify" {
				continue // its patience is not a flag
			}
			status, _, all := ran(args...)
			if status == command.Done || strings.Contains(all, "pass-WORD") || strings.Contains(all, "dXNlci1uYW1lOnBhc3MtV09SRA") {
				t.Errorf("%s: got status %d and %s, want a failure that does not tell the password", strings.Join(args, " "), status, all)
			}
		}
	}
}

// Neither the answers of a server nor the objects in a bucket control the terminal.
func TestWhatOthersSayInATerminal(t *testing.T) {
	const evil = "\u009b31m\u202ekcab\u2066"
	s3 := served(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>Odd`+evil+`</Code><Message>no `+evil+`</Message></Error>`)
	}))
	cache := served(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "\x1b]0;title\x07"+evil)
	}))
	bucket := t.TempDir()
	done(t, "publish", "--snapshot", "../../fixtures/demo", "--dest", "file://"+bucket)
	if err := os.WriteFile(filepath.Join(bucket, "mine\x1b]0;title\x07"+evil), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "somebody")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "something")
	for _, args := range [][]string{
		{"verify", "--dest", "s3://bucket", "--endpoint", s3}, {"purge", "--purge", "http:" + cache}, {"verify", "--dest", "file://" + bucket},
	} {
		status, _, all := ran(args...)
		if status != command.Failed || !strings.Contains(all, "kcab") || strings.ContainsAny(all, "\x1b\x07\u009b\u202e\u2066") {
			t.Errorf("%s: got status %d and %q, want a failure that quotes the answer without control characters", strings.Join(args, " "), status, all)
		}
	}
}

// TestFromTheChainsToAnAnswer makes a snapshot from three nodes and a site from the snapshot,
// publishes it, and asks a fallback.
func TestFromTheChainsToAnAnswer(t *testing.T) {
	t.Run("nodes of this process, a folder", func(t *testing.T) {
		played := history.Random(1, history.Options{Chains: history.Production(), Transactions: 300})
		rpc, _ := startNodes(t, played)
		fromTheChainsToAnAnswer(t, played, rpc, "file://"+t.TempDir())
	})
	t.Run("anvil, MinIO", func(t *testing.T) {
		played := history.Random(2, history.Options{Chains: history.Production(), Transactions: 300})
		rpc := startAnvils(t, played)
		s3 := servers.Start(t, servers.MinIO)
		t.Setenv("AWS_ACCESS_KEY_ID", s3.AccessKey)
		t.Setenv("AWS_SECRET_ACCESS_KEY", s3.SecretKey)
		t.Setenv("FOLLOWPRESS_ENDPOINT", s3.Endpoint)
		fromTheChainsToAnAnswer(t, played, rpc, "s3://"+s3.Bucket(t))
	})
}

// done runs a command that must succeed.
func done(t *testing.T, args ...string) {
	t.Helper()
	var output bytes.Buffer
	if status := command.Run("followpress", about, &verbs{}, args, &output, &output); status != command.Done {
		t.Fatalf("followpress %s: got status %d: %s", strings.Join(args, " "), status, &output)
	}
}

func served(t *testing.T, handler http.Handler) (url string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	body, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// files returns the contents of the files of a folder.
func files(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	unpacker, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer unpacker.Close()
	found := map[string][]byte{}
	for _, e := range entries {
		body, err := os.ReadFile(filepath.Join(folder, e.Name()))
		name, packed := strings.CutSuffix(e.Name(), ".zst")
		if packed && err == nil {
			body, err = unpacker.DecodeAll(body, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		found[name] = body
	}
	return found
}

// failed runs a command that must fail, and returns its output.
func failed(t *testing.T, args ...string) string {
	t.Helper()
	var output bytes.Buffer
	if status := command.Run("followpress", about, &verbs{}, args, &output, &output); status == command.Done {
		t.Fatalf("followpress %s: got no error: %s", strings.Join(args, " "), &output)
	}
	return output.String()
}

func request(t *testing.T, url string) (status int, body []byte) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err = io.ReadAll(response.Body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, body
}

// timesOfAnswers matches the times of badge answers in meta.json.
var timesOfAnswers = regexp.MustCompile(`"from":"[^"]*","until":"[^"]*"`)

func fromTheChainsToAnAnswer(t *testing.T, played *history.History, rpc []string, bucket string) {
	dir := t.TempDir()
	t.Setenv("FOLLOWPRESS_NO_SYNC", "1")
	snapshot, reportFile, siteFile := filepath.Join(dir, "snapshot"), filepath.Join(dir, "report.json"), filepath.Join(dir, "site.tar")
	truth := played.Truth()
	ens := &upstreams.ENS{MaxBulk: 50, Profiles: map[string]string{}}
	poap := &upstreams.POAP{Key: "secret", Bulk: true, Events: map[string]string{"177709": upstreams.Event("177709")}}
	for i, l := range truth.Lists {
		owner := fmt.Sprintf("0x%x", l.Owner)
		ens.Set(owner, upstreams.Profile(owner, fmt.Sprintf("name%s.eth", owner[2:6]), int64(i)))
		if i%2 == 0 {
			poap.Give("177709", upstreams.Token{ID: strconv.Itoa(i), Owner: owner})
		}
	}
	t.Setenv("FOLLOWPRESS_BADGE_API_KEY", "secret")
	recommended := filepath.Join(dir, "recommended.ndjson")
	if err := os.WriteFile(recommended, fmt.Appendf(nil, `{"address":"0x%x"}`+"\n", truth.Lists[0].Owner), 0o644); err != nil {
		t.Fatal(err)
	}
	make := []string{"snapshot", "chain", "--state", filepath.Join(dir, "state"), "--rpc", strings.Join(rpc, ";"),
		"--profiles", served(t, ens), "--badges", served(t, poap), "--badge-events", "177709", "--table", "recommended=" + recommended,
		"--out", snapshot, "--report", reportFile}
	done(t, make...)

	var report struct {
		Replay struct{ Lists, Records int }
		Chain  struct{ Chains []struct{ Events int } }
	}
	read(t, reportFile, &report)
	records := 0
	for _, l := range truth.Lists {
		records += len(l.Records)
	}
	if report.Replay.Lists != len(truth.Lists) || report.Replay.Records != records || records == 0 {
		t.Errorf("snapshot: got %d lists and %d records, want %d and %d", report.Replay.Lists, report.Replay.Records, len(truth.Lists), records)
	}

	// The second run finds nothing new, and writes the same snapshot, except for the time at which
	// it asked for badges.
	first := files(t, snapshot)
	time.Sleep(time.Second) // times have seconds
	done(t, make...)
	read(t, reportFile, &report)
	for _, c := range report.Chain.Chains {
		if c.Events > 0 {
			t.Errorf("second run: got %d new events, want none", c.Events)
		}
	}
	for name, body := range files(t, snapshot) {
		if !bytes.Equal(timesOfAnswers.ReplaceAll(first[name], nil), timesOfAnswers.ReplaceAll(body, nil)) {
			t.Errorf("second run: %s differs from the first run's", name)
		}
	}

	done(t, "generate", "--api", "efp", "--snapshot", snapshot, "--out", siteFile)
	done(t, "publish", "--site", siteFile, "--dest", bucket)
	fallback := process.Self(t, nil, "serve", "--site", bucket, "--addr", "127.0.0.1:0")
	fallback.Args[0] = "followpress"
	url, ok := process.Start(t, fallback).Line(0)
	if !ok {
		t.Fatal("the fallback does not start")
	}
	unpacked := fstest.MapFS{}
	for name, body := range files(t, snapshot) {
		unpacked[name] = &fstest.MapFile{Data: body}
	}
	graph, err := naive.Load(unpacked, naive.Config{HistoryWindow: site.DefaultHistoryWindow})
	if err != nil {
		t.Fatal(err)
	}
	found, news := 0, 0
	for _, r := range naive.Requests(rand.New(rand.NewPCG(1, 1)), graph, 1500) {
		if r.Method != http.MethodGet || strings.Contains(r.Path, "//") {
			continue
		}
		status, _, want := graph.Answer(r.Method, r.Path, r.RawQuery, nil)
		got, body := request(t, url+r.URL())
		if got != status || status == http.StatusOK && !bytes.Equal(body, want) {
			t.Errorf("%s: got %d and %.300s, want %d and %.300s", r.URL(), got, body, status, want)
		}
		if status == http.StatusOK {
			found++
		}
		if bytes.Contains(want, []byte(`"total_follows":`)) && !bytes.Contains(want, []byte(`"total":0`)) {
			news++
		}
	}
	if found < 50 || news == 0 {
		t.Errorf("requests: got %d with the status 200, %d of them with operations, want 50 at least and some", found, news)
	}
}

// TestKilledRuns: a run with profiles and badges that is killed at any moment goes on where it was, and
// there is always a whole snapshot or none.
func TestKilledRuns(t *testing.T) {
	t.Setenv("FOLLOWPRESS_NO_SYNC", "1")
	dir := t.TempDir()
	played := history.Random(3, history.Options{Chains: history.Production(), Transactions: 300})
	rpc, _ := startNodes(t, played)
	ens := &upstreams.ENS{MaxBulk: 20, Profiles: map[string]string{}}
	ens.Fault = func(int, http.ResponseWriter, *http.Request) bool {
		time.Sleep(20 * time.Millisecond)
		return false
	}
	poap := &upstreams.POAP{Bulk: true, Events: map[string]string{"177709": upstreams.Event("177709")}}
	for i, l := range played.Truth().Lists {
		owner := fmt.Sprintf("0x%x", l.Owner)
		ens.Set(owner, upstreams.Profile(owner, fmt.Sprintf("name%s.eth", owner[2:6]), int64(i)))
		poap.Give("177709", upstreams.Token{ID: strconv.Itoa(i), Owner: owner})
	}
	ensURL, poapURL := served(t, ens), served(t, poap)
	args := func(name string) []string {
		return []string{"snapshot", "chain", "--state", filepath.Join(dir, name+"-state"), "--out", filepath.Join(dir, name), "--rpc", strings.Join(rpc, ";"),
			"--profiles", ensURL, "--badges", poapURL, "--badge-events", "177709"}
	}
	begun := time.Now()
	done(t, args("whole")...)
	untimed := func(name string) map[string][]byte { // when badges were asked about is another time in each run
		all := files(t, filepath.Join(dir, name))
		all["meta.json"] = regexp.MustCompile(`("badges":.*?),"from":"[^"]*","until":"[^"]*"`).ReplaceAll(all["meta.json"], []byte("$1"))
		return all
	}
	usual, want, asked := time.Since(begun), untimed("whole"), len(ens.Asked())

	random := rand.New(rand.NewPCG(20261122, 13))
	rounds := servers.Rounds(6, 50)
	for range rounds {
		command := process.Self(t, nil, args("killed")...)
		command.Args[0] = "followpress"
		run := process.Start(t, command)
		time.Sleep(time.Duration(random.Int64N(int64(usual))))
		run.Signal(syscall.SIGKILL)
		run.Wait()
		if _, err := os.Stat(filepath.Join(dir, "killed")); err == nil && !maps.EqualFunc(untimed("killed"), want, bytes.Equal) {
			t.Fatal("a killed run left another snapshot than a whole one")
		}
	}
	done(t, args("killed")...)
	if !maps.EqualFunc(untimed("killed"), want, bytes.Equal) {
		t.Error("after killed runs: got another snapshot than without")
	}
	if again := len(ens.Asked()) - 2*asked; again > rounds*2 {
		t.Errorf("profiles: got %d requests more than without kills, want two a kill at most", again)
	}
}
