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

// Charts are lists of shapes. The page's template writes them as SVG and escapes all text. Colours are classes, which
// the style sheet defines for light, dark and paper.
//
// SVG libraries fix colours and fonts, put them into style attributes, which the page's policy would have to allow,
// and do not label parts for screen readers. Three kinds of charts need little code.

// Horizontal lengths are shares of the page's width, vertical ones are pixels, so that letters keep their size on
// small screens. The style sheet sets the margins of each kind of chart.

// A chart is a picture of at most some hundred shapes.
type chart struct {
	ID     id // unique in the page
	Kind   class
	Title  Text // description of the picture, also for screen readers
	Legend []legend
	Height int
	Lines  []line
	Rects  []rect
	Dots   []dot
	Texts  []label
}

type legend struct {
	Class class
	Text  Text
}

type line struct {
	X1    share
	Y1    px
	X2    share
	Y2    px
	Class class
}

type rect struct {
	X     share
	Y     px
	W     share
	H     px
	Class class
	Title Text
}

type dot struct {
	X     share
	Y     px
	Class class
	Title Text
}

type label struct {
	X      share
	Aside  px // offset to the right of X
	Y      px
	Anchor anchor // start, middle or end
	Class  class
	Text   Text
	Title  Text // full text, if Text was cut
}

// Constants of this package in a picture.
type (
	id     string
	class  string
	anchor string
)

// A px is a length in pixels, a share one of the width, where 1 is all. They are written with few decimals, so that
// pages do not depend on a processor's rounding.
type (
	px    float64
	share float64
)

func (p px) String() string { return strconv.FormatFloat(math.Round(float64(p)*10)/10, 'f', -1, 64) }
func (s share) String() string {
	return strconv.FormatFloat(math.Round(float64(s)*1e4)/100, 'f', -1, 64) + "%"
}

const (
	rowHeight  = 36
	barHeight  = 12
	labelRoom  = 208 // for a name above a bar, next to a number
	plotHeight = 240
	plotTop    = 28
	plotBottom = 24
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
	Value float64
	Class class
	Title Text
}

// gap is the class of an invisible part that shifts the next one.
const gap class = "gap"

func sum(parts []part) (total float64) {
	for _, p := range parts {
		total += max(p.Value, 0)
	}
	return total
}

// bars draws horizontal bars below their names, on both sides of an axis if any bar has parts on the left. It returns
// nil without bars.
func bars(id id, title Text, legends []legend, rows []bar) *chart {
	if len(rows) == 0 {
		return nil
	}
	c := &chart{ID: id, Kind: "bars", Title: title, Legend: legends, Height: rowHeight * len(rows)}
	var mostLeft, mostRight float64
	for _, row := range rows {
		mostLeft, mostRight = max(mostLeft, sum(row.Left)), max(mostRight, sum(row.Parts))
	}
	total := max(mostLeft+mostRight, math.SmallestNonzeroFloat64)
	for i, row := range rows {
		y := px(i * rowHeight)
		draw := func(p part, from float64) {
			if p.Value > 0 && p.Class != gap {
				c.Rects = append(c.Rects, rect{share(from / total), y + rowHeight - barHeight - 4, share(max(p.Value/total, 0.001)), barHeight, p.Class, p.Title})
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
		name := label{Y: y + rowHeight - barHeight - 8, Anchor: "start", Class: "name", Text: shortLabel(row.Label)}
		if name.Text != row.Label {
			name.Title = row.Label
		}
		c.Texts = append(c.Texts, name, label{X: 1, Y: name.Y, Anchor: "end", Class: "value", Text: row.Value})
	}
	if mostLeft > 0 {
		axis := share(mostLeft / total)
		for i := range rows {
			top := px(i*rowHeight + rowHeight - barHeight - 6)
			c.Lines = append(c.Lines, line{axis, top, axis, top + barHeight + 4, "axis"})
		}
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

// lengthOf returns the maximum width of a text in common system fonts.
func lengthOf(text Text) (total px) {
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

// A column is an element of a column chart.
type column struct {
	Label Text
	Value float64
	Title Text
}

// columns draws columns, with the first and last label and the largest value. It returns nil without columns.
func columns(id id, title Text, all []column) *chart {
	if len(all) == 0 {
		return nil
	}
	c := &chart{ID: id, Kind: "plot", Title: title, Height: plotHeight}
	const foot = plotHeight - plotBottom
	most := 0.0
	for _, col := range all {
		most = max(most, col.Value)
	}
	wide := 1 / share(len(all))
	for i, col := range all {
		if h := px((foot - plotTop) * col.Value / max(most, 1)); h > 0 {
			c.Rects = append(c.Rects, rect{(share(i) + 0.1) * wide, foot - h, 0.8 * wide, h, "s1", col.Title})
		}
	}
	c.Lines = append(c.Lines, line{0, foot, 1, foot, "axis"})
	c.Texts = append(c.Texts, label{0, -6, plotTop + 4, "end", "value", number(int64(most)), ""}, label{0, -6, foot, "end", "value", "0", ""},
		label{0, 0, plotHeight - 6, "start", "value", all[0].Label, ""})
	if len(all) > 1 {
		c.Texts = append(c.Texts, label{1, 0, plotHeight - 6, "end", "value", all[len(all)-1].Label, ""})
	}
	return c
}

// A point is an element of a log-log plot. Both values are positive.
type point struct {
	X, Y  float64
	Class class
	Title Text
}

// mostMarks is the number of axis labels that fit on a phone.
const mostMarks = 5

// logLog draws points on logarithmic axes.
func logLog(id id, title, xTitle, yTitle Text, legends []legend, points []point) *chart {
	const foot = plotHeight - plotBottom
	c := &chart{ID: id, Kind: "plot", Title: title, Legend: legends, Height: plotHeight + 16}
	mostX, mostY := 1.0, 1.0
	for _, p := range points {
		mostX, mostY = max(mostX, math.Ceil(math.Log10(p.X)+0.01)), max(mostY, math.Ceil(math.Log10(p.Y)+0.01))
	}
	x := func(v float64) share { return share(math.Log10(v) / mostX) }
	y := func(v float64) px { return px(foot - (foot-plotTop)*math.Log10(v)/mostY) }
	step := (int(mostX) + mostMarks - 1) / mostMarks
	for e := range int(mostX) + 1 {
		v := math.Pow10(e)
		c.Lines = append(c.Lines, line{x(v), plotTop, x(v), foot, "grid"})
		if e%step == 0 {
			c.Texts = append(c.Texts, label{x(v), 0, foot + 16, "middle", "value", number(int64(v)), ""})
		}
	}
	for e := range int(mostY) + 1 {
		v := math.Pow10(e)
		c.Lines = append(c.Lines, line{0, y(v), 1, y(v), "grid"})
		c.Texts = append(c.Texts, label{0, -6, y(v) + 4, "end", "value", number(int64(v)), ""})
	}
	for _, p := range points {
		c.Dots = append(c.Dots, dot{x(p.X), y(p.Y), p.Class, p.Title})
	}
	c.Texts = append(c.Texts, label{1, 0, px(c.Height - 6), "end", "value", xTitle, ""}, label{0, -6, plotTop - 14, "end", "value", yTitle, ""})
	return c
}

var english = message.NewPrinter(language.English)

// number formats n with commas between groups of three digits.
func number(n int64) Text {
	return plain(strings.Replace(english.Sprintf("%d", n), "-", "−", 1))
}

func signed(n int64) Text {
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
