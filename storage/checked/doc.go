// Package checked reads a site from a store that nobody has to trust: a body is returned only if the manifest of the
// site lists it, with its size and SHA-256; the manifest is the one that the root names; and the root is the one that a
// known key has signed.
//
//	_site.note → _site → _manifest/… → object
//
// # While a publish is going on
//
// Objects are replaced in place, so a publisher of a signed site first announces the next one below site.NextPrefix: its
// note, its root, and what it will put of the manifest. Sites whose publishes were cut off stay announced beside it. A
// body is right if the manifest of the live site lists it or that of an announced one, whose counter must be greater. An
// absent object is right if one of them does not list it.
//
// Keys that neither manifest lists are absent, whatever the store has. The note of a site is what was checked last.
//
// # What is read, and in which order
//
// A body that does not match makes a Site read the notes and the root again: the announcement first, since a publish
// removes it last. If the site has not changed by then, the body is altered (ErrAltered). If it changes all the time,
// nobody can tell (ErrBetween).
//
// The size of an object is compared before it is read. The sizes of the root, of a note and of the manifest's objects
// are bounded, the last ones in proportion to the number of objects that the root counts.
//
// Methods may be called from many goroutines. The API may change in any release.
package checked
