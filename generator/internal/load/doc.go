// Package load reads the tables of a snapshot, and refreshed data, into the graph that render shows.
package load
