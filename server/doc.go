// Package server answers the requests of the API from a site: files as they are,
// and what no file can hold (pages and term searches over the search shards,
// records without tags). Preview and fallback serve the same handler; only the
// Store differs.
package server
