package client_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/client"
	"github.com/followpress/followpress/internal/testenv/servers"
)

// A page with the hashes of docs/client.md in its import map does not run an altered module, even
// if another module imports it later.
func TestIntegrityInBrowser(t *testing.T) {
	servers.Wanted(t)
	for altered, want := range map[string]string{"": "a site", "proof.js": "refused", "followpress.js": "refused"} {
		modules := map[string][]byte{}
		integrity := map[string]string{}
		for _, f := range client.Files() {
			if strings.HasSuffix(f.Name, ".js") {
				modules["/_client/"+f.Name], integrity["/_client/"+f.Name] = f.Body, f.Integrity()
			}
		}
		if altered != "" {
			modules["/_client/"+altered] = append(bytes.Clone(modules["/_client/"+altered]), "\nglobalThis.thief = true;"...)
		}
		imports, err := json.Marshal(map[string]any{"imports": map[string]string{"@followpress/client": "/_client/followpress.js"}, "integrity": integrity})
		if err != nil {
			t.Fatal(err)
		}
		page := `<!doctype html><script type="importmap">` + string(imports) + `</script><p id="result">nothing</p><script type="module">
			try {
				await import('@followpress/client');
				await import('/_client/proof.js');
				document.querySelector('p').textContent = 'a site';
			} catch {
				document.querySelector('p').textContent = globalThis.thief ? 'stolen' : 'refused';
			}
		</script>`
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if body, ok := modules[r.URL.Path]; ok {
				w.Header().Set("Content-Type", "text/javascript")
				_, _ = w.Write(body)
				return
			}
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte(page))
		}))
		t.Cleanup(server.Close)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		dom, err := exec.CommandContext(ctx, "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
			"--user-data-dir="+t.TempDir(), "--virtual-time-budget=5000", "--dump-dom", server.URL).Output()
		if err != nil || !strings.Contains(string(dom), ">"+want+"<") {
			t.Errorf("%q altered: got %s, %v, want %q", altered, dom, err, want)
		}
	}
}
