package browser_test

import (
	"image"
	"image/color"
	"image/draw"
	"strings"
	"testing"

	"github.com/followpress/followpress/browsers/internal/browser"
	"github.com/followpress/followpress/internal/testenv/servers"
)

// Compare ignores differences in the rendering of letters, and reports all other changes.
func TestCompare(t *testing.T) {
	servers.Wanted(t)
	b := browser.Start(t, browser.Options{})
	shot := func(page string) image.Image {
		p := b.Open(t, serve(t, map[string]string{"/": start + page}), browser.View{Size: browser.Phone})
		p.Settle()
		return p.Screenshot()
	}
	style := func(rules string) string {
		return "<style>body{font:16px/24px system-ui;color:#111;background:#fff}button{display:block}" + rules + "</style>"
	}
	text := "<p>" + strings.Repeat("The quick brown fox jumps over the lazy dog. ", 12) + "<p><a href=#>A link to something</a> and 12,345 more" +
		"<p><button>Search</button><p class=small><small>Small print at the end of the page, of several words</small>"
	plain := shot(style("") + text)
	for _, test := range []struct {
		name, page string
		same       bool
	}{
		{"the same", style("") + text, true},
		{"part of a pixel to the right", style("p{position:relative;transform:translateX(.4px)}") + text, true},
		{"part of a pixel down", style("p{transform:translateY(.3px)}") + text, true},
		{"softer letters", style("p{filter:blur(.4px)}") + text, true},
		{"bolder letters", style("p{-webkit-text-stroke:.1px}") + text, true},
		{"a link of another colour", style("a{color:#a00}") + text, false},
		{"a grey for black", style("small{color:#999}") + text, false},
		{"a word less", style("") + strings.Replace(text, "something", "", 1), false},
		{"no button", style("button{visibility:hidden}") + text, false},
		{"another background", style("html{background:#fbfbfb}body{background:none}") + text, false},
		{"text a line lower", style(".small{padding-top:8px}") + text, false},
		{"larger text", style("p{font-size:16.5px}") + text, false},
		{"another font", style("p{font-family:serif}") + text, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := browser.Compare(shot(test.page), plain); (err == nil) != test.same {
				t.Errorf("got %v, want the same: %v", err, test.same)
			}
		})
	}
}

func TestCompareOfPlainPictures(t *testing.T) {
	paint := func(width, height int, at ...image.Rectangle) image.Image {
		picture := image.NewNRGBA(image.Rect(0, 0, width, height))
		draw.Draw(picture, picture.Rect, image.White, image.Point{}, draw.Src)
		for _, r := range at {
			draw.Draw(picture, r, image.NewUniform(color.NRGBA{0, 0, 200, 255}), image.Point{}, draw.Src)
		}
		return picture
	}
	for _, test := range []struct {
		got  image.Image
		same bool
	}{
		{paint(400, 800), true},
		{paint(400, 801), false},
		{paint(400, 800, image.Rect(100, 100, 102, 116)), true}, // a caret
		{paint(400, 800, image.Rect(100, 100, 124, 124)), false},
	} {
		if err := browser.Compare(test.got, paint(400, 800)); (err == nil) != test.same {
			t.Errorf("got %v, want the same: %v", err, test.same)
		}
	}
}
