package edge_test

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dop251/goja"

	"github.com/followpress/followpress/edge"
	"github.com/followpress/followpress/site"
)

// TestCloudFrontLive checks which origins CloudFront asks, and its cache keys.
func TestCloudFrontLive(t *testing.T) {
	for _, api := range []string{site.APISpec, site.APIEFP} {
		config := withDefaultsOf(t, site.Config{API: api})
		dir := render(t, "cloudfront", "https://bucket.example.org", "https://fallback.example.org", "", func(o *edge.Options) {
			o.Config, o.Live = config, "https://live.example.org"
		})
		checkRestrictions(t, dir)
		code, err := os.ReadFile(filepath.Join(dir, "function.js"))
		if err != nil {
			t.Fatal(err)
		}
		c := &cloudFront{t: t, live: "https://live.example.org", vm: goja.New()}
		c.load(string(code))
		for _, one := range []struct {
			method, path, query string
			headers             []string // names, and values other than 1
			origins, left       string
		}{
			{"GET", "/api/v1/lists/8/details", "", nil, "live bucket", ""},
			{"GET", "/api/v1/lists/8/details", "", []string{"prefer", "last-event-id"}, "live bucket", ""},
			{"GET", "/api/v1/lists/8/details", "", []string{"x-after", "prefer", "last-event-id"}, "patient bucket", "prefer x-after"},
			{"GET", "/api/v1/lists/8/details", "cache=fresh", nil, "patient fallback", ""},
			{"GET", "/api/v1/lists/8/searchFollowing", "term=a", nil, "live fallback", ""},
			{"GET", "/api/v1/lists/8/searchFollowing", "term=a", []string{"x-after"}, "patient fallback", "x-after"},
			{"GET", "/api/v1/users/CAF%C3%89.eth/searchFollowing", "", nil, "live fallback", ""},
			{"HEAD", "/_site", "", nil, "live bucket", ""},
			{"GET", "/_live/events", "x=1", []string{"last-event-id", "prefer"}, "patient", "last-event-id"},
			{"GET", "/_live/status", "", nil, "patient", ""},
			{"GET", "/_live/status", "", []string{"x-signed"}, "patient", ""},
			{"GET", "/api/v1/lists/8/details", "", []string{"x-signed"}, "live bucket", ""},
			{"GET", "/api/v1/lists/8/details", "", []string{"x-signed: only"}, "bucket fallback", "x-signed"},
			{"GET", "/api/v1/lists/8/details", "", []string{"x-signed: only", "x-after", "prefer"}, "bucket fallback", "x-signed"},
			{"GET", "/api/v1/lists/8/searchFollowing", "term=a", []string{"x-signed: only"}, "fallback", "x-signed"},
			{"GET", "/_site", "", []string{"x-signed: only"}, "bucket fallback", "x-signed"},
		} {
			request := httptest.NewRequest(one.method, "/", nil)
			for _, name := range one.headers {
				name, text, _ := strings.Cut(name, ": ")
				request.Header.Set(name, cmp.Or(text, "1"))
			}
			got, err := c.handler(goja.Undefined(), c.vm.ToValue(event(request, one.path, one.query)))
			if err != nil {
				t.Fatal(err)
			}
			var left []string
			for name := range got.Export().(value)["headers"].(value) {
				left = append(left, name)
			}
			slices.Sort(left)
			if origins := strings.Join(c.chosen, " "); origins != one.origins || strings.Join(left, " ") != one.left {
				t.Errorf("%s: %s %s?%s with %v: got the origins %q and the headers %v, want %q and %q", api, one.method, one.path, one.query, one.headers, origins, left, one.origins, one.left)
			}
			if slices.Contains(c.over, any(int64(http.StatusNotFound))) {
				t.Errorf("failover on %v: a 404 of live is an answer", c.over)
			}
		}
		if got, err := c.handler(goja.Undefined(), c.vm.ToValue(event(httptest.NewRequest("POST", "/", nil), "/_live/events", ""))); err != nil || got.Export().(value)["statusCode"] == nil {
			t.Errorf("POST of events: got %v, want a problem", err)
		}
		stack, err := os.ReadFile(filepath.Join(dir, "cloudfront.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{"MaxTTL: 2", "Headers: [X-After, Prefer, Last-Event-ID, X-Signed]", "- Id: live", "- Id: patient", "OriginReadTimeout: 1", "ConnectionAttempts: 1", "ConnectionTimeout: 1"} {
			if !strings.Contains(string(stack), " "+line+"\n") {
				t.Errorf("the stack: got no line %q", line)
			}
		}
	}
}

// Reports are in the bucket alone.
func TestCloudFrontLiveReports(t *testing.T) {
	dir := render(t, "cloudfront", "https://bucket.example.org", "https://fallback.example.org", "", func(o *edge.Options) {
		o.Config, o.Live = withDefaultsOf(t, site.Config{Explorer: true}), "https://live.example.org"
	})
	code, err := os.ReadFile(filepath.Join(dir, "function.js"))
	if err != nil {
		t.Fatal(err)
	}
	c := &cloudFront{t: t, live: "https://live.example.org", vm: goja.New()}
	c.load(string(code))
	for _, path := range []string{"/_reports/index", "/_snapshot/index/" + anyDigest, "/_snapshot/" + anyDigest} {
		if _, err := c.handler(goja.Undefined(), c.vm.ToValue(event(httptest.NewRequest("GET", "/", nil), path, ""))); err != nil || strings.Join(c.chosen, " ") != "bucket fallback" {
			t.Errorf("%s: got %v (%v), want bucket and fallback", path, c.chosen, err)
		}
	}
}

func withDefaultsOf(t testing.TB, c site.Config) site.Config {
	t.Helper()
	c, err := c.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return c
}
