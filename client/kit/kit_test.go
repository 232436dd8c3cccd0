// Package kit_test runs ethereum-identity-kit from npm, the main client of the whole API,
// unmodified: its functions and its React components, against sites of fixtures.ConformanceEFP.
package kit_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/internal/twin/naive"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

const (
	base     = "/api/v1"
	scenario = "../../bench/api/scenario.ndjson"
)

var update = flag.Bool("update", false, "write bench/api/scenario.ndjson again")

// subjects are the servers that the kit runs against. Each starts a server and returns the
// variables for world.mjs.
var subjects = map[string]func(*testing.T) []string{
	"reference": func(t *testing.T) []string { return []string{"KIT_API=" + reference(t)} },
	"fallback": func(t *testing.T) []string {
		handler, err := server.New(t.Context(), generate(t), server.Options{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		return []string{"KIT_API=" + serve(t, handler) + base}
	},
	// The only server serves files: the shim computes every answer.
	"shim": func(t *testing.T) []string { return []string{"KIT_SITE=" + serve(t, bucket(generate(t)))} },
}

func TestKit(t *testing.T) {
	wanted(t)
	for name, start := range subjects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := append(start(t), "KIT_REFERENCE="+reference(t), "KIT_NOW="+now)
			out, err := node(env, "--test", "--test-reporter=spec", "functions.test.mjs", "components.test.mjs")
			if err != nil {
				t.Errorf("the kit against %s: %v\n%s", name, err, out)
			}
		})
	}
}

// The kit's refresh buttons keep working when pressed repeatedly.
func TestRefreshButtons(t *testing.T) {
	wanted(t)
	const says = "what the source says"
	upstream := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := map[string]string{"/0x" + bob: "bob.eth"}[r.URL.Path]
		fmt.Fprintf(w, `{"name":%q,"records":{"description":%q},"chains":{},"fresh":1795300000000,"errors":{}}`, cmp.Or(name, "alice.eth"), says)
	}))
	folder := t.TempDir()
	if _, err := generator.ToPath(t.Context(), afero.FromIOFS{FS: snapshot(t)}, folder+"/site", generator.Options{Config: site.Config{API: site.APIEFP}}); err != nil {
		t.Fatal(err)
	}
	handler, err := server.New(t.Context(), storage.OpenLocal(folder+"/site"), server.Options{
		Log: slog.New(slog.DiscardHandler), Refresh: server.RefreshOptions{ProfileUpstream: upstream + "/{address}", Interval: time.Hour},
	})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := node([]string{"KIT_API=" + serve(t, handler) + base, "KIT_FRESH=" + says}, "--test", "--test-reporter=spec", "refresh.test.mjs"); err != nil {
		t.Errorf("the kit: %v\n%s", err, out)
	}
}

// TestScenario: the requests of the benchmark are those of the kit.
func TestScenario(t *testing.T) {
	wanted(t)
	got, err := node([]string{"KIT_API=" + reference(t)}, "scenario.mjs")
	if err != nil {
		t.Fatalf("the scenario: %v\n%s", err, got)
	}
	if *update {
		if err := os.WriteFile(scenario, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(scenario)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s: got %v and\n%s\nwant the requests of the kit: \n%s", scenario, err, want, got)
	}
	if requests := bytes.Count(got, []byte("\n")); requests != 57 {
		t.Errorf("requests of a connected profile page: got %d, want 57", requests)
	}
}

// wanted skips the test unless TEST_SERVERS is set, because the test needs installed packages.
func wanted(t *testing.T) {
	t.Helper()
	servers.Wanted(t)
	if _, err := os.Stat("node_modules/.package-lock.json"); err != nil {
		t.Fatalf("%v: `make test-tools` installs it", err)
	}
}

// now is the time of the kit's clock, shortly after the snapshot's.
const now = "2026-11-20T11:05:00Z"

// operations include the entries of bob.eth's bell, oldest first, with odd names and tags.
var operations = []struct {
	ago         time.Duration // before the snapshot's time
	list, about string
	opcode      byte
	tag         string
}{
	{31 * 24 * time.Hour, "3", bob, 1, ""}, // more than a month
	{50 * time.Hour, "15", bob, 2, ""},
	{26 * time.Hour, "14", bob, 3, "block"},
	{5 * time.Hour, "17", bob, 3, "<img src=x onerror=alert(1)>"},
	{4 * time.Hour, "5", bob, 1, ""}, // not a primary list
	{30 * time.Minute, "16", bob, 1, ""},
	{20 * time.Minute, "1", bob, 4, "top8"},
	{10 * time.Minute, "1", "0303030303030303030303030303030303030303", 1, ""},
	{10 * time.Minute, "8", bob, 1, ""},
}

const bob = "0202020202020202020202020202020202020202"

// snapshot returns the snapshot of fixtures.ConformanceEFP with operations.
func snapshot(t *testing.T) fs.FS {
	t.Helper()
	files, err := fs.Sub(fixtures.ConformanceEFP(), "snapshot")
	if err != nil {
		t.Fatal(err)
	}
	all := fstest.MapFS{}
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		body, err := fs.ReadFile(files, e.Name())
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = &fstest.MapFile{Data: body, Mode: 0o644}
	}
	asOf := time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC)
	var rows []byte
	for i, op := range operations {
		rows = fmt.Appendf(rows, `{"token_id":%q,"time":%q,"chain_id":8453,"block":%d,"log_index":0,"op":"0x01%02x0101%s%x"}`+"\n",
			op.list, asOf.Add(-op.ago).Format("2006-01-02T15:04:05.000Z07:00"), 100+i, op.opcode, op.about, op.tag)
	}
	all["ops.ndjson"] = &fstest.MapFile{Data: rows, Mode: 0o644}
	return all
}

const window = 999 * time.Hour

// reference starts the reference server for the snapshot, and returns the base URL of its API.
func reference(t *testing.T) string {
	t.Helper()
	graph, err := naive.Load(snapshot(t), naive.Config{HistoryWindow: window})
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, graph) + base
}

// generate renders the site of the snapshot.
func generate(t *testing.T) memsite.Site {
	t.Helper()
	config := site.Config{API: site.APIEFP, HistoryWindow: site.Window(window)}
	files, _, err := generator.ToMemory(t.Context(), afero.FromIOFS{FS: snapshot(t)}, generator.Options{Config: config, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := memsite.Read(files)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// bucket serves objects as public storage does.
func bucket(objects memsite.Site) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		object, ok := objects[site.Key(strings.TrimPrefix(r.URL.Path, "/"))]
		if r.Method != http.MethodGet || !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, object) // the client may have gone
	}
}

func serve(t *testing.T, handler http.Handler) (url string) {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL
}

// longLines matches minified lines of the kit, which Node.js prints with errors.
var longLines = regexp.MustCompile(`(?m)^(.{500}).*$`)

func node(env []string, args ...string) (out []byte, err error) {
	command := exec.Command("node", args...)
	command.Env = append(append(os.Environ(), "NODE_OPTIONS=--import=./esm.mjs"), env...)
	out, err = command.CombinedOutput()
	return longLines.ReplaceAll(out, []byte("$1…")), err
}
