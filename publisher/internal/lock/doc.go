// Package lock keeps publishers of one bucket apart, by the lock with its lease, the doubt about
// late requests that the lock names, and the mark of what a run has begun.
package lock
