// Package checked reads a site from an untrusted store. It returns a body only if the site's manifest lists it with
// that size and SHA-256, the root names that manifest, and a known key has signed the root.
//
//	_site.note → _site → _manifest/… → object
//
// # During a publish
//
// Objects are replaced in place. So a publisher of a signed site first announces the next one below site.NextPrefix:
// its note, its root, and the manifest objects it will put. Sites whose publishes were interrupted stay announced
// too. A body is accepted if the manifest of the live site or of an announced one with a greater counter lists it. A
// key counts as absent if one of these manifests does not list it. Keys in none of them are absent, whatever the
// store holds.
//
// # Order of reads
//
// When a body does not match, the Site reads the notes and the root again: the announcement first, because a publish
// removes it last. If the site has not changed, the body was altered (ErrAltered). If the site keeps changing, the
// result is unknown (ErrBetween).
//
// Sizes are compared before bodies are read. The sizes of roots, notes and manifest objects have limits; the limit of
// manifest objects grows with the number of objects that the root counts.
//
// All methods are safe for concurrent use. The API may change in any release.
package checked
