package launch_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	json "github.com/goccy/go-json"
)

// TestNewRoute: a new row in the table of routes with a renderer gives both sides the route,
// without changes in beam/.
func TestNewRoute(t *testing.T) {
	overlay := map[string]map[string]string{"Replace": {}}
	for file, change := range map[string][]string{
		"site/routes/routes.go": {"\tUserAccount\n", "\tListEcho\n\tUserAccount\n"},
		"site/table.go": {
			"\n\t\t{ID: routes.UserAccount,", "\n\t\t{ID: routes.ListEcho, Pattern: \"{base}/lists/{token_id}/echo\", Summary: \"the ID of a list\"},\n\t\t{ID: routes.UserAccount,",
		},
		"generator/render/viewrenderer.go": {
			"\tt.keys = append(t.keys[:0], key(site.SearchFollowing))\n",
			"\tEmitText(emit, v.Token, key(\"echo\"))\n\tt.keys = append(t.keys[:0], key(site.SearchFollowing))\n",
		},
	} {
		path, err := filepath.Abs(filepath.Join("..", "..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		body, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(change); i += 2 {
			if n := strings.Count(string(body), change[i]); n != 1 {
				t.Fatalf("%s: got %q %d times, want once", file, change[i], n)
			}
		}
		changed := filepath.Join(t.TempDir(), filepath.Base(file))
		if err := os.WriteFile(changed, []byte(strings.NewReplacer(change...).Replace(string(body))), 0o666); err != nil {
			t.Fatal(err)
		}
		overlay["Replace"][path] = changed
	}
	body, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(file, body, 0o666); err != nil {
		t.Fatal(err)
	}
	// If one side lacked the route, the number of objects would differ, and the run fail.
	command := exec.CommandContext(t.Context(), "go", "test", "-overlay="+file, "-run", "^TestSitesOfFixturesEqualThoseOfGenerate$/^demo_spec$", "-v", ".")
	if out, err := command.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestSitesOfFixturesEqualThoseOfGenerate/demo_spec") {
		t.Errorf("%v\n%s", err, out)
	}
}
