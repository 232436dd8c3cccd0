// Package templates holds texts: the start page of the preview and the description of the
// API, which it renders from the tables of site, and the templates of the edge
// configurations, which the package edge renders.
//
// The package serves the project's own commands. Its API may change in any release.
package templates

import (
	"embed"
	"fmt"
	"html/template"
	"io"

	"github.com/followpress/followpress/site"
)

//go:embed *.html
var files embed.FS

// Edge holds the templates of the edge configurations, for text/template, in the folder
// edge.
//
//go:embed edge
var Edge embed.FS

var start = template.Must(template.ParseFS(files, "start.html"))

// A StartPage is what the start page shows.
type StartPage struct {
	Root   site.Root
	Groups []LinkGroup
}

// A LinkGroup is a route with live links to answers.
type LinkGroup struct {
	Pattern string
	Summary string
	API     bool     // an endpoint; else an object that clients without a server read
	Links   []string // paths with queries
}

// Render writes the page as HTML. Its only errors are those of w.
func (p StartPage) Render(w io.Writer) error {
	if err := start.Execute(w, p); err != nil {
		return fmt.Errorf("render the start page: %w", err)
	}
	return nil
}
