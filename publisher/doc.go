// Package publisher makes a bucket equal to a site. It uploads only what changed, writes
// objects before anything that refers to them, allows one publisher at a time, and
// resumes a killed run from any machine.
//
// Three objects beside the site make that possible. The root (site.RootKey) is written
// when everything that it names is there. The mark (site.MarkKey) is there from the
// first write to the last; as long as it is not, the bucket is what its manifest says,
// and a run needs to read no more than the manifest shards that differ. Where it is, a run
// was cut off, and the next one compares the site with a listing. The lock (site.LockKey)
// says who publishes. It is never deleted, only replaced under a condition.
//
// # Who may write
//
// A publisher writes only while it holds a lease, which each heartbeat in the lock
// renews. The lease begins before the heartbeat is sent and ends by the publisher's own
// clock, and with it every request that is under way. Who takes the lock over waits for
// the lease and the drain after it has seen the last heartbeat, by its own clock. So no
// two clocks are compared, and the old publisher has stopped before the new one begins.
//
// # What may arrive late
//
// A process can be stopped between its last look at the lease and the sending, and a
// network can keep a request for minutes. A storage service refuses requests whose
// signature is older than 15 minutes, but until then they may arrive at any time. So a
// takeover, and a run that did not hear what became of a request, leave a doubt in the
// lock. As long as it is there, runs look at everything by listing; the first one that
// does so an hour after the doubt began ends it.
package publisher
