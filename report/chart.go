package report

import (
	"math"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/width"
)

// The page's template writes charts as SVG and escapes all text. Colours are classes, which the style sheet defines for
// light, dark and paper.
//
// SVG libraries fix colours and fonts, put them into style attributes, which the page's policy would have to allow,
// and do not label parts for screen readers. Horizontal bars need little code.

// Horizontal lengths are shares of the page's width, vertical ones are pixels, so that letters keep their size on
// small screens.

// A chart is a picture of horizontal bars below their names.
type chart struct {
	ID     id   // unique in the page
	Title  Text // description of the picture, also for screen readers
	Legend []legend
	Height int
	Axis   share // 0 unless a bar has parts to the left
	Bars   []drawnBar
	Rects  []rect
}

type legend struct {
	Class class
	Text  Text
}

// A drawnBar is the name and the value of a bar, and its piece of the axis.
type drawnBar struct {
	Y                int
	Name, Full       Text // Full is the full name, if Name was cut
	Value            Text
	AxisTop, AxisEnd int
}

// A rect is a part of a bar.
type rect struct {
	X     share
	Y     int
	W     share
	H     int
	Class class
	Title Text
}

// Constants of this package in a picture.
type (
	id    string
	class string
)

// A share is a length as a part of the width. It is written with few decimals, so that pages do not depend on a
// processor's rounding.
type share float64

func (s share) String() string {
	return strconv.FormatFloat(math.Round(float64(s)*1e4)/100, 'f', -1, 64) + "%"
}

const (
	rowHeight = 36
	barHeight = 12
	labelRoom = 208 // for a name above a bar, next to a number
)

// A bar is a row of a bar chart.
type bar struct {
	Label Text
	Value Text   // shown opposite the label
	Parts []part // to the right of the axis
	Left  []part // to the left of the axis
}

// A part is a piece of a bar. It has no width unless its value is positive.
type part struct {
	Value int
	Class class
	Title Text
}

func sum(parts []part) (total int) {
	for _, p := range parts {
		total += max(p.Value, 0)
	}
	return total
}

// bars draws bars on both sides of an axis if any bar has parts on the left. It returns nil without bars.
func bars(id id, title Text, legends []legend, rows []bar) *chart {
	if len(rows) == 0 {
		return nil
	}
	c := &chart{ID: id, Title: title, Legend: legends, Height: rowHeight * len(rows)}
	mostLeft, mostRight := 0, 0
	for _, row := range rows {
		mostLeft, mostRight = max(mostLeft, sum(row.Left)), max(mostRight, sum(row.Parts))
	}
	shareOf := func(n int) share { return share(float64(n) / float64(max(mostLeft+mostRight, 1))) }
	c.Axis = shareOf(mostLeft)
	for i, row := range rows {
		end := (i + 1) * rowHeight
		draw := func(p part, from int) {
			if p.Value > 0 {
				c.Rects = append(c.Rects, rect{shareOf(from), end - barHeight - 4, max(shareOf(p.Value), 0.001), barHeight, p.Class, p.Title})
			}
		}
		right, left := mostLeft, mostLeft
		for _, p := range row.Parts {
			draw(p, right)
			right += max(p.Value, 0)
		}
		for _, p := range row.Left {
			left -= max(p.Value, 0)
			draw(p, left)
		}
		drawn := drawnBar{Y: end - barHeight - 8, Name: shortLabel(row.Label), Value: row.Value, AxisTop: end - barHeight - 6, AxisEnd: end - 2}
		if drawn.Name != row.Label {
			drawn.Full = row.Label
		}
		c.Bars = append(c.Bars, drawn)
	}
	return c
}

// shortLabel cuts a name to fit above a bar.
func shortLabel(text Text) Text {
	if lengthOf(text) <= labelRoom {
		return text
	}
	if strings.HasPrefix(string(text), "0x") && len(text) == 42 {
		return text[:10] + "…" + text[len(text)-6:]
	}
	letters := []rune(string(text))
	for len(letters) > 0 && lengthOf(Text(letters)+"…") > labelRoom {
		letters = letters[:len(letters)-1]
	}
	return plain(string(letters) + "…")
}

// lengthOf returns the maximum width of a text in common system fonts, in pixels.
func lengthOf(text Text) (total float64) {
	for _, letter := range string(text) {
		switch kind := width.LookupRune(letter).Kind(); {
		case kind == width.EastAsianWide || kind == width.EastAsianFullwidth || letter > 0xffff:
			total += 16 // including emoji
		case strings.ContainsRune("mwMW@%", letter) || letter > 0x24f:
			total += 12
		case unicode.IsUpper(letter):
			total += 9.5
		case strings.ContainsRune("ijlt.,:;'|! ", letter):
			total += 4.8
		default:
			total += 7.7
		}
	}
	return total
}

var english = message.NewPrinter(language.English)

// number formats n with commas between groups of three digits.
func number(n int) Text {
	return plain(strings.Replace(english.Sprintf("%d", n), "-", "−", 1))
}

func signed(n int) Text {
	if n > 0 {
		return "+" + number(n)
	}
	return number(n)
}

// size formats a number of bytes.
func size(bytes int64) Text {
	sign, n := "", float64(bytes)
	if n < 0 {
		sign, n = "−", -n
	}
	for _, unit := range []struct {
		size float64
		name string
	}{{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}} {
		if n >= unit.size {
			return textf("%s%.1f %s", sign, n/unit.size, unit.name)
		}
	}
	return textf("%s%.0f B", sign, n)
}
