// Package examples has complete pages that use a site: one with the client library, one with plain
// fetch. The preview serves them.
//
// The API may change in any release.
package examples

import "embed"

// Pages are the pages, by their names.
//
//go:embed *.html
var Pages embed.FS
