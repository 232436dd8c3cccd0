package server_test

import (
	"net/http"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// The handler and the edges treat empty segments as docs/site.md says.
func TestEmptySegments(t *testing.T) {
	page, err := os.ReadFile("../docs/site.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^ *\\| `(/[^`]*)` \\| (\\d+) \\|$").FindAllStringSubmatch(string(page), -1)
	if len(rows) < 5 {
		t.Fatalf("docs/site.md: got %d paths with a status, want 5", len(rows))
	}
	base := serve(t, storage.NewFolder(demo(t)))
	config, err := site.Config{}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		path := row[1]
		want, _ := strconv.Atoi(row[2])
		if r, _ := request(t, http.MethodGet, base+path); r.StatusCode != want {
			t.Errorf("%s: got status %d, want %d", path, r.StatusCode, want)
		}
		if a := config.Resolve(http.MethodGet, path, ""); a.Problem == nil || a.Problem.Status != want {
			t.Errorf("%s at an edge: got %+v, want status %d", path, a, want)
		}
	}
}
