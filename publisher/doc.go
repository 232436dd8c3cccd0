// Package publisher makes a bucket equal to a site. It uploads only what changed, writes objects
// before anything that refers to them, allows one publisher at a time, and resumes a killed run
// from any machine.
//
// The API may change in any release. The formats of the mark and the lock, which publishers of
// different versions share, only gain members.
//
// # The objects next to the site
//
// The root (site.RootKey) is written once everything that it names is in the bucket.
//
// The mark (site.MarkKey) exists from the first write of a run to its last. Without a mark, the
// bucket equals its manifest, and a run reads only the manifest shards that differ. A mark at the
// start means that a run was cut off; the next run then compares the site with a listing.
//
// The lock (site.LockKey) names the publisher. It is never deleted, only replaced under a
// condition, so that a late request cannot free the lock of another publisher.
//
// # The order of a publish
//
// Each step is durable before the next one begins: the mark; objects, entry points last; shards of
// the manifest, right after their objects; deltas and indexes; the root; deletions; and the removal
// of the mark.
//
// A signed bucket has a note about its root (site.NoteKey), against which readers check everything.
// Objects are replaced in place, so after the mark a signed publish announces the next note, root
// and manifest below site.NextPrefix, next to the announcements of publishes that were cut off. A
// reader then accepts objects of the live site or an announced one, and nothing else. The manifest
// follows all objects, because readers check objects not yet replaced against the old manifest. The
// note follows the root, and the announcements are deleted before the mark.
//
// # Lock and lease
//
// A publisher writes only while it holds a lease, which each heartbeat in the lock renews. The
// lease begins before the heartbeat is sent and ends by the publisher's own clock; its end cuts off
// all requests in flight. Another publisher takes the lock over after it has seen no heartbeat for
// the lease and a drain time, by its own clock. So clocks of two machines are never compared, and
// the old publisher has stopped before the new one begins.
//
// # Late requests
//
// A process can be stopped between checking its lease and sending, and a network can hold a request
// back for minutes. Storage services refuse requests signed more than 15 minutes ago, but until
// then a late request takes effect. So a takeover, or a request without an answer, leaves a doubt
// in the lock. While the lock has a doubt, runs compare the site with a listing. The first run that
// does so an hour after the doubt began removes it.
//
// # Contexts
//
// Four lifetimes bound the requests of a run:
//
//	parent  the caller's context; its end interrupts the run
//	soft    child of parent, also ended by the loss of the lock; no attempt begins after its end
//	hard    ends grace after soft, and with the run; cuts off attempts in flight
//	lease   ends when the lock has no heartbeat for too long, and may be renewed; cuts off
//	        attempts in flight, which are retried once the lease is held again
//
// An attempt runs under a child of hard and the lease, with its own time limit. The last step of a
// run, releasing the lock, has a separate context (lock.FinalContext), because soft may have ended
// by then.
//
// # A mark instead of a journal
//
// A publish could record each step in advance, at the price of more requests in every run. Instead
// it puts one small object, the mark. Only a run that finds a mark lists the bucket, which takes a
// few hundred requests. The listing also finds what a journal would miss, such as the effects of
// late requests.
//
// # Modification times tell the headers
//
// A listing shows sizes and digests, not headers. The mark records when each set of header rules
// came into force, so the modification time of an object tells which headers it has, without a
// request per object. All times are the bucket's, whose servers may disagree by some minutes: an
// object put within 15 minutes of a change of the rules is put again.
//
// # Concurrent publishing is simulated
//
// publisher/simulation_*_test.go runs the real publisher and the real fallback against a bucket on
// virtual time. A seed decides what happens to each request and each process; the invariants are
// checked at every write and after every schedule. Some buckets are signed and read with a key by
// storage/checked, which must accept nothing unsigned and must not report objects of honest
// publishers as altered. Clocks drift and are set, machines sleep, servers fail halfway, and a
// cache is purged of the URLs that reports name. internal/testenv/mutations checks the simulation
// itself: it introduces faults into the code, one at a time, and each must fail a test.
package publisher
