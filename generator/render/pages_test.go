package render

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/site"
)

// TestSitemapsAreSmall: no sitemap has more pages than services read, however many there are, and
// each page is in one.
func TestSitemapsAreSmall(t *testing.T) {
	t.Parallel()
	for _, pages := range []int{0, 1, 25_000, 600_000} {
		g := &Graph{Accounts: make([]site.Address, pages)}
		for i := range g.Accounts {
			binary.BigEndian.PutUint64(g.Accounts[i][:], uint64(i))
		}
		p := &pageRenderer{efpRenderer: &efpRenderer{relations: &relations{Graph: g}}, accounts: numbersBelow(pages)}
		if err := p.fillSitemaps(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		var all []uint32
		for bucket := range p.sitemaps.names {
			part := p.sitemaps.in(bucket)
			if len(part) > 50_000 {
				t.Errorf("%d pages: got a sitemap of %d, want at most 50,000", pages, len(part))
			}
			all = append(all, part...)
		}
		if slices.Sort(all); !slices.Equal(all, p.accounts) {
			t.Errorf("%d pages: got %d in sitemaps", pages, len(all))
		}
	}
}

// TestBadgeWidths: a badge is as wide as its texts, including letters missing from the table, and
// the count is legible on any color.
func TestBadgeWidths(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": 0, "1": 70, "1,234": 4*70 + 40, "follower": 39 + 67 + 30 + 30 + 67 + 90 + 66 + 47, "?": letterWidth} {
		if got := widthOf(text); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
	for letter := range strings.SplitSeq("followers0123456789,", "") {
		if _, ok := letterWidths[[]rune(letter)[0]]; !ok {
			t.Errorf("%q has no width", letter)
		}
	}
	for colour, want := range map[string]string{"#000000": "#fff", "#ffffff": "#000", "#0b5cad": "#fff", "#ffee00": "#000", "#aa00ff": "#fff"} {
		if got := inkOn(colour); got != want {
			t.Errorf("on %s: got %s, want %s", colour, got, want)
		}
	}
	if got := grouped(4294967295); got != "4,294,967,295" {
		t.Errorf("got %s", got)
	}
}
