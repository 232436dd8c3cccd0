// Package render renders the objects of a site from columns of a follow graph. It does not ask
// whether they are all of a snapshot: what an object shows depends on one list or account, and on the
// ranks and profiles of those that it names. A Site renders a whole graph, and a Renderer one list
// or account after the other, as programs need it that have no memory for a graph. Both give the same
// bytes, because a Renderer makes a small graph of what it gets.
//
// # Own encoders and scanners, checked against the library
//
// Rendering and searching are the core of the project and its cost, so they have encoders and scanners of their own.
// Tests compare each of these with go-json on random values. Everything else uses libraries.
//
// # Profiles stay encoded
//
// Profiles are kept as encoded JSON, because each one is written many times: in details, and in the searches of every
// follower.
//
// # A small graph instead of a second renderer
//
// Programs that have no memory for a graph render one list after the other: they get its records, and what is shown
// of the accounts in them. render.Renderer makes a graph of just these and calls the functions that render a site
// from a whole graph. So there is one place where an object is spelled, and a test that cuts snapshots into units
// compares every byte. It costs no more than the lookups in a large graph that it spares.
//
// # Two objects for a page
//
// Under the API efp a page must not cost more the longer its list is. A bucket says how long the list is, and has the
// rows of a short one. The next object is the only shard, or the head of a long list, which suffices for the first
// 100 entries in any order. So a page of those takes two objects. The price is that each row is written twice, for
// the list and for the account that it holds, and that rows repeat names and avatars.
//
// # Stability
//
// The API may change in any release.
package render
