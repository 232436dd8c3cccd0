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

// browserPatience limits the time of the browser, from its start to the last case.
const browserPatience = 3 * time.Minute

// A page in a real browser loads the library from the bucket, which is another origin, and gets the
// server's answers. Both origins are http, where browsers have no SHA-256. From a live site, it waits for blocks.
func TestAnswersInBrowser(t *testing.T) {
	servers.Wanted(t)
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v: `make test-tools` installs what it needs", err)
	}
	config := site.Config{API: site.APIEFP, Names: site.NamesLookup}
	conformance := conformanceJob(t, "efp", fixtures.ConformanceEFP(), fixtures.CasesEFP, config)
	conformance.Base = asHost(t, conformance.Base, "bucket.example")
	random := randomJob(t, shardedHistory, config)
	random.Base = asHost(t, random.Base, "random.example")
	live, control := startLive(t)
	work := pageWork{[]job{conformance, random}, asHost(t, live, "live.example"), asHost(t, control, "control.example")}
	cases := len(conformance.Cases) + len(random.Cases)

	results := make(chan result, 1)
	page := httptest.NewServer(pages(t, work, results))
	t.Cleanup(page.Close)
	browser := process.Start(t, exec.Command(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
		"--user-data-dir="+t.TempDir(), "--host-resolver-rules=MAP *.example 127.0.0.1", "--remote-debugging-port=0",
		asHost(t, page.URL, "app.example")))
	t.Cleanup(func() {
		// Only an orderly exit ends its children, so that its folder can be removed.
		browser.Signal(syscall.SIGTERM)
		select {
		case <-browser.Ended():
		case <-time.After(10 * time.Second):
			browser.Stop()
		}
	})
	select {
	case r := <-results:
		if r.Cases != cases || r.Secure || len(r.Failures) > 0 {
			t.Errorf("got %d cases, secure context %v, %d failures %.3000q; want %d cases, no secure context and no failures",
				r.Cases, r.Secure, len(r.Failures), r.Failures, cases)
		}
	case <-browser.Ended():
		t.Errorf("the browser has ended:\n%s", browser.Output())
	case <-time.After(browserPatience):
		t.Errorf("no result:\n%s", browser.Output())
	}
}

// pageWork is the script of the page. It triggers rounds of the live site at control.
type pageWork struct {
	Jobs    []job  `json:"jobs"`
	Live    string `json:"live"`
	Control string `json:"control"`
}

// A result is the report of the page.
type result struct {
	Cases    int      `json:"cases"`
	Failures []string `json:"failures"`
	Secure   bool     `json:"secure"`
}

// pages serves the page and its jobs, and receives the result.
func pages(t *testing.T, work pageWork, results chan<- result) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, "test/page.html") })
	for _, name := range []string{"check.mjs", "live.mjs"} {
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/javascript")
			http.ServeFile(w, r, "test/"+name)
		})
	}
	mux.HandleFunc("GET /jobs", func(w http.ResponseWriter, _ *http.Request) {
		if err := json.NewEncoder(w).Encode(work); err != nil {
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

// asHost returns the address of a server on this machine under another host name.
func asHost(t *testing.T, address, host string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = host + ":" + u.Port()
	return u.String()
}
