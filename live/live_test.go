package live_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/live"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// generated returns the site of a snapshot as generate writes it.
func generated(t testing.TB, snapshot afero.Fs, o live.Options) server.Store {
	t.Helper()
	files, _, err := generator.ToMemory(t.Context(), snapshot, generator.Options{Config: o.Generator.Config})
	if err != nil {
		t.Fatal(err)
	}
	return storage.NewFolder(files)
}

// Without a graph, every answer is a 503 with Retry-After.
func TestWithoutAGraph(t *testing.T) {
	t.Parallel()
	l := run(t, options(site.APISpec))
	for _, target := range []string{"/api/v1/stats", "/_site", "/nothing", live.EventsPath} {
		w := get(l, target, "X-After", "8453:7")
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || w.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: got %d %v, want a 503 that any page may read", target, w.Code, w.Header())
		}
	}
	if err := l.Ready(); !errors.Is(err, live.ErrNoGraph) {
		t.Errorf("Ready: got %v, want %v", err, live.ErrNoGraph)
	}
	if w := get(l, live.StatusPath); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), live.ErrNoGraph.Error()) {
		t.Errorf("the status: got %d %s, want the reason", w.Code, w.Body)
	}
}
