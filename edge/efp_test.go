package edge_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/site"
)

func efpCases(t testing.TB) []fixtures.Case {
	t.Helper()
	cases, err := fixtures.CasesEFP()
	if err != nil || len(cases) < 300 {
		t.Fatalf("conformance cases: got %d, %v, want many", len(cases), err)
	}
	return cases
}

// forEFP runs a test for every edge and both ways to keep names.
func forEFP(t *testing.T, test func(t *testing.T, s subject, names string)) {
	forEdges(t, func(t *testing.T, s subject) {
		for _, names := range []string{site.NamesCopies, site.NamesLookup} {
			t.Run(names, func(t *testing.T) { test(t, s, names) })
		}
	})
}

// Every case of the whole API, with the fallback: exact, from every edge.
func TestConformanceEFP(t *testing.T) {
	forEFP(t, func(t *testing.T, s subject, names string) {
		o := newOriginsEFP(t, names)
		base := s.start(t, o.bucket.URL+"/bucket", o.fallback.URL)
		for range 2 { // the second time out of the cache
			for _, c := range efpCases(t) {
				checkCase(t, base, c)
			}
		}
		if s.degrades {
			return // Caddy forwards requests as they are
		}
		o.fallback.paths.Range(func(uri, _ any) bool {
			path, query, _ := strings.Cut(uri.(string), "?")
			r, forward := o.config.AtEdge(http.MethodGet, path, query)
			inBucket := s.absentAs == nil && forward == "" && !strings.Contains(path, "%") && r.Action != site.AnswerProblem
			if inBucket && !(s.kind == "varnish" && r.Unknown != "") || forward != "" && forward != uri && !strings.Contains(uri.(string), "%") {
				t.Errorf("requests to the fallback: got %s, want only what no object answers, in its normal form %s", uri, forward)
			}
			return true
		})
	})
}

const unknownAddress = "0x6363636363636363636363636363636363636363"

// All headers that clients see, methods and conditions, as the handler has them.
func TestHeadersEFP(t *testing.T) {
	forEFP(t, func(t *testing.T, s subject, names string) {
		o := newOriginsEFP(t, names)
		base := s.start(t, o.bucket.URL+"/bucket", o.fallback.URL)
		paths := []string{
			"/api/v1/stats", "/api/v1/discover?limit=2", "/api/v1/leaderboard/ranked?sort=FOLLOWERS&direction=Asc", "/api/v1/leaderboard/mutuals?limit=3", "/api/v1/leaderboard/nothing",
			"/api/v1/users/alice.eth/account", "/api/v1/users/nobody.eth/account", "/api/v1/users/ALICE.eth/following?offset=1&tags=&sort=followers", "/api/v1/users/../stats",
			"/api/v1/users/alice.eth/BOB.eth/followerState", "/api/v1/users/alice.eth/%2e/buttonState", "/api/v1/lists/1/alice.eth/buttonState", "/api/v1/lists/01/x/buttonState",
			"/api/v1/users/alice.eth/commonFollowers", "/api/v1/users/alice.eth/commonFollowers?leader=", "/api/v1/users/alice.eth/commonFollowers?leader=BOB.eth&leader=",
			"/api/v1/users/alice.eth/details?cache=fresh", "/api/v1/lists/1/buttonStateBatch", "/api/v1/lists/x/buttonStateBatch", "/api/v1/exportState/1", "/api/v1/exportState/404",
			"/api/v1/users/alice.eth/recommended/details", "/api/v1/users/recommended/recommended/details", "/openapi.json", "/_unknown/account", "/_client/shim.js", "/_search/discover",
			"/api/v1/users/x/notifications", "/nothing",
		}
		for _, object := range append(site.UserObjects(), site.SearchFollowing) {
			paths = append(paths, "/api/v1/users/0x"+strings.ToUpper(unknownAddress[2:])+"/"+string(object), "/api/v1/users/"+unknownAddress+"/"+string(object)+"?x=1",
				"/api/v1/users/"+unknownAddress+"/"+string(object))
		}
		for _, path := range paths {
			if !s.receives(path) {
				continue
			}
			for _, method := range []string{"GET", "HEAD", "OPTIONS", "POST", "DELETE", "PATCH"} {
				for range 2 {
					sameAnswer(t, method+" "+path, ask(t, method, base, path), o.direct(t, method, path), s.unseen...)
				}
			}
			direct := o.direct(t, http.MethodGet, path)
			etag := direct.header.Get("ETag")
			if etag == "" || strings.Contains(path, "fresh") {
				continue
			}
			conditions := []string{etag, `W/` + etag, `"x", ` + etag, "*"}
			if s.exactConditions {
				conditions = conditions[:1]
			}
			for _, condition := range conditions {
				got := ask(t, http.MethodGet, base, path, "If-None-Match", condition)
				if got.status != http.StatusNotModified || got.header.Get("ETag") != etag || got.body != "" {
					t.Errorf("%s with If-None-Match %s: got %d with ETag %s, want a 304", path, condition, got.status, got.header.Get("ETag"))
				}
			}
			sameAnswer(t, "with another ETag "+path, ask(t, http.MethodGet, base, path, "If-None-Match", `"x"`), direct, s.unseen...)
		}
	})
}

// A batch reaches the fallback each time, whatever the client calls it, and no longer than it may be.
func TestBatches(t *testing.T) {
	forEdges(t, func(t *testing.T, s subject) {
		o := newOriginsEFP(t, site.NamesCopies)
		base := s.start(t, o.bucket.URL+"/bucket", o.fallback.URL)
		const path = "/api/v1/lists/1/buttonStateBatch"
		long := "[" + strings.Repeat(" ", site.MaxBatchBytes-len(`["alice.eth"]`)) + `"alice.eth"]`
		for _, body := range []string{`["alice.eth"]`, `["alice.eth","bob.eth"]`, `["alice.eth"]`, long, long + " ", "{}"} {
			for _, uri := range []string{path, path + "?x=1", "/api/v1/lists/%31/buttonStateBatch", "/api/v1/lists/01/buttonStateBatch", path + "?" + strings.Repeat("x", 2000)} {
				want, err := trySend(http.MethodPost, o.fallback.URL, uri, body)
				if err != nil {
					t.Fatal(err)
				}
				before := o.fallback.requests.Load()
				got, err := trySend(http.MethodPost, base, uri, body, "Content-Type", "text/plain", "Cookie", "a=b")
				if err != nil {
					t.Errorf("%s: %v", uri, err)
					continue
				}
				sameAnswer(t, uri, got, want, s.unseen...)
				if n := o.fallback.requests.Load() - before; n != 1 && want.status == http.StatusOK {
					t.Errorf("%s: got %d requests to the fallback, want 1", uri, n)
				}
			}
		}
		if s.kind == "cloudfront" {
			return // which tells nobody how long a body is before it sends it on
		}
		for _, body := range []string{`["alice.eth"]`, long + " "} { // in chunks, without a length
			want, err := trySend(http.MethodPost, o.fallback.URL, path, body)
			if err != nil {
				t.Fatal(err)
			}
			response, err := client.Post(base+path, "application/json", io.MultiReader(strings.NewReader(body)))
			if err != nil {
				t.Errorf("%d bytes in chunks: %v", len(body), err)
				continue
			}
			received, err := io.ReadAll(response.Body)
			if response.Body.Close(); err != nil || response.StatusCode != want.status || !bytes.Equal(received, []byte(want.body)) {
				t.Errorf("%d bytes in chunks: got %d %.200s (%v), want %d %s", len(body), response.StatusCode, received, err, want.status, want.body)
			}
		}
	})
}

// Answers for unknown addresses cost the bucket one object for all of them, and one absent one each.
func TestUnknownAddresses(t *testing.T) {
	forEdges(t, func(t *testing.T, s subject) {
		if s.kind != "nginx" && s.kind != "worker" {
			return // they ask the fallback
		}
		o := newOriginsEFP(t, site.NamesCopies)
		base := s.start(t, o.bucket.URL+"/bucket", o.fallback.URL)
		for range 3 {
			for _, digit := range "3456789" {
				path := "/api/v1/users/0x" + strings.Repeat(string(digit)+"f", 20) + "/account"
				sameAnswer(t, path, ask(t, http.MethodGet, base, path), o.answer(path))
			}
		}
		if bucket, fallback := o.bucket.requests.Load(), o.fallback.requests.Load(); bucket != 8 || fallback != 0 {
			t.Errorf("requests: got %d to the bucket and %d to the fallback, want 8 and none", bucket, fallback)
		}
		o.bucket.failing.Store(http.StatusInternalServerError)
		const other = "/api/v1/users/" + unknownAddress + "/stats"
		if a := ask(t, http.MethodGet, base, other); a.status != http.StatusServiceUnavailable || a.body != string(site.Unavailable.Body()) {
			t.Errorf("while the bucket fails: got %d %s, want the 503 of the API", a.status, a.body)
		}
	})
}
