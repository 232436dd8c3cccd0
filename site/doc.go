// Package site is the contract of a followpress site: the routes of the API and
// the keys of the objects that answer them, how a request is resolved, the JSON
// shapes, the error bodies, and the formats of the root, the manifest and the
// search shards.
//
// Everything that writes, publishes, serves or describes a site takes these from
// here; nobody else spells a path. The package imports nothing else of the
// project and does no input or output. Its functions are pure and may be called
// from many goroutines at once.
package site
