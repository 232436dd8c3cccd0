package server_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/templates/openapi"
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

// The description of a site without one is made once, and is answered and counted like an object. Every other
// request goes its way.
func TestDescription(t *testing.T) {
	failing := errors.New("cannot describe")
	for name, c := range map[string]struct {
		config              site.Config
		err                 error
		method, target, tag string
		status              int
	}{
		"read":         {method: "GET", target: "/openapi.json", status: 200},
		"head":         {method: "HEAD", target: "/openapi.json", status: 200},
		"query":        {method: "GET", target: "/openapi.json?v=1", status: 200},
		"unchanged":    {method: "GET", target: "/openapi.json", tag: "same", status: 304},
		"other base":   {config: site.Config{BasePath: "v2"}, method: "GET", target: "/openapi.json", status: 200},
		"other method": {method: "POST", target: "/openapi.json", status: 405},
		"preflight":    {method: "OPTIONS", target: "/openapi.json", status: 204},
		"other path":   {method: "GET", target: "/api/v1/openapi.json", status: 404},
		"in the site":  {config: site.Config{API: site.APIEFP}, method: "GET", target: "/openapi.json", status: 404}, // a site without the object
		"error":        {err: failing, method: "GET", target: "/openapi.json", status: 500},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := c.config.WithDefaults()
			if err != nil {
				t.Fatal(err)
			}
			root := site.Root{
				Format: site.Format, AsOf: "2026-01-01T00:00:00Z", Config: config, BucketDigits: 1, TokenDigits: config.TokenDigits(0), ShardDigits: 1,
				HeaderRules: config.HeaderRules(),
			}
			made := 0
			handler, err := server.New(context.Background(), memsite.New(t, root, map[site.Key]string{}), server.Options{
				Log: slog.New(slog.DiscardHandler),
				Describe: func(got site.Config) ([]byte, error) {
					made++
					if c.err != nil {
						return nil, c.err
					}
					return openapi.Describe(got)
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer handler.Close()
			want, err := openapi.Describe(handler.Root().Config)
			if err != nil {
				t.Fatal(err)
			}
			etag := `"` + site.Sum(want).String() + `"`
			const requests = 3
			for range requests {
				request, got := httptest.NewRequest(c.method, c.target, nil), httptest.NewRecorder()
				if c.tag != "" {
					request.Header.Set("If-None-Match", etag)
				}
				handler.ServeHTTP(got, request)
				if got.Code != c.status || got.Header().Get("X-Request-Id") == "" || got.Header().Get("Access-Control-Allow-Origin") != "*" {
					t.Errorf("got %d and %v, want %d and the headers of every answer", got.Code, got.Header(), c.status)
				}
				if c.status != http.StatusOK {
					continue
				}
				if body := got.Body.String(); c.method == "GET" && body != string(want) {
					t.Errorf("got %.100s, want the description", body)
				}
				for name, want := range map[string]string{"Content-Type": "application/json", "Cache-Control": site.RouteBy(routes.OpenAPI).CacheControl, "Etag": etag} {
					if got := got.Header().Get(name); got != want {
						t.Errorf("%s: got %q, want %q", name, got, want)
					}
				}
			}
			if c.status > 304 || c.status == 204 {
				return
			}
			if made != 1 {
				t.Errorf("descriptions made: got %d, want 1", made)
			}
			if counted := scrape(t, handler)[`request_seconds_count{route="openapi.json"}`]; counted != requests {
				t.Errorf("requests counted: got %v, want %d", counted, requests)
			}
		})
	}
}
