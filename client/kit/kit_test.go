// Package kit_test runs the client that the whole API is for, ethereum-identity-kit from npm, as it is: its functions
// and its React components against sites of fixtures.ConformanceEFP.
package kit_test

import (
	"bytes"
	"flag"
	"io/fs"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/fixtures/naive"
	"github.com/followpress/followpress/fixtures/servers"
)

const (
	base     = "/api/v1"
	scenario = "../../bench/api/scenario.ndjson"
)

var update = flag.Bool("update", false, "write bench/api/scenario.ndjson again")

// subjects are what answers the kit: each starts it and returns the variables that world.mjs reads.
var subjects = map[string]func(*testing.T) []string{
	"naive": func(t *testing.T) []string { return []string{"KIT_API=" + reference(t)} },
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
	server := httptest.NewServer(graph)
	t.Cleanup(server.Close)
	return server.URL + base
}

// longLines are those of the kit, which is minified: Node.js shows the line of an error.
var longLines = regexp.MustCompile(`(?m)^(.{500}).*$`)

func node(env []string, args ...string) (out []byte, err error) {
	command := exec.Command("node", args...)
	command.Env = append(os.Environ(), env...)
	out, err = command.CombinedOutput()
	return longLines.ReplaceAll(out, []byte("$1…")), err
}
