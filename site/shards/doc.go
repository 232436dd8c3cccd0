// Package shards stores and reads the manifest of a site: its shards, their indexes, and the deltas of a bucket.
//
// Everything is a gzip file of a canonical JSON text. Digests are those of texts, so that the root of a site says what
// its manifest has, and not how it is stored.
//
//	_site                   names up to 256 shards, or the indexes of more, by SHA-256
//	_manifest/{a}           an index: the digests of 256 shards, whose names begin with its own. There are indexes if
//	                        names of shards have more than two digits
//	_manifest/{abc}         a shard (site.Manifest), about 1,000 objects or fewer
//	_manifest/delta/{ab0}   a delta: what some shards have been changed to since they were put. Only buckets have deltas
//
// # Deltas
//
// A publish that changes a few thousand objects of some million would have to put nearly every shard again. Instead it
// puts deltas. The 16 or 256 shards whose names begin alike, with all digits but the last, at most two, are a group
// and have one delta. It is cumulative: it has all that the shards of the group list now and did not when they were
// put, and so is replaced as a whole.
//
// Nothing names a delta, because the root is to be that of the site, byte for byte, however it is stored. A reader
// takes the shard that is stored. If that has not the digest that the root (or the index) names, the reader applies
// what the delta has for it. If it has not the digest then, the reader has seen objects of two sites, or damaged ones,
// and ErrDamaged says so. So a delta that is late, stale or of another site is never believed, and one that is left
// over changes nothing.
//
// The API may change in any release.
package shards
