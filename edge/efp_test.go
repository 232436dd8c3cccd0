package edge_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/followpress/followpress/edge"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/internal/testenv/servers"
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
			r, forward := edge.AtEdge(o.config, http.MethodGet, path, query)
			inBucket := s.absentAs == nil && forward == "" && !strings.Contains(path, "%") && r.Action != site.AnswerProblem
			if inBucket || forward != "" && forward != uri && !strings.Contains(uri.(string), "%") {
				t.Errorf("requests to the fallback: got %s, want only what no object answers, in its normal form %s", uri, forward)
			}
			return true
		})
	})
}

// The same with a real bucket that publish made, which the fallback does not read.
func TestConformanceEFPOverMinIO(t *testing.T) {
	servers.Nightly(t)
	path, err := efpSites[site.NamesCopies]()
	if err != nil {
		t.Fatal(err)
	}
	bucketURL := overMinIO(t, path)
	for _, s := range subjects {
		t.Run(s.kind, func(t *testing.T) {
			o := newOriginsEFP(t, site.NamesCopies)
			base := s.start(t, bucketURL, o.fallback.URL)
			for _, c := range efpCases(t) {
				checkCase(t, base, c)
			}
			for _, object := range site.UserObjects() {
				path := "/api/v1/users/" + unknownAddress + "/" + string(object)
				sameAnswer(t, path, ask(t, http.MethodGet, base, path), o.direct(t, http.MethodGet, path), s.unseen...)
			}
		})
	}
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
			sameConditions(t, s, o, base, path)
		}
	})
}

// Every valid batch reaches the fallback once, with any content type and cookie.
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
		for _, fail := range []func(){func() { o.fallback.failing.Store(http.StatusBadGateway) }, func() { o.fallback.down.Store(true) }} {
			fail()
			a, err := trySend(http.MethodPost, base, path, `["alice.eth"]`)
			if err != nil || a.status != http.StatusServiceUnavailable || a.body != string(site.Unavailable.Body()) {
				t.Errorf("while the fallback fails: got %d %s (%v), want the 503 of the API", a.status, a.body, err)
			}
		}
		o.fallback.failing.Store(0)
		o.fallback.down.Store(false)
		if s.kind == "cloudfront" {
			return // CloudFront never announces the length of a body
		}
		for _, body := range []string{`["alice.eth"]`, long + " "} { // in chunks, without a length
			want, err := trySend(http.MethodPost, o.fallback.URL, path, body)
			if err != nil {
				t.Fatal(err)
			}
			request, err := http.NewRequest(http.MethodPost, base+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			request.ContentLength = -1
			if got, err := do(request); err != nil || got.status != want.status || got.body != want.body {
				t.Errorf("%d bytes in chunks: got %d %.200s (%v), want %d %s", len(body), got.status, got.body, err, want.status, want.body)
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

// Without a fallback an edge answers with objects, as WithoutFallback and the pages in docs/deploy
// say. It never answers a later page with the first one.
func TestConformanceEFPWithoutFallback(t *testing.T) {
	forEFP(t, func(t *testing.T, s subject, names string) {
		o := newOriginsEFP(t, names)
		base := s.start(t, o.bucket.URL+"/bucket", "")
		compared := 0
		for _, c := range efpCases(t) {
			path, query, _ := strings.Cut(c.Path, "?")
			r, forward := edge.AtEdge(o.config, c.Method, path, query)
			if s.kind != "worker" && encoded.MatchString(path) || !s.receives(path) || s.degrades && !s.decides(path, query, r) {
				continue // these edges need the fallback for it
			}
			want := o.alone(t, s, c, r, forward)
			got, err := trySend(c.Method, base, c.Path, c.Sent)
			if err != nil || got.status != want.status || c.Method != http.MethodHead && got.body != want.body {
				t.Errorf("%s %s: got %d %.300s (%v), want %d %.300s", c.Method, c.Path, got.status, got.body, err, want.status, want.body)
			}
			compared++
		}
		if compared < 250 {
			t.Errorf("compared answers: got %d, want at least 250", compared)
		}
	})
}

// encoded matches paths with names that only some engines can fold.
var encoded = regexp.MustCompile(`%[89A-Fa-f]`)

// decides reports whether Caddy, which decides by expressions alone, gives the exact answer: it decodes
// nothing, lowers no letters, checks neither parameters nor second users, and knows limits of leaderboards in
// their normal form only.
func (s subject) decides(path, query string, r site.Resolution) bool {
	if strings.HasPrefix(path, "/api/v1/leaderboard/") && query != "" {
		return false
	}
	parameter := r.Problem != nil && r.Problem != site.BadTokenID && r.Problem.Status == http.StatusBadRequest
	return !strings.Contains(path, "%") && !parameter && r.Problem != site.NoSuchName && !upperUser.MatchString(path)
}

var upperUser = regexp.MustCompile(`/users/[^/]*[A-Z]`)

// alone returns the answer of an edge without a fallback.
func (o *origins) alone(t *testing.T, s subject, c fixtures.Case, r site.Resolution, forward string) answer {
	t.Helper()
	if s.kind == "nginx" && len(c.Sent) > site.MaxBatchBytes { // nginx does not read larger bodies
		return answer{status: site.BodyTooLarge.Status, body: string(site.BodyTooLarge.Body())}
	}
	if forward != "" {
		body, problem := edge.WithoutFallback(o.config, r)
		if body != "" {
			return answer{status: http.StatusOK, body: body}
		}
		if problem != nil {
			return answer{status: problem.Status, body: string(problem.Body())}
		}
	}
	if r.Key == "" {
		return o.sent(t, c)
	}
	if ask(t, http.MethodGet, o.bucket.URL, "/bucket"+r.Key.URLPath()).status == http.StatusOK || s.kind == "nginx" || s.kind == "worker" {
		return o.direct(t, http.MethodGet, r.Key.URLPath())
	}
	problem := site.NoSuchName
	switch empty, _ := edge.WithoutFallback(o.config, site.Resolution{Action: site.AnswerComputed, Route: r.Route, Ask: site.Ask{Offset: 1}}); {
	case s.absentAs != nil:
		problem = s.absentAs
	case r.Address == "":
		return o.direct(t, http.MethodGet, r.Key.URLPath())
	case empty != "":
		return answer{status: http.StatusOK, body: empty}
	}
	return answer{status: problem.Status, body: string(problem.Body())}
}

func (o *origins) sent(t *testing.T, c fixtures.Case) answer {
	t.Helper()
	a, err := trySend(c.Method, o.fallback.URL, c.Path, c.Sent)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
