package report

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/url"
	"strings"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/templates"
)

// dressed returns template functions for the page's style, with links in a colour unless it is "", and for its
// policy. The policy forbids scripts, requests, and any other style.
func dressed(colour Text) template.FuncMap {
	sheet := templates.ReportStyle
	if colour != "" { // the explorer uses the same rule for dark pages
		sheet += fmt.Sprintf(":root { --link: light-dark(%[1]s, color-mix(in oklab, %[1]s 45%%, white)); }\n", colour)
	}
	sum := sha256.Sum256([]byte(sheet))
	policy := plain("default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'")
	return template.FuncMap{
		"style":  func() template.CSS { return template.CSS(sheet) }, // trusted: a constant, and a colour of three numbers
		"policy": func() Text { return policy },
	}
}

// A captioned is the input of a table's template.
type captioned struct {
	Caption Text
	Rows    any
}

// A fromTo is the input of the template of a changed text.
type fromTo struct{ From, To Text }

// pages are the templates. They are cloned for each page, with functions for its links.
var pages = template.Must(template.New("pages").Funcs(links("")).Funcs(dressed("")).Funcs(template.FuncMap{
	"count": number,
	"bytes": size,
	"orDash": func(n int) Text {
		if n == 0 {
			return "–"
		}
		return number(n)
	},
	"table":      func(caption Text, rows any) captioned { return captioned{caption, rows} },
	"pair":       func(from, to Text) fromTo { return fromTo{from, to} },
	"toPut":      func(k ObjectKind) Text { return size(k.Added.Bytes + k.Altered.Bytes) },
	"boardTitle": boardTitle,
	"moment":     moment,
	"day":        day,
}).Parse(templates.Report))

// moment and day format a time and a date for people. They return other texts unchanged.
func moment(asOf Text) Text {
	if t, err := time.Parse(time.RFC3339, string(asOf)); err == nil {
		return plain(templates.Moment(t))
	}
	return asOf
}

func day(date Text) Text {
	if t, err := time.Parse(dateFormat, string(date)); err == nil {
		return plain(t.Format("2 January 2006"))
	}
	return date
}

// links returns template functions for links into an explorer; without an explorer, they return "" for no link.
func links(explorer Text) template.FuncMap {
	at := func(place string) Text {
		if explorer == "" {
			return ""
		}
		return explorer + plain("#/"+place)
	}
	return template.FuncMap{
		"place":   at,
		"account": func(address Text) Text { return at("a/" + url.PathEscape(string(address))) },
		"board":   func(b site.Board) Text { return at("boards/" + url.PathEscape(string(b))) },
		"list": func(l ListChange) Text {
			if l.State == "gone" {
				return ""
			}
			return at("l/" + url.PathEscape(string(l.List)))
		},
	}
}

func boardTitle(board site.Board) Text {
	switch board {
	case site.Blocked:
		return "how many block them"
	case site.Blocks:
		return "how many they block"
	case site.Muted:
		return "how many mute them"
	case site.Mutes:
		return "how many they mute"
	}
	return plain(string(board)) // followers, following, mutuals
}

type sizeRow struct{ What, From, To, Difference Text }

func countRow(what Text, from, to int) sizeRow {
	return sizeRow{what, number(from), number(to), signed(to - from)}
}

func (r *Report) sizes() []sizeRow {
	a, b := r.From.Counts, r.To.Counts
	difference := size(b.Bytes - a.Bytes)
	if b.Bytes > a.Bytes {
		difference = "+" + difference
	}
	return []sizeRow{
		countRow("accounts", a.Accounts, b.Accounts), countRow("lists", a.Lists, b.Lists), countRow("primary lists", a.Primary, b.Primary),
		countRow("records", a.Records, b.Records), countRow("follows", a.Follows, b.Follows), countRow("names", a.Names, b.Names),
		countRow("events", a.Events, b.Events), countRow("objects", a.Objects, b.Objects),
		{"bytes", size(a.Bytes), size(b.Bytes), difference},
	}
}

// A view is the input of a report's template: the report and its pictures, nil for none.
type view struct {
	Title  Text
	Home   Text // target of the title; "" for none
	Report *Report
	Sizes  []sizeRow

	Summary, Largest, Moved, Tags, Objects *chart

	Boards []*chart
}

// HTML renders the report as one page without scripts, external resources or links, so that it can be stored
// anywhere. Equal reports give equal bytes.
func (r *Report) HTML() ([]byte, error) { return r.page("") }

// page renders the report with links to an explorer, "" for none.
func (r *Report) page(explorer Text) ([]byte, error) {
	v := &view{Title: "What changed: " + moment(r.From.AsOf) + " to " + moment(r.To.AsOf), Report: r, Sizes: r.sizes()}
	if r.Brand.Title != "" {
		v.Title += " – " + r.Brand.Title
	}
	if explorer != "" {
		v.Home = cmp.Or(r.Brand.Home, explorer)
	}
	if !r.Equal {
		v.draw(r)
	}
	var b bytes.Buffer
	copied, err := pages.Clone()
	if err == nil {
		err = copied.Funcs(links(explorer)).Funcs(dressed(r.Brand.Colour)).ExecuteTemplate(&b, "report", v)
	}
	if err != nil {
		return nil, fmt.Errorf("render the page: %w", err)
	}
	return b.Bytes(), nil
}

var (
	moreLess      = []legend{{"s1", "more"}, {"s2", "less"}}
	followsLegend = []legend{{"s1", "follows"}, {"s2", "unfollows"}}
)

// balance returns a bar with gains on the right and losses on the left.
func balance(name Text, more, less int) bar {
	b := bar{Label: name, Value: "0"}
	var value Text
	if more > 0 {
		value = "+" + number(more)
		b.Parts = []part{{more, "s1", name + ": +" + number(more)}}
	}
	if less > 0 {
		value += " −" + number(less)
		b.Left = []part{{less, "s2", name + ": −" + number(less)}}
	}
	if value != "" {
		b.Value = plain(strings.TrimSpace(string(value)))
	}
	return b
}

func nameOr(name, address Text) Text {
	if name != "" {
		return name
	}
	return address
}

func (v *view) draw(r *Report) {
	f := r.Follows
	v.Summary = bars("summary", "Started and ended", []legend{{"s1", "started"}, {"s2", "ended"}}, []bar{
		balance("lists", r.Lists.New, r.Lists.Gone), balance("follows", f.Follows, f.Unfollows),
		balance("blocks", f.Blocks, f.Unblocks), balance("mutes", f.Mutes, f.Unmutes),
	})
	var largest, moved, tags, kinds []bar
	for _, l := range r.Lists.Largest {
		name := "list " + l.List
		if l.Name != "" {
			name = l.List + " " + l.Name
		}
		largest = append(largest, balance(name, l.Follows, l.Unfollows))
	}
	v.Largest = bars("largest", "Lists with the most follows and unfollows", followsLegend, largest)
	for _, a := range append(firstOf(r.Accounts.Gained, mostPlaces), firstOf(r.Accounts.Lost, mostPlaces)...) {
		moved = append(moved, balance(nameOr(a.Name, a.Address), a.Follows, a.Unfollows))
	}
	v.Moved = bars("moved", "New and lost followers, counting all lists", followsLegend, moved)
	for _, b := range r.Boards {
		v.Boards = append(v.Boards, drawBoard(b))
	}
	for _, t := range append(firstOf(r.Tags.More, mostPlaces), firstOf(r.Tags.Less, mostPlaces)...) {
		tags = append(tags, balance(t.Tag, t.Added, t.Removed))
	}
	v.Tags = bars("tags", "Times a tag was added and removed", moreLess, tags)
	for _, k := range r.Objects {
		of := func(n Count, class class, what Text) part {
			return part{n.Objects, class, k.Kind + ": " + number(n.Objects) + " " + what}
		}
		kinds = append(kinds, bar{
			Label: shortKind(k.Kind), Value: number(k.Added.Objects + k.Altered.Objects + k.Removed.Objects),
			Parts: []part{of(k.Added, "s1", "new"), of(k.Altered, "s4", "changed"), of(k.Removed, "s2", "removed")},
		})
	}
	v.Objects = bars("objects", "Changed objects by kind", []legend{{"s1", "new"}, {"s4", "changed"}, {"s2", "removed"}}, kinds)
}

func firstOf[T any](all []T, n int) []T { return append([]T(nil), all[:min(n, len(all))]...) }

// shortKind returns the end of a pattern, its most specific part.
func shortKind(pattern Text) Text {
	if lengthOf(pattern) <= labelRoom {
		return pattern
	}
	return plain(strings.NewReplacer("{base}/", "", "{token_id}", "#", "{number}", "#", "{address}", "#").Replace(string(pattern)))
}

func drawBoard(b Board) *chart {
	var rows []bar
	for _, p := range append(firstOf(b.Risen, mostPlaces), firstOf(b.Fallen, mostPlaces)...) {
		row := balance(nameOr(p.Name, p.Address), max(p.From-p.To, 0), max(p.To-p.From, 0))
		row.Value = number(p.From) + " → " + number(p.To)
		rows = append(rows, row)
	}
	return bars(id("board-"+b.Board), "Change in rank by "+boardTitle(b.Board), []legend{{"s1", "rose"}, {"s2", "fell"}}, rows)
}
