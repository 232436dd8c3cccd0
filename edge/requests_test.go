package edge_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
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

// Random variations of the conformance requests get the handler's answers.
func TestRandomRequests(t *testing.T) {
	forEdges(t, func(t *testing.T, s subject) { sendRandom(t, s, newOrigins(t), conformanceCases(t)) })
}

func TestRandomRequestsEFP(t *testing.T) {
	forEFP(t, func(t *testing.T, s subject, names string) { sendRandom(t, s, newOriginsEFP(t, names), efpCases(t)) })
}

func sendRandom(t *testing.T, s subject, o *origins, cases []fixtures.Case) {
	base := s.start(t, o.bucket.URL+"/bucket", o.fallback.URL)
	random := rand.New(rand.NewPCG(1, 2))
	tries, compared := servers.Rounds(300, 3_000), 0
	for range tries {
		path := bend(random, cases[random.IntN(len(cases))].Path)
		if !s.receives(path) {
			continue
		}
		got, err := tryAsk(http.MethodGet, base, path)
		want := o.served(t, path)
		if err != nil || want.status == 0 {
			continue // not even a request
		}
		sameAnswer(t, path, got, want, s.unseen...)
		compared++
	}
	if least := tries * 2 / 3; compared < least {
		t.Errorf("compared requests: got %d, want at least %d", compared, least)
	}
}

// served returns the answer of the handler over HTTP; status 0 where Go's server refuses the request.
func (o *origins) served(t testing.TB, path string) answer {
	t.Helper()
	a, err := tryAsk(http.MethodGet, o.fallback.URL, path)
	if err != nil || a.status == http.StatusBadRequest && !strings.HasPrefix(a.body, "{") {
		return answer{}
	}
	return a
}

func bend(random *rand.Rand, path string) string {
	path, query, _ := strings.Cut(path, "?")
	for random.IntN(3) == 0 {
		at := 1 + random.IntN(len(path))
		switch random.IntN(3) {
		case 0:
			if at < len(path) && path[at] != '%' {
				path = path[:at] + fmt.Sprintf("%%%02x", path[at]) + path[at+1:]
			}
		case 1:
			path = path[:at] + pick(random, "/", "%25", "%2F", "..", "x", "%41", "&", "=", "+", "0", "%00", "%C3%89", "%FF", "%EF%B8%8F", "%01", "!", "%20") + path[min(len(path), at+random.IntN(2)):]
		case 2:
			path = strings.ToUpper(path[:at]) + path[at:]
		}
	}
	for random.IntN(2) == 0 {
		name := pick(random, "limit", "offset", "term", "includeTags", "cache", "Limit", "l%69mit", "x", "", "%26limit", "%01",
			"sort", "direction", "tags", "include", "include", "leader", "interval", "opcode", "tag", "tag")
		value := pick(random, "", "1", "5", "05", "10", "100", "101", "0", "-1", "+5", "%35", "x", "true", "false", "TRUE", "%66alse", "999999999999999999",
			"9999999999999999999", "fox", "FOX", "+fox%20", "%C3%89t%C3%A9", "%FF", "%E3%80%80", "%C2%A0fox", "a%26limit=5", "%2541", "%3D", "=", "%2B", "%", "%4",
			strings.Repeat("a", 255), strings.Repeat("a", 256), strings.Repeat("%61", 255), strings.Repeat("%C3%A9", 128), "2147483648", "%01A", "%25",
			"ens", "x,ens", "ens%2Cx%01", "Followers", "EARLIEST", "asc", "ASC", ",a,,%2Cb,", "a%252Cb", "alice.eth", "BOB.eth", "0x", "all", "day", "Day", "w%65ek", "2", "3", "top8", "+top8", "a%2cB", "%25%26=")
		pair := pick(random, "", "&", "&&") + name + pick(random, "=", "=", "=", "", "==") + value
		if random.IntN(2) == 0 {
			query = pair + "&" + query
		} else {
			query += "&" + pair
		}
	}
	if query == "" {
		return path
	}
	return path + "?" + query
}

func pick(random *rand.Rand, all ...string) string { return all[random.IntN(len(all))] }

func newOriginsHistory(t testing.TB, names string) *origins {
	t.Helper()
	path, err := historySites[names]()
	if err != nil {
		t.Fatal(err)
	}
	return newOriginsOf(t, path, "")
}

// historyPaths ask about operations. Those of a group have one normal form.
func historyPaths() [][]string {
	const of, feed, list = "/api/v1/users/alice.eth/notifications", "/api/v1/users/bob.eth/notifications.atom", "/api/v1/lists/1/activity"
	return [][]string{
		{of, of + "?", of + "?interval=week&opcode=0&tag=&limit=10&offset=0&start=x7", of + "?limit=010&interval=Day", of + "?opcode=5", "/api/v1/users/ALICE.eth/notifications?x=1"},
		{of + "?interval=all", of + "?interval=%61ll&tag", of + "?tag=&interval=all&interval=day"},
		{of + "?interval=all&limit=50", of + "?limit=50&interval=all"},
		{of + "?interval=all&tag=top8", of + "?tag=top%38&interval=all&tag=x"}, {of + "?interval=all&tag=Top8"}, {of + "?interval=all&tag=%20top8", of + "?interval=all&tag=+top8"},
		{of + "?interval=all&tag=a%2CB", of + "?interval=all&tag=a,B&opcode"}, {of + "?interval=all&tag=%2C"}, {of + "?interval=all&tag=%C3%A9", of + "?tag=%c3%a9&interval=all"},
		{of + "?interval=all&tag=%FF"}, {of + "?interval=all&tag=%25%26%3D"}, {of + "?interval=all&opcode=3"}, {of + "?interval=month&opcode=1&offset=2&limit=3"},
		{of + "?limit=0"}, {of + "?offset=-1&interval=all"}, {"/api/v1/users/0x0101010101010101010101010101010101010101/notifications?interval=all"},
		{"/api/v1/users/nobody.eth/notifications"}, {"/api/v1/users/" + unknownAddress + "/notifications"}, {"/api/v1/users/a%2Fb/notifications"},
		{feed, feed + "?limit=50", feed + "?opcode=9&x"}, {feed + "?interval=all&limit=10"}, {feed + "?interval=all"}, {"/api/v1/users/nobody.eth/notifications.atom"}, {"/api/v1/users/bob.eth/notificationsxatom"},
		{of + "?interval=all&start=0", of + "?start=00&interval=all&start=5"}, {of + "?interval=all&start=1793404800"},
		{list, list + "?interval=week"}, {list + "?interval=all&opcode=2"}, {"/api/v1/lists/01/activity"}, {"/api/v1/lists/404/activity"}, {"/api/v1/lists/1/notifications"},
		{"/api/v1/users/alice.eth/activity"},
	}
}

// Answers about operations equal those of the handler, with all methods and their headers. Requests
// with the same meaning reach the fallback once.
func TestHistory(t *testing.T) {
	forEdges(t, func(t *testing.T, s subject) {
		for _, names := range []string{site.NamesCopies, site.NamesLookup} {
			o := newOriginsHistory(t, names)
			base := s.start(t, o.bucket.URL+"/bucket", o.fallback.URL)
			for _, group := range historyPaths() {
				before := o.fallback.requests.Load()
				var all []answer
				for _, path := range group {
					all = append(all, ask(t, http.MethodGet, base, path))
				}
				asked := o.fallback.requests.Load() - before
				for i, path := range group {
					sameAnswer(t, path, all[i], o.direct(t, http.MethodGet, path), s.unseen...)
				}
				if s.caches && asked > 1 && all[0].status == http.StatusOK {
					t.Errorf("%s: got %d requests to the fallback for %d of one normal form, want 1", group[0], asked, len(group))
				}
			}
			for _, path := range []string{"/api/v1/users/alice.eth/notifications?interval=all", "/api/v1/users/bob.eth/notifications.atom?interval=all", "/api/v1/lists/1/activity?interval=all"} {
				for _, method := range []string{"HEAD", "OPTIONS", "POST", "DELETE"} {
					sameAnswer(t, method+" "+path, ask(t, method, base, path), o.direct(t, method, path), s.unseen...)
				}
				sameConditions(t, s, o, base, path)
			}
			key := "/" + string(site.NotificationsKey("0x0101010101010101010101010101010101010101", 0))
			sameAnswer(t, key, ask(t, http.MethodGet, base, key), o.direct(t, http.MethodGet, key), s.unseen...)
		}
	})
}

func TestRandomRequestsHistory(t *testing.T) {
	var cases []fixtures.Case
	for _, group := range historyPaths() {
		for _, path := range group {
			cases = append(cases, fixtures.Case{Path: path})
		}
	}
	forEFP(t, func(t *testing.T, s subject, names string) {
		sendRandom(t, s, newOriginsHistory(t, names), slices.Concat(cases, cases, efpCases(t)))
	})
}
