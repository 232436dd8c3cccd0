package edge_test

import (
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
