package pages

import (
	"bytes"
	"encoding/binary"
	"image/png"
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/generator/internal/graph"
	"github.com/followpress/followpress/site"
)

// TestSitemapsAreSmall: no sitemap has more pages than services read, however many there are, and
// each page is in one.
func TestSitemapsAreSmall(t *testing.T) {
	t.Parallel()
	for _, pages := range []int{0, 1, 25_000, 600_000} {
		g := &graph.Graph{Accounts: make([]site.Address, pages)}
		for i := range g.Accounts {
			binary.BigEndian.PutUint64(g.Accounts[i][:], uint64(i))
		}
		p := &Renderer{Relations: &graph.Relations{Graph: g}, accounts: graph.NumbersBelow(pages)}
		parts, err := newSitemaps(t.Context(), 2, "", p.accounts, p.pageOf)
		if err != nil {
			t.Fatal(err)
		}
		var all []uint32
		for bucket := range parts.Names {
			part := parts.In(bucket)
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

func cardOf(name string) card {
	return card{name: name, foot: "graph.example", address: site.Address{0xbb, 0x9c, 0x1a, 19: 0x52}, followers: 1234, following: 18, accent: "#0b5cad"}
}

// TestCards: a card has a fixed size and few bytes, regardless of the name; equal cards have equal
// bytes, also after other cards, and names that differ in a letter have different pictures.
func TestCards(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{
		"lowtide-studio.eth", "lowtide-studia.eth", "o" + strings.Repeat("\u0301\u0489", 500), strings.Repeat("w", 1000), "\u05d0\u05dc\u05d9\u05e1", "日本.eth",
		"\ufffdgnp.exe", "émile.eth", "Ω", "", " ", strings.Repeat("日", 1000),
	} {
		body := appendCard([]byte("x"), cardOf(name))[1:]
		if again := appendCard(nil, cardOf(name)); !bytes.Equal(body, again) {
			t.Errorf("%.20q: got other bytes the second time", name)
		}
		picture, err := png.Decode(bytes.NewReader(body))
		if err != nil || picture.Bounds().Dx() != cardWidth || picture.Bounds().Dy() != cardHeight || len(body) > cardBytes {
			t.Errorf("%.20q: got %d bytes, %v", name, len(body), err)
		}
		seen[string(body)] = name
	}
	if len(seen) < 6 {
		t.Errorf("got %d different pictures", len(seen))
	}
}
