// Package survey compares what a bucket has with the objects that a manifest names: by a listing, and by digests one by one
// where a listing has none.
package survey
