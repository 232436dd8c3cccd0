package edge_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/edge"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/site"
)

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

// Without a fallback nobody can answer.
func TestHistoryWithoutFallback(t *testing.T) {
	forEdges(t, func(t *testing.T, s subject) {
		o := newOriginsHistory(t, site.NamesCopies)
		base := s.start(t, o.bucket.URL+"/bucket", "")
		for _, path := range []string{"/api/v1/users/alice.eth/notifications", "/api/v1/users/alice.eth/notifications.atom?interval=all", "/api/v1/lists/1/activity?tag=x"} {
			if got := ask(t, http.MethodGet, base, path); got.status != http.StatusServiceUnavailable || got.body != string(site.Unavailable.Body()) {
				t.Errorf("%s: got %d %.300s, want the 503 of the API", path, got.status, got.body)
			}
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

// The path groups agree with AtEdge.
func TestHistoryPaths(t *testing.T) {
	config := withDefaultsOf(t, site.Config{API: site.APIEFP, HistoryWindow: anyWindow})
	seen := map[string]string{}
	for _, group := range historyPaths() {
		for _, request := range group {
			path, query, _ := strings.Cut(request, "?")
			_, forward := edge.AtEdge(config, http.MethodGet, path, query)
			if first, ok := seen[forward]; forward != "" && ok && first != group[0] {
				t.Errorf("%s: got the normal form of %s, want another one", request, first)
			}
			if path, query, _ := strings.Cut(group[0], "?"); forward != "" {
				seen[forward] = group[0]
				if _, same := edge.AtEdge(config, http.MethodGet, path, query); same != forward {
					t.Errorf("%s: got the normal form %s, want %s", request, forward, same)
				}
			}
		}
	}
}
