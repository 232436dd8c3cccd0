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

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
	"github.com/followpress/followpress/internal/testenv/nodes"
	"github.com/followpress/followpress/internal/testenv/process"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/testenv/upstreams"
	"github.com/followpress/followpress/internal/twin/naive"
	"github.com/followpress/followpress/site"
)

// TestFromTheChainsToAnAnswer makes a snapshot from three nodes and a site from the snapshot,
// publishes it, and asks a fallback.
func TestFromTheChainsToAnAnswer(t *testing.T) {
	t.Run("nodes of this process, a folder", func(t *testing.T) {
		played := history.Random(1, history.Options{Chains: history.Production(), Transactions: 300})
		var rpc []string
		for _, c := range played.Chains {
			node := meanrpc.Start(t, c.ID, slices.Values(played.Blocks))
			rpc = append(rpc, fmt.Sprintf("%d=%s", c.ID, node.URL))
		}
		fromTheChainsToAnAnswer(t, played, rpc, "file://"+t.TempDir())
	})
	t.Run("anvil, MinIO", func(t *testing.T) {
		played := history.Random(2, history.Options{Chains: history.Production(), Transactions: 300})
		var rpc []string
		for _, c := range played.Chains {
			node := nodes.StartAnvil(t, played.Chains, c.ID, 1)
			node.Play(slices.Collect(played.Of(c.ID))...)
			node.Finalize()
			rpc = append(rpc, fmt.Sprintf("%d=%s", c.ID, node.URL))
		}
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
	var rpc []string
	for _, c := range played.Chains {
		rpc = append(rpc, fmt.Sprintf("%d=%s", c.ID, meanrpc.Start(t, c.ID, slices.Values(played.Blocks)).URL))
	}
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
