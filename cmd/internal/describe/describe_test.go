package describe_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/followpress/followpress/cmd/internal/describe"
	"github.com/followpress/followpress/fixtures/memsite"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/templates"
)

// TestHandler: the description of a site without one is made; every other request is passed on.
func TestHandler(t *testing.T) {
	for name, c := range map[string]struct {
		config            site.Config
		method, path, tag string
		status            int
	}{
		"read":         {site.Config{}, "GET", describe.Path, "", http.StatusOK},
		"head":         {site.Config{}, "HEAD", describe.Path, "", http.StatusOK},
		"unchanged":    {site.Config{}, "GET", describe.Path, "same", http.StatusNotModified},
		"other base":   {site.Config{BasePath: "v2"}, "GET", describe.Path, "", http.StatusOK},
		"other method": {site.Config{}, "POST", describe.Path, "", http.StatusTeapot},
		"other path":   {site.Config{}, "GET", "/api/v1/openapi.json", "", http.StatusTeapot},
		"in the site":  {site.Config{API: site.APIEFP}, "GET", describe.Path, "", http.StatusTeapot},
		"start page":   {site.Config{}, "GET", "/", "", http.StatusTeapot},
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
			log := slog.New(slog.DiscardHandler)
			api, err := server.New(context.Background(), memsite.New(t, root, map[site.Key]string{}), server.Options{Log: log})
			if err != nil {
				t.Fatal(err)
			}
			defer api.Close()
			want, err := templates.OpenAPI(api.Root().Config)
			if err != nil {
				t.Fatal(err)
			}
			next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
			request, got := httptest.NewRequest(c.method, c.path, nil), httptest.NewRecorder()
			if c.tag != "" {
				request.Header.Set("If-None-Match", `"`+site.Sum(want).String()+`"`)
			}
			describe.Handler(api, next, log).ServeHTTP(got, request)
			if got.Code != c.status {
				t.Errorf("%s %s: got %d, want %d", c.method, c.path, got.Code, c.status)
			}
			if c.status != http.StatusOK {
				return
			}
			if body := got.Body.String(); c.method == "GET" && body != string(want) || c.method == "HEAD" && body != "" {
				t.Errorf("%s: got %.100s, want the description", c.method, body)
			}
			for name, want := range map[string]string{"Content-Type": "application/json", "Access-Control-Allow-Origin": "*", "Etag": `"` + site.Sum(want).String() + `"`} {
				if got := got.Header().Get(name); got != want {
					t.Errorf("%s: got %q, want %q", name, got, want)
				}
			}
		})
	}
}
