package live_test

import (
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/live"
	"github.com/followpress/followpress/site"
)

// TestConformance asks every request of both conformance suites.
func TestConformance(t *testing.T) {
	t.Parallel()
	for api, suite := range map[string]struct {
		files fs.FS
		cases func() ([]fixtures.Case, error)
	}{
		site.APISpec: {fixtures.Conformance(), fixtures.Cases},
		site.APIEFP:  {fixtures.ConformanceEFP(), fixtures.CasesEFP},
	} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			cases, err := suite.cases()
			if err != nil || len(cases) < 300 {
				t.Fatalf("cases: got %d, %v, want some hundreds", len(cases), err)
			}
			l := run(t, options(api))
			l.serve(t, atBlock(10, afero.NewBasePathFs(afero.FromIOFS{FS: suite.files}, "snapshot")), live.NewGraph)
			server := httptest.NewServer(l)
			defer server.Close()
			for _, c := range cases {
				checkCase(t, server.URL, c)
			}
		})
	}
}

func checkCase(t *testing.T, url string, c fixtures.Case) {
	t.Helper()
	request, err := http.NewRequest(c.Method, url+c.Path, strings.NewReader(c.Sent))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultTransport.RoundTrip(request) // follows no redirect
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != c.Status || c.Status == http.StatusOK && string(body) != c.Body {
		t.Errorf("%s %s: got %d %.300s, %v\nwant %d %.300s", c.Method, c.Path, response.StatusCode, body, err, c.Status, c.Body)
	}
	if got := response.Header.Get("X-Heads"); got != "8453:10" {
		t.Errorf("%s %s: X-Heads: got %q, want 8453:10", c.Method, c.Path, got)
	}
}
