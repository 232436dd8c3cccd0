// Package site is the contract of a followpress site: the routes of the API, the keys of objects, the resolution of
// requests, JSON shapes, error bodies, and the formats of the root, the manifest and the search shards.
//
// All code that writes, publishes, serves or describes a site uses this package instead of its own paths and formats.
// The package does no I/O. Its functions are pure and, unless a comment says otherwise, safe for concurrent use.
//
// The Go API may change in any release. The stability of the formats is described in docs/site.md.
package site
