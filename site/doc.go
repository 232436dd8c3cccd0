// Package site is the contract of a followpress site: the routes of the API, the keys of the objects that
// answer them, the resolution of requests, JSON shapes, error bodies, and the formats of the root, the
// manifest and the search shards.
//
// Everything that writes, publishes, serves or describes a site uses this package instead of spelling
// paths and formats itself. The package does no input or output. Its functions are pure and, unless a
// comment says otherwise, safe for concurrent use.
//
// The Go API may change until version 1. The formats are stable as docs/site.md says.
package site
