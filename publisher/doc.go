// Package publisher makes a bucket equal to a site. It uploads only what changed, writes
// objects before anything that refers to them, allows one publisher at a time, and resumes
// a killed run from any machine.
//
// The API may change until version 1. The formats of the mark and the lock, which publishers
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
//	hard    ends Grace after soft, and with the run; cuts off attempts in flight
//	lease   ends when the lock has no heartbeat for too long, and may be renewed; cuts off
//	        attempts in flight, which are retried once the lease is held again
//
// An attempt runs under a child of hard and the lease, with a time limit of its own. What a run
// does last, releasing the lock, has a context of its own (finalContext), because soft may have
// ended by then.
package publisher
