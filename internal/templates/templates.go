// Package templates holds texts: the template of the preview's start page, the page at the top of a
// site, and the description of the API, which it makes from the tables of site.
//
// The package serves the project's own commands. Its API may change in any release.
package templates

import _ "embed" // of the texts

// Start is the template of the start page, for html/template.
//
//go:embed start.html
var Start string

// Index is the page at the top of a site, which sends a browser to the explorer.
//
//go:embed index.html
var Index string
