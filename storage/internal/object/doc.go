// Package object has what all stores share: objects, what is told of them, the errors that callers tell apart, and
// how large an object may be.
package object
