// Package server answers the requests of the API from a site. Most answers are objects of the site as
// they are. Three are computed: pages and term searches, from the search shards; records without
// tags; and refreshes (cache=fresh), which ask an upstream and store the result. Under site.APIEFP most
// requests with parameters are computed too, and batches of states.
//
// This package serves objects and bounds what is done at a time (gates.go). Below internal/, answer computes
// answers, fresh refreshes objects, cache holds them, and fetch reads them from the store.
//
// Preview and fallback serve the same Handler over different Stores. A Handler answers many requests
// at once and keeps no state that matters: what it refreshes is in the bucket before the answer goes
// out, so any number of handlers may serve one bucket.
//
// # The path of a request
//
//  1. server/observe.go limits, counts and logs requests. handler.go answers them: site.Resolve says which object
//     is the answer, or which search. hot.go answers without that if the cache has the object of the request's own
//     path. watch.go notices a new site. If the site is a tar file that was replaced, storage/internal/tarfile opens and
//     indexes the new one first.
//  2. In server/internal, cache keeps hot objects and the indexes of search shards, and counts the computed
//     answers that clients receive (sent.go); fetch reads the others; answer pages through search shards. A
//     gate.Gate bounds how many requests do a thing at a time, or how many bytes they hold, and server/gates.go
//     has all gates of a handler: for objects beyond the cache, for answers that are being made (small ones, large
//     ones, and a single one of any size), for bodies, and for requests that wait. fresh/clients.go limits the
//     refreshes of each client. Reports change without a new site, so they are read again after a second.
//
// # The path of a part of a table
//
//  1. Only site.Route.Ranges lets a request have parts (Range). server/ranges.go answers, by http.ServeContent.
//  2. From a bucket the part is copied to the client as it arrives (fetch.Stream): nobody holds the body, and a gate bounds
//     how many are copied at a time. The bucket sends parts of one object only, by its ETag; if that is replaced
//     meanwhile, the answer ends early.
//  3. From a store that checks the whole object is read, like any other: a signature says nothing about a part.
//
// # The path of a computed answer
//
//  1. Under the API efp, site.Resolve says that a request is computed, and what it asks for (site.Ask).
//     server/internal/answer/answer.go finds the answer in the cache under the normal form of the request, waits
//     for a computation of the same answer, or begins one: compute/make.go gives it memory and objects.
//  2. A lookup in a bucket of users or lists (lookup) says which account and list are meant, how many accounts the
//     list holds, and how many hold the account. The numbers tell where the rows are: in the bucket, in one shard,
//     in the head of a long table, or in several shards.
//  3. table selects the rows of a page and copies them. For an order by followers it reads all shards once, and
//     keeps the order in the cache, with 4 bytes a row.
//  4. pages, ranked, history, state and profile render answers. Rows are cut out of shards without decoding them
//     (site/scan/rows.go).
//  5. If numbers disagree, or a part is absent that another one names, the parts are of two sites, and are read
//     again as those of a search are.
//  6. client/followpress.js computes the same answers in a browser, from the same objects. Both are compared with
//     internal/twin/naive, on random graphs.
//
// # The path of fresh data
//
//  1. A request with cache=fresh reaches server/internal/fresh/refresh.go. It runs one refresh per object at a
//     time, and refuses a refresh too soon after the last one.
//  2. upstream.go asks the upstream. upstreamdata.go merges the answer into the stored object, with the decoders
//     of site that also read the rows of a snapshot.
//  3. The data is kept under _refresh/, with the digest of the object that is about to be put. Then a conditional
//     write replaces the stored object, unless another writer was faster (conditional.go, also for stores without
//     such writes). Under api=efp, copies.go finds the list
//     that stands for the account, and replaces the other objects that show the data in the same way.
//  4. generator/internal/load/refreshed.go merges the kept data into the next snapshot, before names are chosen. If a publish
//     overwrites a refreshed object in the meantime, reapply.go restores it when watch.go notices the new site.
//
// # Inconsistent search shards are read again
//
// Objects are replaced in place, so while a site is published a search may find shards of two sites. Every shard says
// how many entries its list has. If the shards of a list disagree, they are read again, bypassing the cache. The
// publisher puts the shards of a list one right after the other, the first one last. Shards of two sites with equal
// totals cannot be told apart, nor can a user's list from the previous one.
//
// # A computation holds one object at a time
//
// No request may wait for memory while it holds an object. So a computation copies the rows that it needs, and
// releases a shard before it reads the next object. The copies count against the memory for pages. If that does not
// suffice, the computation begins anew as the one that may take any amount.
//
// # The cache outlives the store
//
// A cached object is read again in the background after five minutes, and stays in the cache if that fails; only a
// new site clears the cache. Requests that wait for the store may take three quarters of the request limit; the rest
// is reserved for answers from the cache.
//
// # Stability
//
// The API may change until version 1. The HTTP API that it answers is described by the OpenAPI
// document of package templates/openapi.
package server
