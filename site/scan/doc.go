// Package scan reads the objects that answers are computed from, as bytes and without decoding them: search
// shards, rows, buckets, and answers themselves. Package site names these objects, and generator/render
// writes them. Errors wrap site.ErrMalformed. A Matcher is for one goroutine; all else may be used from many.
//
// The API may change in any release.
package scan
