package site_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/followpress/followpress/site"
)

// The status codes are part of the interface: clients decide by them.
func TestProblemStatus(t *testing.T) {
	want := map[string]int{
		"bad-token-id": 400, "bad-limit": 400, "bad-offset": 400, "bad-include-tags": 400, "bad-term": 400,
		"no-such-list": 404, "no-such-name": 404, "no-such-route": 404,
		"method-not-allowed": 405, "too-many-refreshes": 429, "internal-error": 500, "unavailable": 503,
	}
	equal(t, "problems", len(site.Config{}.Problems()), len(want))
	for _, p := range (site.Config{}).Problems() {
		equal(t, p.Name, p.Status, want[p.Name])
		// Only problems that are the same for everyone, for a while, may be cached.
		equal(t, "cached "+p.Name, p.CacheControl != site.NoStore, p.Status == 400 || p.Status == 404)
	}
}

func TestProblemBody(t *testing.T) {
	equal(t, "body", string(site.NoSuchList.Body()),
		`{"type":"about:blank","title":"Not Found","status":404,`+
			`"detail":"There is no list with this token_id.","response":"There is no list with this token_id."}`)

	titles := map[int]string{
		400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 429: "Too Many Requests",
		500: "Internal Server Error", 503: "Service Unavailable",
	}
	for _, p := range (site.Config{}).Problems() {
		detail, err := json.Marshal(p.Detail)
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf(`{"type":"about:blank","title":%q,"status":%d,"detail":%s,"response":%s}`, titles[p.Status], p.Status, detail, detail)
		equal(t, p.Name, string(p.Body()), want)
		if !strings.HasSuffix(p.Detail, ".") || p.Key() != site.Key("_errors/"+p.Name) {
			t.Errorf("%s: got another detail or key %s, want a sentence and its own key", p.Name, p.Key())
		}
	}
}
