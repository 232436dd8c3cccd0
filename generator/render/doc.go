// Package render renders the objects of a site from rows: accounts, records, operations. A Renderer
// renders one list or account after the other, for programs without memory for a graph. Package
// whole, below generator, renders the views of a whole graph with the same encoders.
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
// # One view of units and of graphs
//
// A View is an account with one of its lists, wherever its records are: in a Unit, or in a graph. So
// each object is spelled in one place, and a test that cuts snapshots into units compares every
// byte.
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
