// Package op parses operations of the contracts: the bytes that add, remove, tag and untag records. It is pure.
// Package source/replay decides which operations take effect.
//
// The API may change in any release.
package op
