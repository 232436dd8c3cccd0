package client_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"syscall"
	"testing"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/internal/testenv/process"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
)

// browserPatience is how long the browser may take, to start and to ask for every case.
const browserPatience = 3 * time.Minute

// A page in a real browser loads the library from the bucket, which is another origin, and gets the
// server's answers. Both origins are http, where browsers have no SHA-256. From a live site, it waits for blocks.
func TestAnswersInBrowser(t *testing.T) {
	servers.Wanted(t)
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v: `make test` installs what it needs", err)
	}
	config := site.Config{API: site.APIEFP, Names: site.NamesLookup}
	job := conformanceJob(t, "efp", fixtures.ConformanceEFP(), fixtures.CasesEFP, config)
	job.Base = asHost(t, job.Base, "bucket.example")
	live, control := startLive(t)
	job.Live, job.Control = asHost(t, live, "live.example"), asHost(t, control, "control.example")

	results := make(chan result, 1)
	page := httptest.NewServer(pages(t, job, results))
	t.Cleanup(page.Close)
	browser := process.Start(t, exec.Command(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
		"--user-data-dir="+t.TempDir(), "--host-resolver-rules=MAP *.example 127.0.0.1", "--remote-debugging-port=0",
		asHost(t, page.URL, "app.example")))
	t.Cleanup(func() {
		// Its children end with it, and its folder can be removed, only if it is asked.
		browser.Signal(syscall.SIGTERM)
		select {
		case <-browser.Ended():
		case <-time.After(10 * time.Second):
			browser.Stop()
		}
	})
	select {
	case r := <-results:
		if r.Cases != len(job.Cases) || r.Secure || len(r.Failures) > 0 {
			t.Errorf("got %d cases, secure context %v, %d failures %.3000q; want %d cases, no secure context and no failures",
				r.Cases, r.Secure, len(r.Failures), r.Failures, len(job.Cases))
		}
	case <-browser.Ended():
		t.Errorf("the browser has ended:\n%s", browser.Output())
	case <-time.After(browserPatience):
		t.Errorf("no result:\n%s", browser.Output())
	}
}

// A result is what the page found out.
type result struct {
	Cases    int      `json:"cases"`
	Failures []string `json:"failures"`
	Secure   bool     `json:"secure"`
}

// pages serves the page and its job, and receives its result.
func pages(t *testing.T, j job, results chan<- result) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, "test/page.html") })
	for _, name := range []string{"check.mjs", "live.mjs"} {
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/javascript")
			http.ServeFile(w, r, "test/"+name)
		})
	}
	mux.HandleFunc("GET /job", func(w http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(w).Encode(j); err != nil {
			t.Error(err)
		}
	})
	mux.HandleFunc("POST /result", func(_ http.ResponseWriter, r *http.Request) {
		var found result
		if err := json.NewDecoder(r.Body).Decode(&found); err != nil {
			found.Failures = []string{err.Error()}
		}
		select {
		case results <- found:
		default: // the page was loaded twice
		}
	})
	return mux
}

// asHost names a server on this machine by another host.
func asHost(t *testing.T, address, host string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = host + ":" + u.Port()
	return u.String()
}
