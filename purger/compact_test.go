package purger

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// compactNaively compares every URL with every other one.
func compactNaively(p Purge) Purge {
	matches := func(pattern, path string) bool {
		return regexp.MustCompile("^" + expression(pattern) + "$").MatchString(path)
	}
	below := func(path string) bool {
		return slices.ContainsFunc(p.Wide, func(w string) bool { return strings.HasSuffix(w, "/") && w != path && strings.HasPrefix(path, w) })
	}
	var left Purge
	for _, pattern := range p.Each {
		if !below(pattern) {
			left.Each = append(left.Each, pattern)
		}
	}
	covered := func(path string) bool {
		return below(path) || slices.ContainsFunc(left.Each, func(pattern string) bool { return matches(pattern, path) })
	}
	for _, w := range p.Wide {
		if !covered(w) {
			left.Wide = append(left.Wide, w)
		}
	}
	for _, u := range p.Exact {
		if path, _, _ := strings.Cut(u, "?"); !slices.Contains(p.Wide, path) && !covered(path) {
			left.Exact = append(left.Exact, u)
		}
	}
	for _, list := range []*[]string{&left.Exact, &left.Wide, &left.Each} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return left
}

// Nothing that is covered is purged twice, and nothing else is left out.
func TestCompactLeavesWhatTheNaiveWayLeaves(t *testing.T) {
	random := rand.New(rand.NewPCG(22, 6))
	path := func(segments ...string) string {
		var b strings.Builder
		for range 1 + random.IntN(4) {
			b.WriteString("/" + segments[random.IntN(len(segments))])
		}
		return b.String()
	}
	removed := 0
	for range 5_000 {
		var p Purge
		for range random.IntN(8) {
			p.Exact = append(p.Exact, path("a", "b", "ab", "*")+[]string{"", "?", "?a=/b/", "?*"}[random.IntN(4)])
		}
		for range random.IntN(4) {
			p.Wide = append(p.Wide, path("a", "b", "ab", "*")+[]string{"", "/"}[random.IntN(2)])
			p.Each = append(p.Each, path("a", "b", "*", "*"))
		}
		want := compactNaively(p)
		got := Purge{Exact: slices.Clone(p.Exact), Wide: slices.Clone(p.Wide), Each: slices.Clone(p.Each)}.compact()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("compact of %v\ngot  %v\nwant %v", p, got, want)
		}
		removed += len(p.Exact) + len(p.Wide) + len(p.Each) - len(got.Exact) - len(got.Wide) - len(got.Each)
	}
	if removed < 4_000 {
		t.Errorf("got %d URLs removed in all, want more to test with", removed)
	}
}

// A night that changes every list purges in time. Compared with each other, these URLs take longer than
// a test may.
func TestCompactOfManyURLs(t *testing.T) {
	const lists = 50_000
	p := manyURLs(lists)
	got := p.compact()
	if len(got.Each) != lists || len(got.Wide) != lists || len(got.Exact) != lists {
		t.Errorf("got %d, %d and %d URLs, want %d of each", len(got.Each), len(got.Wide), len(got.Exact), lists)
	}
}

// manyURLs has a folder, a pattern, and URLs that they cover and do not cover, of each list.
func manyURLs(lists int) (p Purge) {
	for i := range lists {
		list := fmt.Sprintf("/api/v1/lists/%d/", i)
		p.Wide = append(p.Wide, list+"search/", list+"search/1")
		p.Each = append(p.Each, list+"*/buttonState", list+"search/*")
		p.Exact = append(p.Exact, list+"bob/buttonState", list+"records", list+"search/2?limit=1")
	}
	return p
}
