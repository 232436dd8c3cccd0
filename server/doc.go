// Package server answers API requests from a site. Most answers are objects of the site, unchanged.
// Three kinds are computed: pages and term searches, from search shards; records without tags; and
// refreshes (cache=fresh), which ask an upstream and store the result. Under site.APIEFP, most
// requests with parameters and all batches of states are computed too.
//
// Preview and fallback serve the same Handler over different Stores. A Handler answers many requests
// at once and has no state to lose: a refresh is in the bucket before its answer is sent, so any
// number of handlers may serve one bucket.
//
// This package joins the rooms below internal/: answer computes answers, fresh refreshes objects, cache
// holds them, fetch reads them from the store, reply writes answers, and listen bounds connections.
//
// # The path of a request
//
//  1. observe limits, counts and logs requests. handler.go answers them: site.Resolve maps the request
//     to an object or a computation; body reads the body of a batch. respondHot takes a shortcut if the
//     cache has the object at the request's path. watch.go notices a new site, and current switches to it; a
//     replaced tar file is indexed completely before it is served.
//  2. The cache holds the most requested objects, with an index for each search shard. Gates (gates.go)
//     bound the requests that do one thing at a time, and the bytes that they hold. A request that cannot
//     pass in time gets a 503.
//
// # The path of a part of a table
//
//  1. Routes with site.Route.Ranges accept Range headers. reply answers them with http.ServeContent.
//  2. From a bucket, the part is copied to the client as it arrives (fetch.Stream), so its body is never in
//     memory. If the object is replaced, its ETag no longer matches and the answer ends early.
//  3. A checked store reads the whole object instead: a signature does not cover a part.
//
// # The path of a computed answer
//
//  1. The cache may have the answer under the normal form of the request; otherwise the request joins a
//     computation of the same answer or starts one (internal/answer, compute).
//  2. A bucket of users or lists gives the account, the list, and the numbers of records and followers
//     (lookup). The numbers tell where the rows are: in the bucket, in one shard, in the head of a long
//     table, or in several shards.
//  3. table selects and copies the rows of a page. To order by followers, it reads all shards once and
//     caches the order, 4 bytes per row.
//  4. pages, ranked, history, state and profile render the answer. Rows are cut out of shards undecoded.
//  5. client/followpress.js computes the same answers in a browser, from the same objects. Tests compare
//     both with internal/twin/naive on random graphs.
//
// # The path of fresh data
//
//  1. fresh/refresh.go runs at most one refresh per object at a time, and refuses one too soon after
//     the last. upstream.go fetches the data; upstreamdata.go merges it into the stored object.
//  2. The data is kept below _refresh/, with the digest of the new object. Then a conditional write
//     replaces the object. copies.go replaces the other objects that show the same data.
//  3. The next run of the generator merges the kept data (generator/internal/load/refreshed.go). If a publish
//     overwrites a refreshed object first, reapply.go restores it.
//
// # Two sites in one answer
//
// A publish replaces objects in place, so a computation may read shards of two sites. Each shard has the
// length of its list. If the lengths of a list's shards disagree, or a referenced object is missing, the
// objects are read again, bypassing the cache. Publishers put the shards of a list one right after
// the other, the first one last. Shards of two sites with equal lengths cannot be told apart.
//
// # Memory
//
// A request never waits for memory while it holds an object: a computation copies the rows it needs
// and releases each shard before it reads the next. If its memory runs out, it starts over with more.
//
// # When the store is down
//
// A cached object is read again in the background after five minutes, and stays cached if that fails;
// only a new site clears the cache. At most three quarters of the requests may wait for the store. The
// remaining quarter serves from the cache.
//
// # Stability
//
// The API may change in any release. Package templates/openapi describes the HTTP API.
package server
