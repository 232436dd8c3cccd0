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

// Charts are lists of shapes, computed here and written as SVG by the template of the page, which
// escapes all text. Colours are classes, so that the style sheet has them for light, dark and paper.
//
// Libraries that write SVG fix colours and fonts when they draw, and put them into style attributes,
// which the page's policy would have to allow; and none of the small ones names its parts for screen
// readers. Three kinds of charts are little code.

// A chart is a picture of at most some hundred shapes.
type chart struct {
	ID     id   // unique in the page
	Title  Text // what the picture shows, for those who do not see it too
	Legend []legend
	Width  int
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
	X1, Y1, X2, Y2 px
	Class          class
}

type rect struct {
	X, Y, W, H px
	Class      class
	Title      Text
}

type dot struct {
	X, Y  px
	Class class
	Title Text
}

type label struct {
	X, Y   px
	Anchor anchor // start, middle or end
	Class  class
	Text   Text
	Title  Text // all of a text that is cut
}

// What is in a picture beside texts: always constants of this package.
type (
	id     string
	class  string
	anchor string
)

// A px is a length in a picture. It is written with one decimal at most, so that pages do not depend
// on how a processor rounds.
type px float64

func (p px) String() string {
	return strconv.FormatFloat(math.Round(float64(p)*10)/10, 'f', -1, 64)
}

const (
	chartWidth = 720
	rowHeight  = 24
	barHeight  = 16
	labelWidth = 220 // of the names before bars
	labelRoom  = labelWidth - 12
	valueWidth = 110 // of the numbers after bars
	plotHeight = 240
)

// A bar is a row of a bar chart.
type bar struct {
	Label Text
	Value Text   // shown at its end
	Parts []part // to the right of the axis
	Left  []part // to the left of the axis
}

// A part is a piece of a bar. It has no width unless its value is positive.
type part struct {
	Value float64
	Class class
	Title Text
}

// gap is the class of a part that is not drawn, and only moves the next one.
const gap class = "gap"

func sum(parts []part) (total float64) {
	for _, p := range parts {
		total += max(p.Value, 0)
	}
	return total
}

// bars draws horizontal bars, to both sides of an axis if any bar has a part on the left. It returns
// nil for none.
func bars(id id, title Text, legends []legend, rows []bar) *chart {
	if len(rows) == 0 {
		return nil
	}
	c := &chart{ID: id, Title: title, Legend: legends, Width: chartWidth, Height: rowHeight*len(rows) + 8}
	var mostLeft, mostRight float64
	for _, row := range rows {
		mostLeft, mostRight = max(mostLeft, sum(row.Left)), max(mostRight, sum(row.Parts))
	}
	room := float64(chartWidth - labelWidth - valueWidth)
	scale := 0.0
	if total := mostLeft + mostRight; total > 0 {
		scale = room / total
	}
	axis := labelWidth + mostLeft*scale
	for i, row := range rows {
		y := px(i*rowHeight + 4)
		draw := func(p part, x, w float64) {
			if w > 0 && p.Class != gap {
				c.Rects = append(c.Rects, rect{px(x), y + (rowHeight-barHeight)/2, px(max(w, 0.5)), barHeight, p.Class, p.Title})
			}
		}
		x, left := axis, axis
		for _, p := range row.Parts {
			w := max(p.Value, 0) * scale
			draw(p, x, w)
			x += w
		}
		for _, p := range row.Left {
			w := max(p.Value, 0) * scale
			left -= w
			draw(p, left, w)
		}
		name := label{X: labelWidth - 8, Y: y + rowHeight/2 + 4, Anchor: "end", Class: "name", Text: shortLabel(row.Label)}
		if name.Text != row.Label {
			name.Title = row.Label
		}
		c.Texts = append(c.Texts, name, label{X: px(x + 6), Y: y + rowHeight/2 + 4, Anchor: "start", Class: "value", Text: row.Value})
	}
	c.Lines = append(c.Lines, line{px(axis), 2, px(axis), px(c.Height - 2), "axis"})
	return c
}

// shortLabel cuts a name for the space before a bar.
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

// lengthOf is how wide a text is at most in the fonts that systems have for pages.
func lengthOf(text Text) (total px) {
	for _, letter := range string(text) {
		switch kind := width.LookupRune(letter).Kind(); {
		case kind == width.EastAsianWide || kind == width.EastAsianFullwidth || letter > 0xffff:
			total += 16 // emoji too
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

// columns draws columns, with the first and the last label, and the largest value. It returns nil for
// none.
func columns(id id, title Text, all []column) *chart {
	if len(all) == 0 {
		return nil
	}
	c := &chart{ID: id, Title: title, Width: chartWidth, Height: plotHeight}
	const left, top, bottom = 60, 14, 24
	most := 0.0
	for _, col := range all {
		most = max(most, col.Value)
	}
	wide := float64(chartWidth-left) / float64(len(all))
	for i, col := range all {
		if h := (plotHeight - top - bottom) * col.Value / max(most, 1); h > 0 {
			c.Rects = append(c.Rects, rect{px(left + float64(i)*wide + 1), px(plotHeight - bottom - h), px(max(wide-2, 1)), px(h), "s1", col.Title})
		}
	}
	c.Lines = append(c.Lines, line{left, plotHeight - bottom, chartWidth, plotHeight - bottom, "axis"})
	c.Texts = append(c.Texts, label{left - 6, top + 4, "end", "value", number(int64(most)), ""}, label{left - 6, plotHeight - bottom, "end", "value", "0", ""},
		label{left, plotHeight - 6, "start", "value", all[0].Label, ""})
	if len(all) > 1 {
		c.Texts = append(c.Texts, label{chartWidth, plotHeight - 6, "end", "value", all[len(all)-1].Label, ""})
	}
	return c
}

// A point is an element of a log-log plot. Both values are positive.
type point struct {
	X, Y  float64
	Class class
	Title Text
}

// logLog draws points on logarithmic axes.
func logLog(id id, title, xTitle, yTitle Text, legends []legend, points []point) *chart {
	c := &chart{ID: id, Title: title, Legend: legends, Width: chartWidth, Height: plotHeight + 16}
	const left, top, bottom, right = 70, 28, 40, 36
	mostX, mostY := 1.0, 1.0
	for _, p := range points {
		mostX, mostY = max(mostX, math.Ceil(math.Log10(p.X)+0.01)), max(mostY, math.Ceil(math.Log10(p.Y)+0.01))
	}
	x := func(v float64) px { return px(left + (chartWidth-left-right)*math.Log10(v)/mostX) }
	y := func(v float64) px {
		return px(float64(c.Height-bottom) - float64(c.Height-bottom-top)*math.Log10(v)/mostY)
	}
	for e := range int(mostX) + 1 {
		v := math.Pow10(e)
		c.Lines = append(c.Lines, line{x(v), top, x(v), px(c.Height - bottom), "grid"})
		c.Texts = append(c.Texts, label{x(v), px(c.Height - bottom + 16), "middle", "value", number(int64(v)), ""})
	}
	for e := range int(mostY) + 1 {
		v := math.Pow10(e)
		c.Lines = append(c.Lines, line{left, y(v), chartWidth - right, y(v), "grid"})
		c.Texts = append(c.Texts, label{left - 6, y(v) + 4, "end", "value", number(int64(v)), ""})
	}
	for _, p := range points {
		c.Dots = append(c.Dots, dot{x(p.X), y(p.Y), p.Class, p.Title})
	}
	c.Texts = append(c.Texts, label{chartWidth - right, px(c.Height - 6), "end", "value", xTitle, ""}, label{left, top - 14, "middle", "value", yTitle, ""})
	return c
}

var english = message.NewPrinter(language.English)

// number writes a number with commas between groups of three digits.
func number(n int64) Text {
	return plain(strings.Replace(english.Sprintf("%d", n), "-", "−", 1))
}

func signed(n int64) Text {
	if n > 0 {
		return "+" + number(n)
	}
	return number(n)
}

// size writes a number of bytes.
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
