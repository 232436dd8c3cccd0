// Package sign keeps the note of a bucket, against which readers with a key check everything. It
// decides whether a run may replace the note, and announces the next site before objects are
// replaced in place, so that readers can tell a publish from a forgery.
package sign
