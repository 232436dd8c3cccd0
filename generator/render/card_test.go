package render

import (
	"bytes"
	"image/png"
	"strings"
	"testing"

	"github.com/followpress/followpress/site"
)

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

func BenchmarkCard(b *testing.B) {
	var body []byte
	for b.Loop() {
		body = appendCard(body[:0], cardOf("lowtide-studio.eth"))
	}
	b.ReportMetric(float64(len(body)), "bytes")
}
