// Package requests sends the requests of a run to a bucket. Each request waits for room in a
// window, is sent only while a lease is held, and is retried.
package requests
