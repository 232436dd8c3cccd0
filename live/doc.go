// Package live answers the API from a graph that is replaced round by round, as blocks come.
//
// The API may change until version 1.
package live
