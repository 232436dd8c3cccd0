// Package site is the contract of a followpress site: the routes of the API, the keys of the objects that
// answer them, the resolution of requests, JSON shapes, error bodies, and the formats of the root, the
// manifest and the search shards.
//
// Whatever writes, publishes, serves or describes a site takes paths and formats from this package, which
// does no input or output. Its functions are pure and, unless a comment says otherwise, safe for
// concurrent use. Other modules may import it: from version 1.0.0 on its API follows semantic versioning,
// and docs/site.md says how stable the formats are.
package site
