// Package templates holds the texts that followpress writes for others, each in a folder named after what the
// text is for. The packages that fill them stay where they are: edge, generator/render, report, and the commands
// preview and live. Package templates/openapi describes the API.
//
// The API may change in any release.
package templates

import "embed"

// Edge has the configurations of caches and CDNs, in the folder edge.
//
//go:embed edge
var Edge embed.FS

// Index is the page at the top of a site, which sends a browser to the explorer.
//
//go:embed site/index.html
var Index string

// Missing is the template of the page that browsers get where there is no object (404).
//
//go:embed site/missing.html
var Missing string

// Page is the template of the page of an account, "page", and of what all pages of a site have in common: "head",
// "bar" and "foot". "top" begins the page of the most followed accounts.
//
//go:embed pages/account.html
var Page string

// PageStyle is the style sheet of the pages of a site.
//
//go:embed pages/style.css
var PageStyle string

// Embed is the script with the element <follow-card>.
//
//go:embed pages/embed.js
var Embed string

// Start is the template of the preview's start page.
//
//go:embed preview/start.html
var Start string

// Report is the template of a report's page.
//
//go:embed report/page.html
var Report string

// ReportStyle is the style sheet of a report.
//
//go:embed report/style.css
var ReportStyle string

// Status is the template of the page that shows the state of live.
//
//go:embed status/status.html
var Status string

// StatusStyle is the style sheet of that page.
//
//go:embed status/style.css
var StatusStyle string
