// Command draw writes the picture in README.md: the way from a snapshot to an answer.
package main

import (
	"bytes"
	"fmt"
	"html"
	"log"
	"os"
)

//go:generate go run . ../overview.svg

// Sizes are in pixels; the picture is scaled to the width of the page.
const (
	width, height       = 1000, 300
	boxWidth, boxHeight = 136, 76
)

// The style follows the reader's choice of a dark or a light page. The picture brings its
// background, so it is readable where the two disagree.
const style = `
  .page { fill: #ffffff; stroke: #d0d7de }
  .box { fill: #f6f8fa; stroke: #57606a }
  .ours { fill: #ddf4ff; stroke: #0969da }
  .arrow { fill: none; stroke: #57606a; stroke-width: 1.5 }
  .later { stroke-dasharray: 5 4 }
  .head { fill: #57606a }
  text { font: 13px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #57606a; text-anchor: middle }
  .name { font-size: 16px; font-weight: 600; fill: #1f2328 }
  .verb { font-family: ui-monospace, Menlo, Consolas, monospace; font-weight: 600; fill: #0969da }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; stroke: #30363d }
    .box { fill: #161b22; stroke: #8b949e }
    .ours { fill: #0c2d4d; stroke: #58a6ff }
    .arrow { stroke: #8b949e }
    .head { fill: #8b949e }
    text { fill: #9da7b3 }
    .name { fill: #f0f6fc }
    .verb { fill: #58a6ff }
  }
`

// A box is a place where data is stored, or a server.
type box struct {
	x, y   int // top left
	class  string
	name   string
	detail [2]string // lines below the name
}

// An arrow is a flow of data. Its path is SVG path data, its label is centred.
type arrow struct {
	path   string
	class  string
	x, y   int // of the label
	verb   string
	detail string
}

var boxes = []box{
	{16, 40, "box", "snapshot", [2]string{"accounts, lists,", "records, badges"}},
	{232, 40, "ours", "site", [2]string{"one file", "per answer"}},
	{448, 40, "box", "bucket", [2]string{"S3-compatible,", "or a folder"}},
	{664, 40, "box", "edge", [2]string{"cache or CDN,", "set up by edge"}},
	{848, 40, "box", "client", [2]string{"GET /api/v1/", "lists/1/details"}},
	{664, 196, "ours", "fallback", [2]string{"answers what", "no file can"}},
	{848, 196, "box", "source", [2]string{"fresh profiles", "and badges"}},
}

var arrows = []arrow{
	{"M152 78 H228", "", 190, 68, "generate", ""},
	{"M368 78 H444", "", 406, 68, "publish", ""},
	{"M584 78 H660", "", 622, 68, "", "objects"},
	{"M800 78 H844", "", 0, 0, "", ""},
	{"M732 192 V120", "", 772, 151, "", "searches"},
	{"M560 120 V234 H660", "", 612, 226, "serve", ""},
	{"M600 234 H560 V120", "", 0, 0, "", ""}, // refreshed objects
	{"M848 234 H804", "", 0, 0, "", ""},
	{"M516 116 V234 H190 V84", "later", 353, 226, "", "what was refreshed goes into the next site"},
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: draw FILE")
	}
	if err := os.WriteFile(os.Args[1], draw(), 0o644); err != nil {
		log.Fatal(err)
	}
}

// draw returns the picture as an SVG.
func draw() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="From a snapshot to an answer">`+"\n", width, height)
	fmt.Fprintf(&b, "<!-- Drawn by docs/draw: do not edit. -->\n<style>%s</style>\n", style)
	b.WriteString(`<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">` +
		`<path class="head" d="M0 0 L8 4 L0 8 z"/></marker></defs>` + "\n")
	fmt.Fprintf(&b, `<rect class="page" x="0.5" y="0.5" width="%d" height="%d" rx="8"/>`+"\n", width-1, height-1)
	for _, a := range arrows {
		fmt.Fprintf(&b, `<path class="arrow %s" d="%s" marker-end="url(#head)"/>`+"\n", a.class, a.path)
		text(&b, "verb", a.x, a.y, a.verb)
		text(&b, "", a.x, a.y, a.detail)
	}
	for _, x := range boxes {
		fmt.Fprintf(&b, `<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="6"/>`+"\n", x.class, x.x, x.y, boxWidth, boxHeight)
		middle := x.x + boxWidth/2
		text(&b, "name", middle, x.y+25, x.name)
		text(&b, "", middle, x.y+46, x.detail[0])
		text(&b, "", middle, x.y+63, x.detail[1])
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func text(b *bytes.Buffer, class string, x, y int, words string) {
	if words != "" {
		fmt.Fprintf(b, `<text class="%s" x="%d" y="%d">%s</text>`+"\n", class, x, y, html.EscapeString(words))
	}
}
