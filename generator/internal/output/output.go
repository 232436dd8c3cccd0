// Package output renders the objects of a site, on all cores and in order, into a folder, a tar
// file, memory or nothing. It adds the manifest and the root that list them, and compares the site
// with the live one.
package output

import "github.com/followpress/followpress/site"

// A Batch receives objects of one chunk. Different batches are filled concurrently.
type Batch interface {
	Put(entry site.Entry, body []byte) error
}

// An Output receives rendered objects.
type Output interface {
	// Begin returns a new batch. It is called from many goroutines.
	Begin() Batch
	// Finish writes a batch. It is called in the order of the site, never concurrently.
	Finish(Batch) error
}

// Discard is an output that stores nothing.
type Discard struct{}

// Begin returns a batch that stores nothing.
func (Discard) Begin() Batch { return Discard{} }

// Finish does nothing.
func (Discard) Finish(Batch) error { return nil }

// Put does nothing.
func (Discard) Put(site.Entry, []byte) error { return nil }

// entryOf describes an object that no manifest shard lists, and whose SHA-256 is therefore not
// needed.
func entryOf(key site.Key, body []byte) site.Entry {
	return site.Entry{Key: key, Size: int64(len(body)), MD5: site.Sum(body)}
}

// maxFreePiece bounds the size of buffers kept for reuse.
const maxFreePiece = 4 << 20

// Progress reports how far rendering has come, from many goroutines.
type Progress interface {
	// AddBytes reports n more rendered objects and their bytes.
	AddBytes(n, bytes int64)
}
