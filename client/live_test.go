package client_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"testing/fstest"
	"time"

	json "github.com/goccy/go-json"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/rounds"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/live"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
)

// startLive serves a live site, from another origin than control. Each POST /round?block= to
// control makes a round. From block 101 on, an account follows 0x…b0b.
func startLive(t *testing.T) (base, control string) {
	t.Helper()
	feed, made := make(rounds.Feed), make(chan live.RoundEnd, 100)
	config := site.Config{API: site.APIEFP, HistoryWindow: site.Window(site.DefaultHistoryWindow)}
	o := live.Options{Generator: generator.Options{Config: config}, Log: slog.New(slog.DiscardHandler)}
	o.Hooks.Round = func(end live.RoundEnd) { made <- end }
	l, err := live.New(feed, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	round := func(block uint64) {
		feed <- source.Round{Heads: []source.Head{{Chain: 8453, Block: block, Time: time.Now().UnixMilli(), Finalized: block - 10}}, Snapshot: graphAt(block)}
		if end := <-made; end.Err != nil {
			t.Errorf("the round of block %d: %v", block, end.Err)
		}
	}
	round(100)
	server := httptest.NewServer(l)
	controls := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		block, err := strconv.ParseUint(r.URL.Query().Get("block"), 10, 64)
		if err != nil {
			t.Error(err)
			return
		}
		round(block)
	}))
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		server.CloseClientConnections()
		server.Close()
		controls.Close()
	})
	return server.URL + "/", controls.URL + "/"
}

// graphAt returns the graph at a block: one list, which follows 0x…b0b from block 101 on.
func graphAt(block uint64) afero.Fs {
	const owner, followed = "0x0000000000000000000000000000000000000a11", "0x0000000000000000000000000000000000000b0b"
	records, ops := "", ""
	if block > 100 {
		ops = fmt.Sprintf(`{"token_id":"1","time":"2026-11-23T16:59:58.000Z","chain_id":8453,"block":101,"log_index":0,"op":"0x01010101%s"}`+"\n", followed[2:])
		records = fmt.Sprintf(`{"token_id":"1","version":1,"record_type":"address","data":%q,"tags":[]}`+"\n", followed)
	}
	files := fstest.MapFS{}
	for name, text := range map[string]string{
		"meta.json":       `{"format":1,"as_of":"2026-11-23T17:00:00Z"}`,
		"lists.ndjson":    fmt.Sprintf(`{"token_id":"1","owner":%q}`+"\n", owner),
		"accounts.ndjson": fmt.Sprintf(`{"address":%q,"primary_list":"1"}`+"\n", owner),
		"records.ndjson":  records,
		"ops.ndjson":      ops,
		"events.ndjson":   "", "badges.ndjson": "",
	} {
		files[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return afero.FromIOFS{FS: files}
}

// In Node.js, a call after a block waits for the block, and reports the age of the data.
func TestAfterInNode(t *testing.T) {
	servers.Wanted(t)
	base, control := startLive(t)
	dir := modules(t)
	checks, err := os.ReadFile("test/live.mjs")
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "live.mjs", checks)
	args, err := json.Marshal([]string{base, control})
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "run.mjs", []byte(`import { checkLive } from './live.mjs';
const failures = await checkLive(await import('./followpress.js'), ...`+string(args)+`);
console.log(failures.join('\n'));
process.exit(failures.length);`))
	if out, err := exec.Command("node", filepath.Join(dir, "run.mjs")).CombinedOutput(); err != nil {
		t.Errorf("node: %v\n%s", err, out)
	}
}
