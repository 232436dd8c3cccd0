package launch_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"

	"github.com/followpress/followpress/beam/internal/difftest"
	"github.com/followpress/followpress/beam/internal/launch"
	"github.com/followpress/followpress/beam/internal/loopback"
	"github.com/followpress/followpress/site"
)

func TestMain(m *testing.M) { loopback.Main(m) }

// run runs the command on Prism and returns the folder of the parts.
func run(t *testing.T, c difftest.Case, flags ...string) string {
	t.Helper()
	out := t.TempDir()
	var stdout, stderr bytes.Buffer
	if status := launch.Main(append(append(c.Flags(), "--out="+out), flags...), &stdout, &stderr); status != 0 {
		t.Fatalf("status %d: %s", status, stderr.String())
	}
	return out
}

// fixture is a case of a snapshot of the project, cut into files at random.
func fixture(t *testing.T, name string, config site.Config) difftest.Case {
	folder := filepath.Join("..", "..", "..", "fixtures", filepath.FromSlash(name))
	return difftest.Case{Name: name, Snapshot: difftest.Cut(t, 1, folder), Config: config}
}

// The site is that of generate, byte for byte, also if every account with more than three records about
// it counts as hot.
func TestSitesOfFixturesEqualThoseOfGenerate(t *testing.T) {
	for _, name := range []string{"demo", "conformance/snapshot", "conformance-efp/snapshot"} {
		for _, config := range []site.Config{{API: site.APISpec, Explorer: true}, {API: site.APIEFP, Explorer: true}} {
			t.Run(name+" "+config.API, func(t *testing.T) {
				c := fixture(t, name, config)
				c.Check(t, run(t, c, "--hot-after=3"))
			})
		}
	}
}

// seeds is how many random snapshots are tried.
const seeds = 12

func TestRandomSitesEqualThoseOfGenerate(t *testing.T) {
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := difftest.Random(t, seed)
			hot := []string{"--hot-after=2", "--hot-after=50000"}[seed/2%2]
			c.Check(t, run(t, c, hot))
		})
	}
}

// TestGivenSnapshot compares the sites of any snapshot, of which generate makes the other ones.
func TestGivenSnapshot(t *testing.T) {
	folder := os.Getenv("TEST_BEAM_SNAPSHOT")
	if folder == "" {
		t.Skip("TEST_BEAM_SNAPSHOT names no folder; run make test-beam")
	}
	for _, api := range []string{site.APISpec, site.APIEFP} {
		t.Run(api, func(t *testing.T) {
			c := difftest.Case{Name: "given", Snapshot: folder, Config: site.Config{API: api, Explorer: true}}
			c.Check(t, run(t, c))
		})
	}
}

func TestFaults(t *testing.T) {
	demo := func(t *testing.T, file, rows string) string {
		folder := t.TempDir()
		if err := os.CopyFS(folder, os.DirFS("../../../fixtures/demo")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, file), []byte(rows), 0o666); err != nil {
			t.Fatal(err)
		}
		return folder
	}
	tests := []struct {
		name, snapshot string
		out            string
		status         int
		want           string
	}{
		{"no snapshot", t.TempDir(), t.TempDir(), 1, "meta.json is not there"},
		{"invalid row", demo(t, "badges-1.ndjson", "{}\n"), t.TempDir(), 1, "table badges exists twice"},
		{"no place", "../../../fixtures/demo", "../../../fixtures/demo", 1, `which is no part of a site`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			status := launch.Main([]string{"--snapshot=" + test.snapshot, "--out=" + test.out}, &stdout, &stderr)
			if status != test.status || !strings.Contains(stderr.String(), test.want) || strings.Count(stderr.String(), "\n") != 1 {
				t.Errorf("status %d: %s", status, stderr.String())
			}
		})
	}
}
