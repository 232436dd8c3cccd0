// Package shards stores and reads the manifest of a site: its shards, their indexes, and the deltas of a bucket.
//
// Each object is a gzip file of a canonical JSON text. Digests are those of texts, so that the root determines the
// content of the manifest, but not how it is stored.
//
//	_site                   names up to 256 shards, or the indexes of more, by SHA-256
//	_manifest/{a}           an index: the digests of 256 shards, whose names begin with its own. Indexes exist if
//	                        the names of shards have more than two digits
//	_manifest/{abc}         a shard (site.Manifest) of about 1,000 objects or fewer
//	_manifest/delta/{ab0}   a delta: changes to shards since they were put. Only buckets have deltas
//
// # Deltas
//
// Without deltas, a publish that changes a few thousand objects of some million would put nearly every shard again. A
// group of 16 or 256 shards, whose names share all digits except the last, at most two, has one delta. It is
// cumulative: it has all changes to these shards since they were put, and is replaced as a whole.
//
// Nothing names a delta, because the root must be that of the site, byte for byte, however the manifest is stored. If
// a stored shard does not have the digest in the root or index, a reader applies the delta. If the digest still
// differs, the reader has seen objects of two sites, or damaged ones, and returns ErrDamaged. So a stale or foreign
// delta is never accepted, and a leftover one changes nothing.
//
// The API may change in any release.
package shards
