package pages

import "strconv"

// Sizes of a badge, which is 20 pixels high, in tenths of a pixel.
const (
	badgeSide   = 60 // next to each text
	letterWidth = 70 // width of letters missing from the table
)

// letterWidths are the widths of letters on badges, in tenths of a pixel: those of Verdana and
// similar fonts at 11 px. Other fonts are stretched or compressed to them (textLength).
var letterWidths = map[rune]int{
	'0': 70, '1': 70, '2': 70, '3': 70, '4': 70, '5': 70, '6': 70, '7': 70, '8': 70, '9': 70, ',': 40,
	'e': 66, 'f': 39, 'l': 30, 'o': 67, 'r': 47, 's': 57, 'w': 90,
}

// widthOf returns the width of a text, in tenths of a pixel.
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

// appendBadge appends a picture of a count with its label. name must be escaped.
func appendBadge(b []byte, label, count, name, ground, ink, colour string) []byte {
	left, right := widthOf(label)+2*badgeSide, widthOf(count)+2*badgeSide
	width := strconv.Itoa((left + right + 9) / 10)
	split := string(appendTenths(nil, left))
	for _, part := range [...]string{
		`<svg xmlns="http://www.w3.org/2000/svg" width="`, width, `" height="20" role="img"><title>`, name, `: `, count, ` `, label, `</title>`,
		`<clipPath id="r"><rect width="`, width, `" height="20" rx="3"/></clipPath><g clip-path="url(#r)"><path fill="`, ground, `" d="M0 0h`, split, `v20H0"/>`,
		`<path fill="`, colour, `" d="M`, split, ` 0H`, width, `v20H`, split, `"/></g><g font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">`,
	} {
		b = append(b, part...)
	}
	b = appendBadgeText(b, label, ink, badgeSide)
	b = appendBadgeText(b, count, inkOn(colour), left+badgeSide)
	return append(b, "</g></svg>\n"...)
}

func appendBadgeText(b []byte, text, ink string, at int) []byte {
	b = append(appendTenths(append(b, `<text x="`...), at), `" y="14" fill="`...)
	b = append(append(b, ink...), `" textLength="`...)
	b = append(appendTenths(b, widthOf(text)), `">`...)
	return append(append(b, text...), "</text>"...)
}

// appendTenths appends a width in pixels.
func appendTenths(b []byte, width int) []byte {
	return append(strconv.AppendInt(b, int64(width/10), 10), '.', byte('0'+width%10))
}

// inkOn returns black or white, whichever has more contrast on a color (WCAG 2, approximate
// relative luminance).
func inkOn(colour string) string {
	c := rgbOf(colour)
	if luma := 299*int(c[0]) + 587*int(c[1]) + 114*int(c[2]); luma > 150*1000 {
		return "#000"
	}
	return "#fff"
}
