// Package bundle makes a log of the events of all chains, in bundles that never change, and reads it
// back. It knows neither chains nor buckets: what a state has goes in, and named bodies come out.
//
// A row is an event as a line of JSON, in one form only, so that equal events have equal bytes:
//
//	{"time":"2026-10-31T11:22:33.000Z","chain_id":8453,"block":23456789,"log_index":12,"kind":"op","contract":"0x…","subject":"0x…","value":"0x…"}
//
// Rows are in the order of time, chain, block and index, where the time is the latest of its chain so
// far: times that run backwards must not change the order of a chain. The log ends where a chain may
// still add a row before the next one, so a log that is made later only has more rows at its end, and
// two operators who have read the same chains make the same rows.
//
// A bundle has 10,000 rows, or as many as fit into 16 MiB; the last one has what is left, and grows.
// The index names all of them, each with a link: a digest of its text and of the link before. Of each
// chain it has the last block that the log has completely.
//
//  1. build.go merges the events of chains into rows, and compares them with the log that is there.
//  2. row.go has the form of a row, both ways; index.go that of the index.
//  3. read.go gets the bundles, checks them, and gives the events back.
//
// The API may change until version 1.
package bundle
