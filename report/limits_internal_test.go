package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/site"
)

// TestLimits: changes beyond the limits are counted; those within stay exact.
func TestLimits(t *testing.T) {
	t.Parallel()
	accounts := newCounter[site.Address](2)
	for i := range 10 {
		accounts.add(site.Address{byte(i % 5)}, 1, 0)
	}
	accounts.add(site.Address{9}, 0, 3)
	if got := accountsOf(&accounts); got.Changed != 2 || got.NotCounted != 9 || len(got.Gained) != 2 || got.Gained[0].Follows != 2 {
		t.Errorf("accounts: got %+v", got)
	}

	tags := newCounter[string](2)
	long := `"` + strings.Repeat("x", maxTag) + `"`
	for _, change := range [][2]string{{``, `["a","b"]`}, {`["a","c"]`, `["b"]`}, {``, `[` + long + `]`}, {`["a"]`, `["a"]`}} {
		countTags(&tags, []byte(change[0]), []byte(change[1]))
	}
	got := tagsOf(&tags)
	if got.Changed != 2 || got.NotCounted != 2 || len(got.More) != 1 || got.More[0] != (TagChange{"b", 2, 0}) || len(got.Less) != 0 {
		t.Errorf("tags: got %+v", got)
	}

	profiles := newProfileCounter(2)
	for i := range 4 {
		profiles.add(site.Address{byte(i)}, shownBy{changed: []Text{"name"}}, ProfileChange{Address: Text(rune('a' + i))})
	}
	profiles.add(site.Address{0}, shownBy{primary: true, changed: []Text{"avatar"}}, ProfileChange{Address: "a", AvatarTo: "x"})
	if got := profiles.result(); got.Changed != 2 || got.NotCounted != 2 || got.Names != 1 || got.Avatars != 1 || got.Examples[0].AvatarTo != "x" {
		t.Errorf("profiles: got %+v", got)
	}
}

func TestTop(t *testing.T) {
	t.Parallel()
	first := newTop(3, func(a, b int) int { return a - b })
	for _, n := range []int{5, 1, 9, 3, 7, 2, 8} {
		first.add(n)
	}
	if !slices.Equal(first.first, []int{1, 2, 3}) {
		t.Errorf("got %v", first.first)
	}
}

// TestBins: every degree is in the bin that begins last before it, however large it is.
func TestBins(t *testing.T) {
	t.Parallel()
	last := 0
	for degree := 1; degree < 3_000; degree++ {
		least := leastOf(degree)
		if least > degree || least < last || least != leastOf(least) {
			t.Fatalf("degree %d is in the bin of %d, %d before", degree, least, last)
		}
		last = least
	}
	bins := binned([][2]int{{-1, 5}, {0, 1}, {1, 2}, {1 << 62, 3}}, [][2]int{{5, 1}, {1, 1}})
	if len(bins) != 3 || bins[0] != (Degrees{1, 2, 1}) || bins[2].From != 3 {
		t.Errorf("got %+v", bins)
	}
}

// TestShorten: texts are cut between characters.
func TestShorten(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]Text{
		"": "", "a": "a", "\xff": "\uFFFD", strings.Repeat("é", 100): Text(strings.Repeat("é", 100)), "x" + strings.Repeat("é", 100): Text("x" + strings.Repeat("é", 99) + "…"),
	} {
		if got := shorten(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// FuzzMarkdown: no text becomes markup of Markdown.
func FuzzMarkdown(f *testing.F) {
	for _, seed := range []string{"", "a|b", "<b>", "`x`", "www.x.y", "\u202e", "\u2069]("} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := markdown(plain(text))
		if strings.ContainsAny(got, "|<>`*_[]()!\\~^$@/:\"'\r\n\u202e\u202d\u2066\u2067") || strings.Contains(strings.ToLower(got), "www.") {
			t.Errorf("%q: got %q", text, got)
		}
		if strings.Count(got, "\u2068") > 1 || strings.Count(got, "\u2068") != strings.Count(got, "\u2069") {
			t.Errorf("%q: got unbalanced isolates in %q", text, got)
		}
	})
}

// TestHugeObject: an object that claims to be larger than any of ours is refused before it is read.
func TestHugeObject(t *testing.T) {
	t.Parallel()
	s := &source{name: "new"} // reading its site would panic
	_, err := s.read(t.Context(), site.Entry{Key: "api/v1/lists/1/records", Size: 1 << 40})
	if err == nil || !strings.HasPrefix(err.Error(), "new: api/v1/lists/1/records: 1099511627776 bytes, expected at most 268435456: ") {
		t.Errorf("got %v", err)
	}
}
