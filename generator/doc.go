// Package generator turns a snapshot of a follow graph into a site: it reads the tables, builds a
// compact graph, ranks the accounts, renders every object, and writes them to a folder, a tar
// file or a file system in memory.
//
// The same snapshot and configuration give byte-identical objects with any number of workers:
// rows are numbered in the order of the snapshot, whichever goroutine parsed them, ties are broken
// completely, and rendering is a pure function of the graph.
//
// The API may change until version 1. The formats of the site are those of package site.
package generator
