// Package lock keeps publishers of one bucket apart: the lock with its lease, the doubt about requests that may arrive
// late, which the lock names, and the mark of what a run has begun.
package lock
