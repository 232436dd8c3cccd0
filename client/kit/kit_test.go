// Package kit_test runs the client that the whole API is for, ethereum-identity-kit from npm, as it is: its functions
// and its React components against sites of fixtures.ConformanceEFP.
package kit_test

import (
	"bytes"
	"flag"
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

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/internal/twin/naive"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
)

const (
	base     = "/api/v1"
	scenario = "../../bench/api/scenario.ndjson"
)

var update = flag.Bool("update", false, "write bench/api/scenario.ndjson again")

// subjects are what answers the kit: each starts it and returns the variables that world.mjs reads.
var subjects = map[string]func(*testing.T) []string{
	"reference": func(t *testing.T) []string { return []string{"KIT_API=" + reference(t)} },
	"fallback": func(t *testing.T) []string {
		handler, err := server.New(t.Context(), generate(t), server.Options{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		return []string{"KIT_API=" + serve(t, handler) + base}
	},
	// No server but that of the files: the shim makes every answer.
	"shim": func(t *testing.T) []string { return []string{"KIT_SITE=" + serve(t, bucket(generate(t)))} },
}

func TestKit(t *testing.T) {
	wanted(t)
	for name, start := range subjects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := append(start(t), "KIT_REFERENCE="+reference(t))
			out, err := node(env, "--test", "--test-reporter=spec", "functions.test.mjs", "components.test.mjs")
			if err != nil {
				t.Errorf("the kit against %s: %v\n%s", name, err, out)
			}
		})
	}
}

// TestScenario: the benchmark asks what the kit asks.
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
		t.Errorf("%s: got %v and\n%s\nwant what the kit asks: \n%s", scenario, err, want, got)
	}
	if requests := bytes.Count(got, []byte("\n")); requests != 57 {
		t.Errorf("requests of a connected profile page: got %d, want 57", requests)
	}
}

// wanted skips the test unless TEST_SERVERS is set, since it needs what is installed.
func wanted(t *testing.T) {
	t.Helper()
	servers.Wanted(t)
	if _, err := os.Stat("node_modules/.package-lock.json"); err != nil {
		t.Fatalf("%v: `make test` installs it", err)
	}
}

// reference starts what is known to be right about the snapshot, and returns the base URL of its API.
func reference(t *testing.T) string {
	t.Helper()
	snapshot, err := fs.Sub(fixtures.ConformanceEFP(), "snapshot")
	if err != nil {
		t.Fatal(err)
	}
	graph, err := naive.Load(snapshot, naive.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, graph) + base
}

// generate renders the site of the snapshot.
func generate(t *testing.T) memsite.Site {
	t.Helper()
	snapshot := afero.NewBasePathFs(afero.FromIOFS{FS: fixtures.ConformanceEFP()}, "snapshot")
	files, _, err := generator.ToMemory(t.Context(), snapshot, generator.Options{Config: site.Config{API: site.APIEFP}, NoSync: true})
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
		_, _ = io.WriteString(w, object) // a client that is gone needs no answer
	}
}

func serve(t *testing.T, handler http.Handler) (url string) {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL
}

// longLines are those of the kit, which is minified: Node.js shows the line of an error.
var longLines = regexp.MustCompile(`(?m)^(.{500}).*$`)

func node(env []string, args ...string) (out []byte, err error) {
	command := exec.Command("node", args...)
	command.Env = append(append(os.Environ(), "NODE_OPTIONS=--import=./esm.mjs"), env...)
	out, err = command.CombinedOutput()
	return longLines.ReplaceAll(out, []byte("$1…")), err
}
