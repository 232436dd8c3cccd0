// Package requests makes the requests of a run to a bucket: each waits until a window has room for it, is sent only while
// a lease is held, and is retried.
package requests
