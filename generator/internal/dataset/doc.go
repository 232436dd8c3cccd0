// Package dataset writes tables of a graph as Parquet files that any engine reads, with a digest of their rows that does
// not depend on how they are encoded, and the data package that describes them. It knows no graph.
package dataset
