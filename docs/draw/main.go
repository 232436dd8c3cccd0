// Command draw writes the picture in README.md: the way from the chains to an answer.
package main

import (
	"bytes"
	"log"
	"os"
	"text/template"
)

//go:generate go run . ../overview.svg

// The style follows the reader's choice of a dark or a light page. The picture brings its
// background, so it is readable where the two disagree.
const picture = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 300" role="img" aria-label="From the chains to an answer">
<!-- Drawn by docs/draw: do not edit. -->
<style>
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
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="head" d="M0 0 L8 4 L0 8 z"/></marker></defs>
<rect class="page" x="0.5" y="0.5" width="999" height="299" rx="8"/>
{{range .Arrows -}}
<path class="arrow {{.Class}}" d="{{.Path}}" marker-end="url(#head)"/>{{if .Label}}<text {{if .Verb}}class="verb" {{end}}x="{{.X}}" y="{{.Y}}">{{.Label}}</text>{{end}}
{{end}}{{range .Boxes -}}
<g transform="translate({{.X}} {{.Y}})"><rect class="{{.Class}}" width="136" height="76" rx="6"/>
<text class="name" x="68" y="25">{{.Name}}</text><text x="68" y="46">{{.First}}</text><text x="68" y="63">{{.Second}}</text></g>
{{end}}</svg>
`

// A box is a place where data is stored, or a server.
type box struct {
	X, Y                int // top left
	Class               string
	Name, First, Second string // the name, and two lines below it
}

// An arrow is a flow of data. Its path is SVG path data, its label is centred.
type arrow struct {
	Path, Class string
	X, Y        int // of the label
	Label       string
	Verb        bool // the label is a command
}

var boxes = []box{
	{16, 40, "box", "snapshot", "accounts, lists,", "records, badges"},
	{232, 40, "ours", "site", "one file", "per answer"},
	{448, 40, "box", "bucket", "S3-compatible,", "or a folder"},
	{664, 40, "box", "edge", "cache or CDN,", "set up by edge"},
	{848, 40, "box", "client", "GET /api/v1/", "lists/1/details"},
	{664, 196, "ours", "fallback", "answers what", "no file can"},
	{848, 196, "box", "services", "fresh profiles", "and badges"},
	{16, 196, "box", "chains", "or the database", "of an indexer"},
}

var arrows = []arrow{
	{"M84 192 V120", "", 126, 151, "snapshot", true},
	{"M152 78 H228", "", 190, 68, "generate", true},
	{"M368 78 H444", "", 406, 68, "publish", true},
	{"M584 78 H660", "", 622, 68, "objects", false},
	{"M800 78 H844", "", 0, 0, "", false},
	{"M732 192 V120", "", 772, 151, "searches", false},
	{"M560 120 V234 H660", "", 612, 226, "serve", true},
	{"M600 234 H560 V120", "", 0, 0, "", false}, // refreshed objects
	{"M848 234 H804", "", 0, 0, "", false},
	{"M516 116 V234 H190 V84", "later", 353, 226, "what was refreshed goes into the next site", false},
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
	err := template.Must(template.New("").Parse(picture)).Execute(&b, struct {
		Boxes  []box
		Arrows []arrow
	}{boxes, arrows})
	if err != nil {
		log.Fatal(err)
	}
	return b.Bytes()
}
