package render

import (
	"fmt"
	"html/template"
	"strconv"

	"github.com/followpress/followpress/site/page"
)

// Sizes of a badge, in tenths of a pixel where they are widths.
const (
	badgeHeight = 20
	badgeSide   = 60 // beside each text
	letterWidth = 70 // of what the table does not have
)

// letterWidths are the widths of the letters that badges show, in tenths of a pixel: of Verdana and its likes in 11 px.
// Another font is stretched or pressed to them (textLength).
var letterWidths = map[rune]int{
	'0': 70, '1': 70, '2': 70, '3': 70, '4': 70, '5': 70, '6': 70, '7': 70, '8': 70, '9': 70, ',': 40,
	'e': 66, 'f': 39, 'l': 30, 'o': 67, 'r': 47, 's': 57, 'w': 90,
}

// widthOf is the width of a text, in tenths of a pixel.
func widthOf(text string) (width int) {
	for _, letter := range text {
		if w, ok := letterWidths[letter]; ok {
			width += w
		} else {
			width += letterWidth
		}
	}
	return width
}

// emitBadges emits the badges of an account, for light and for dark pages.
func (p *pageRenderer) emitBadges(account uint32, own string, emit Emitter) {
	n := p.followersOf(account)
	label, count, name := followersWord(n), grouped(n), template.HTMLEscapeString(p.nameOf(account))
	colour := page.Colour(p.config)
	emit(2*objectBytes, func(b []byte) []byte { return appendBadge(b, label, count, name, "#e3e8ed", "#17222e", colour) }, page.BadgeKey(own))
	emit(2*objectBytes, func(b []byte) []byte { return appendBadge(b, label, count, name, "#2d3a47", "#e1e8ee", colour) }, page.DarkBadgeKey(own))
}

// appendBadge appends a picture of a count with its label. name is escaped already; all else is ours.
func appendBadge(b []byte, label, count, name, ground, ink, colour string) []byte {
	left, right := widthOf(label)+2*badgeSide, widthOf(count)+2*badgeSide
	width := (left + right + 9) / 10
	b = fmt.Appendf(b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" role="img"><title>%s: %s %s</title>`, width, badgeHeight, name, count, label)
	b = fmt.Appendf(b, `<clipPath id="r"><rect width="%d" height="%d" rx="3"/></clipPath><g clip-path="url(#r)"><path fill="%s" d="M0 0h%d.%dv%dH0"/>`+
		`<path fill="%s" d="M%[4]d.%[5]d 0H%[1]dv%[2]dH%[4]d.%[5]d"/></g><g font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">`,
		width, badgeHeight, ground, left/10, left%10, badgeHeight, colour)
	b = appendBadgeText(b, label, ink, badgeSide)
	b = appendBadgeText(b, count, inkOn(colour), left+badgeSide)
	return append(b, "</g></svg>\n"...)
}

func appendBadgeText(b []byte, text, ink string, at int) []byte {
	w := widthOf(text)
	return fmt.Appendf(b, `<text x="%d.%d" y="14" fill="%s" textLength="%d.%d">%s</text>`, at/10, at%10, ink, w/10, w%10, text)
}

// inkOn is black or white, whichever has more contrast on a colour (WCAG 2, relative luminance roughly).
func inkOn(colour string) string {
	rgb, err := strconv.ParseUint(colour[1:], 16, 32)
	if err != nil {
		return "#fff" // does not happen: site.Config checks colours
	}
	if luma := 299*(rgb>>16) + 587*(rgb>>8&0xff) + 114*(rgb&0xff); luma > 150*1000 {
		return "#000"
	}
	return "#fff"
}
