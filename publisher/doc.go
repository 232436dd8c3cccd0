// Package publisher makes a bucket equal to a site. It uploads only what changed, writes
// objects before anything that refers to them, allows one publisher at a time, and resumes
// a killed run from any machine.
//
// The API may change in any release. The formats of the mark and the lock, which publishers
// of different versions share, only gain members.
//
// # The objects beside the site
//
// The root (site.RootKey) is written once everything that it names is in the bucket.
//
// The mark (site.MarkKey) exists from the first write of a run to its last. Without a mark,
// the bucket equals its manifest, and a run reads only the manifest shards that differ. With
// a mark, a run was cut off, and the next one compares the site with a listing.
//
// The lock (site.LockKey) names the publisher. It is never deleted, only replaced under a
// condition, so that a late request cannot free the lock of another publisher.
//
// # The order of a publish
//
// Each step is durable before the next one begins: the mark; objects, those that refer to others last; shards of the
// manifest, right after their objects, and deltas and indexes after all; the root; deletions; and the removal of the
// mark.
//
// A signed bucket has a note about its root (site.NoteKey), which readers check everything by. Objects are replaced in
// place, so after the mark a signed publish announces the next note, root and manifest below site.NextPrefix, beside those of
// publishes that were cut off. A reader may then take what one of these sites has, and nothing else. The manifest follows all objects, because readers check
// what was not replaced yet by the old one. The note follows the root, and what was announced goes before the mark.
//
// # Lock and lease
//
// A publisher writes only while it holds a lease, which each heartbeat in the lock renews.
// The lease begins before the heartbeat is sent and ends by the publisher's own clock; its end
// cuts off all requests in flight. Another publisher takes the lock over after it has seen no
// heartbeat for the lease and a drain time, by its own clock. So clocks of two machines are never
// compared, and the old publisher has stopped before the new one begins.
//
// # Late requests
//
// A process can be stopped between checking its lease and sending, and a network can hold a
// request back for minutes. Storage services refuse requests whose signature is older than
// 15 minutes, but until then a late request takes effect. So a takeover, or a request without an
// answer, leaves a doubt in the lock. While the lock has a doubt, runs compare the site with a
// listing. The first run that does so an hour after the doubt began removes it.
//
// # Contexts
//
// Four lifetimes bound the requests of a run:
//
//	parent  of the caller; its end interrupts the run
//	soft    child of parent, also ended by the loss of the lock; no attempt begins after its end
//	hard    ends grace after soft, and with the run; cuts off attempts in flight
//	lease   ends when the lock has no heartbeat for too long, and may be renewed; cuts off
//	        attempts in flight, which are retried once the lease is held again
//
// An attempt runs under a child of hard and the lease, with a time limit of its own. What a run
// does last, releasing the lock, has a context of its own (lock.FinalContext), because soft may have
// ended by then.
//
// # The path of a site into a bucket
//
//  1. publish.go has the order of steps: read the state, lock, read it again, plan, mark, put, root, delete, unmark.
//     guard.go refuses a site that lacks much of the live one before anything is written. internal/sign decides whether
//     the bucket's note may be replaced, and puts notes and announcements. Beside the site a bucket may keep what its sites
//     were made of (internal/inputs), which is put before the root; what older sites were made of is deleted after it.
//  2. internal/lock takes the lock by a conditional write, bounds how long requests are sent after a heartbeat, checks
//     before a takeover whether the other owner is alive, and records in the lock that requests may arrive late.
//  3. internal/requests makes every request: it decides when the next one may begin, by the number of requests in
//     flight, and by their bytes and the measured throughput; it retries with retry, and cancels requests at the end
//     of the lease. Its Durably keeps the order of steps across a power failure.
//  4. internal/origin reads the site. internal/plan compares the manifests of both sides, reading only shards that
//     differ. If the mark says that a run was cut off, it makes the plan from a listing, which internal/survey compares
//     with the manifest. What a plan or a listing says of single objects is in internal/spool: in memory while it is
//     little, then in a temporary file, so that memory does not grow with the number of objects.
//  5. internal/transfer carries out the plan, with one object per request, or many if the server unpacks archives
//     (storage/internal/s3/pack.go).
//  6. A site that many machines have written is read from parts: storage/parts has their format, and what a
//     worker calls; place.go there keeps them in a folder or a bucket; site.go finds an object in its part by
//     the manifest, and chunks.go decides how much to read at a time.
//  7. verify.go compares a bucket with its own manifest, by the same survey, which recognises refreshed objects by
//     the data under _refresh/. If ETags are not MD5s, requests asks for digests one by one.
//  8. purger/urls.go derives URLs from the changed keys; purger/sources.go says which objects computed answers are
//     made from. The file of each service batches them into requests, and client.go sends those.
//
// # A mark instead of a journal
//
// A publish could record before each step what it is about to put and delete, at the price of more requests in every
// run. Instead it puts one small object, the mark. Only a run that finds a mark lists the bucket, which takes a few
// hundred requests. The listing also finds what a journal would not know, such as the effects of late requests.
//
// # Modification times tell the headers
//
// A listing shows sizes and digests, not headers. The mark records when each set of header rules came into force, so
// the modification time of an object tells which headers it has, without a request per object. All times are those of
// the bucket, whose servers may disagree by some minutes: what was put within 15 minutes of a change of the rules is
// put again.
//
// # Concurrent publishing is simulated
//
// publisher/simulation_*_test.go runs the real publisher and the real fallback against a bucket on virtual time. A
// seed decides what happens to each request and each process; the invariants are checked at every write and after
// every schedule. Some buckets are signed, and read with a key by storage/checked, which must accept nothing that nobody
// has signed, and must not call altered what honest publishers do. Clocks drift and are set, machines sleep, servers fail halfway, and a cache is purged of what
// reports name. Whether all that finds anything is tested: internal/testenv/mutations makes faults in the code, one
// at a time, and each must fail a test.
package publisher
