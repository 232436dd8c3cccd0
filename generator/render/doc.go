// Package render renders the objects of a site from columns of a follow graph. The columns need not
// come from a whole snapshot: an object depends on one list or account, and on the ranks and
// profiles of the accounts that it names. A Site renders a whole graph. A Renderer renders one list
// or account after the other, for programs without memory for a graph. Both give the same bytes,
// because a Renderer makes a small graph of its input.
//
// # Custom encoders and scanners, checked against a library
//
// Rendering and searching dominate the cost of the project, so they have custom encoders and
// scanners. Tests compare each of these with go-json on random values. Everything else uses
// libraries.
//
// # Profiles stay encoded
//
// Profiles are kept as encoded JSON, because each one is written many times: in details, and in the
// searches of every follower.
//
// # A small graph instead of a second renderer
//
// A Renderer gets the records of a list and the shown fields of the accounts in them, makes a graph
// of just these, and calls the functions that render a site from a whole graph. So each object is
// spelled in one place, and a test that cuts snapshots into units compares every byte. The cost is
// no more than the lookups in a large graph that it avoids.
//
// # Two objects for a page
//
// Under the API efp the cost of a page must not grow with its list. A bucket holds the length of
// the list, and the rows of a short one. The next object is the only shard, or the head of a long
// list, which suffices for the first 100 entries in any order. So a page of these takes two
// objects. The price: each row is written twice, for the list and for its account, and rows
// repeat names and avatars.
//
// # Stability
//
// The API may change in any release.
package render
