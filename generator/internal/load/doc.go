// Package load reads the tables of a snapshot, and refreshed data, into a render.Graph.
package load
