// Package live serves the newest graph of a source: it makes a graph of each round while the last one serves, swaps
// the two, and answers everything from memory. It says with each answer how new it is, lets requests wait for a block,
// and streams what changed.
//
// # The path of a round
//
//  1. live.go asks the source for the next round. If only heads have moved, the headers of answers do; else
//     generator.OpenLive makes a graph of the round's snapshot, with the refreshed data that kept.go has in memory.
//     What fails is told, the old graph serves on, and the next round tries again.
//  2. graph.go counts the requests that an answer is being made for. A graph that was replaced is freed when the last of
//     them has its answer, however slowly clients read; the next graph is not begun before. So there are two at most.
//  3. Refreshed data that came while the graph was made is put into it before it serves (kept.go).
//  4. The swap is one pointer, a state: the graph, the heads that it has, and the headers that say so. Who waits for
//     a block (after.go) wakes up, and events.go tells the round to all streams.
//
// # The path of a request
//
//  1. http.go answers below /_live/ itself. A request with X-After waits for its blocks.
//  2. Without a graph, or if a chain lags (lag.go), the answer is a 503, so that an edge takes the bucket.
//  3. Else the handler of the graph answers (package server), which sees nothing but this graph and the objects of it that
//     refreshes have replaced (graph.go).
//
// # Memory
//
// NeedsBytes says what two graphs take. Everything else is bounded: caches and answers by package server, requests that
// wait and streams by their numbers, what streams may still read by the rounds that are kept, and objects that
// refreshes have replaced by a new graph in which they are merged.
//
// # Stability
//
// The API may change in any release.
package live
