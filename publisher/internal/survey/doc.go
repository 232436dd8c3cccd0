// Package survey compares a bucket with the objects that a manifest names, by a listing, and by
// digests one by one where the listing has none.
package survey
