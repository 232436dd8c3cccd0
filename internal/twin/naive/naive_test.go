package naive_test

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/internal/twin/naive"
)

// TestConformance compares all answers with the two conformance suites.
func TestConformance(t *testing.T) {
	for name, suite := range map[string]struct {
		files  fs.FS
		cases  func() ([]fixtures.Case, error)
		config naive.Config
		want   func(c fixtures.Case) string
	}{
		"efp":  {fixtures.ConformanceEFP(), fixtures.CasesEFP, naive.Config{}, func(c fixtures.Case) string { return c.Body }},
		"spec": {fixtures.Conformance(), fixtures.Cases, naive.Config{BadgesField: "badges"}, withAddresses},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot, err := fs.Sub(suite.files, "snapshot")
			if err != nil {
				t.Fatal(err)
			}
			graph, err := naive.Load(snapshot, suite.config)
			if err != nil {
				t.Fatal(err)
			}
			cases, err := suite.cases()
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range cases {
				if name == "spec" && c.Path == "/api/v1/leaderboard/mutuals" {
					continue // a board of the other API
				}
				path, query, _ := strings.Cut(c.Path, "?")
				status, contentType, body := graph.Answer(c.Method, path, query, []byte(c.Sent))
				wantType := "application/json"
				switch {
				case c.Status == http.StatusFound:
					wantType, c.Body = "", c.Location
				case strings.HasSuffix(path, "/qr") && c.Status == http.StatusOK:
					wantType = "image/svg+xml"
				case c.Status != http.StatusOK:
					wantType = "application/problem+json"
				}
				if status != c.Status || contentType != wantType {
					t.Errorf("%s %s: got %d, %s, want %d, %s", c.Method, c.Path, status, contentType, c.Status, wantType)
				} else if want := suite.want(c); want != "" && string(body) != want {
					t.Errorf("%s %s:\n got %.600s\nwant %.600s", c.Method, c.Path, body, want)
				}
			}
		})
	}
}

var dataOfEntry = regexp.MustCompile(`"data":"(0x[0-9a-f]{40})",`)

// withAddresses adds the member address, which entries of searchFollowing have under api=efp.
func withAddresses(c fixtures.Case) string {
	if !strings.Contains(c.Path, "/searchFollowing") {
		return c.Body
	}
	return dataOfEntry.ReplaceAllString(c.Body, `$0"address":"$1",`)
}

// TestHandler checks that pages of any origin may read answers.
func TestHandler(t *testing.T) {
	snapshot, err := fs.Sub(fixtures.ConformanceEFP(), "snapshot")
	if err != nil {
		t.Fatal(err)
	}
	graph, err := naive.Load(snapshot, naive.Config{BasePath: "v2", ProfileURL: "https://people.example/{address}/"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, url, body string
		status            int
		part              string
	}{
		{"GET", "/v2/users/%F0%9F%A6%8Afox.eth/simple-profile?x", "", 200, `"url":"https://people.example/0x0808080808080808080808080808080808080808/"}`},
		{"OPTIONS", "/v2/lists/1/buttonStateBatch", "", 204, ""},
		{"POST", "/v2/lists/1/buttonStateBatch", `["bob.eth"]`, 200, `"state":{"follow":true,"block":false,"mute":false}}]`},
		{"POST", "/v2/lists/1/buttonStateBatch", strings.Repeat(" ", 200_000), 413, `"status":413`},
		{"GET", "/api/v1/stats", "", 404, `"status":404`},
	} {
		got := httptest.NewRecorder()
		graph.ServeHTTP(got, httptest.NewRequest(c.method, c.url, strings.NewReader(c.body)))
		origin := got.Header().Get("Access-Control-Allow-Origin")
		if got.Code != c.status || !strings.Contains(got.Body.String(), c.part) || origin != "*" {
			t.Errorf("%s %s: got %d, %s, origin %q, want %d, %s and any", c.method, c.url, got.Code, got.Body, origin, c.status, c.part)
		}
	}
}
