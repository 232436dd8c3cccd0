package edge_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/internal/testenv/servers"
)

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
