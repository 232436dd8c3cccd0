// Package op takes the operations of the contracts apart: the bytes that add, remove, tag and untag
// records. It is pure. Which operations have an effect is decided in source/replay.
//
// The API may change in any release.
package op
