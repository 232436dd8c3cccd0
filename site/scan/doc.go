// Package scan reads the objects from which answers are computed, as bytes and without a JSON decoder: search shards,
// rows, buckets, and answers. Package site names these objects, and generator/render writes them. Errors wrap
// site.ErrMalformed. A Matcher must not be used concurrently; everything else may be.
//
// The API may change in any release.
package scan
