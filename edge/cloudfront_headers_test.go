package edge_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dop251/goja"

	"github.com/followpress/followpress/site"
)

// Of the headers that change CloudFront's answer the function keeps only If-None-Match.
func TestCloudFrontConditions(t *testing.T) {
	for _, fallbackURL := range []string{"", "https://fallback.example.org"} {
		dir := render(t, "cloudfront", "https://bucket.example.org", fallbackURL, "")
		code, err := os.ReadFile(filepath.Join(dir, "function.js"))
		if err != nil {
			t.Fatal(err)
		}
		c := &cloudFront{t: t, vm: goja.New()}
		c.load(string(code))
		for _, query := range []string{"", "limit=3"} {
			e := event(httptest.NewRequest(http.MethodGet, "/", nil), "/api/v1/lists/8/searchFollowing", query)
			headers := value{}
			for _, name := range []string{"if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "range"} {
				headers[name] = value{"value": "x"}
			}
			e["request"].(value)["headers"] = headers
			got, err := c.handler(goja.Undefined(), c.vm.ToValue(e))
			if err != nil {
				t.Fatal(err)
			}
			left := got.Export().(value)["headers"].(value)
			if len(left) != 1 || left["if-none-match"] == nil {
				t.Errorf("%q: got the headers %v, want If-None-Match only", query, left)
			}
		}
	}
}

// The headers policy has the headers of every answer of the handler.
func TestCloudFrontPolicy(t *testing.T) {
	body, err := os.ReadFile(filepath.Join(render(t, "cloudfront", "https://bucket.example.org", "", ""), "cloudfront.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	stack := strings.ReplaceAll(string(body), `"`, "")
	said := http.Header{}
	for _, h := range append(site.EveryHeader(), site.Config{}.PreflightHeaders()...) {
		said.Set(h.Name, h.Value)
	}
	for property, name := range map[string]string{
		"AccessControlAllowHeaders": "Access-Control-Allow-Headers", "AccessControlAllowMethods": "Access-Control-Allow-Methods",
		"AccessControlAllowOrigins": "Access-Control-Allow-Origin", "AccessControlExposeHeaders": "Access-Control-Expose-Headers",
	} {
		if want := "          " + property + ":\n            Items: [" + said.Get(name) + "]\n"; !strings.Contains(stack, want) {
			t.Errorf("the policy lacks %s", want)
		}
	}
	if want := "AccessControlMaxAgeSec: " + said.Get("Access-Control-Max-Age") + "\n"; !strings.Contains(stack, want) {
		t.Errorf("the policy lacks %s", want)
	}
	_, removed, _ := strings.Cut(stack, "RemoveHeadersConfig")
	if n := strings.Count(removed, "- Header: "); n == 0 || n > 10 {
		t.Errorf("removed headers: got %d, want 1 to 10", n)
	}
}
