// Package render renders the objects of a site from columns of a follow graph. It does not ask
// whether they are all of a snapshot: what an object shows depends on one list or account, and on the
// ranks and profiles of those that it names. A Site renders a whole graph, and a Renderer one list
// or account after the other, as programs need it that have no memory for a graph. Both give the same
// bytes, because a Renderer makes a small graph of what it gets.
//
// The API may change until version 1.
package render
