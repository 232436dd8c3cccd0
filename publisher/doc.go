// Package publisher puts a site into a bucket: only what changed, in an order in
// which no reader finds a reference to nothing, one publisher at a time, and such
// that a run that was killed is taken up by the next one, on any machine.
//
// Three objects beside the site make that possible. The lock (site.LockKey) says who
// publishes. The mark (site.MarkKey) is there from the first write to the last; as
// long as it is not, the bucket is exactly what its manifest says, and a run needs to
// read no more than the manifest shards that differ. Where it is, a run was cut off,
// and the next one looks at what is there, by listing. The root (site.RootKey) is
// written when everything that it names is there.
package publisher
