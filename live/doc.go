// Package live serves the newest graph of a source from memory. It makes the next graph while the last one serves, then
// swaps the two. Each answer says how new it is; requests can wait for a block, and clients can stream changes.
//
// # The path of a round
//
//  1. live.go asks the source for the next round. If only heads moved, only the headers of answers change. Otherwise
//     generator.OpenLive makes a graph of the round's snapshot and of the refreshed data in memory (kept.go). After a
//     failure the old graph serves on, and the next round tries again.
//  2. graph.go counts the requests whose answers are being made. A replaced graph is freed with the last of them, however
//     slowly clients read, and the next graph begins only then. So there are at most two.
//  3. Data refreshed in the meantime is put into the new graph before it serves (kept.go).
//  4. The swap replaces one pointer, to a state: the graph, its heads and the headers of answers. It wakes requests that
//     wait for a block (after.go), and events.go sends the round to all streams.
//
// # The path of a request
//
//  1. http.go answers below /_live/ itself. A request with X-After waits for its blocks.
//  2. Without a graph, or if a chain lags (lag.go), the answer is a 503, so that an edge takes the bucket.
//  3. Otherwise the handler of the graph answers (package server). Its store is this graph, with objects replaced by
//     refreshes (graph.go).
//
// # Memory
//
// NeedsBytes returns the memory of two graphs. Everything else is bounded: caches and answers by package server, waiting
// requests and streams by their number, events by the number of retained rounds. A new graph merges replaced objects.
//
// # Stability
//
// The API may change in any release.
package live
