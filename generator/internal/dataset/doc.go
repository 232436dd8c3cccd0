// Package dataset writes tables of a graph as Parquet files, with a digest of their rows that does
// not depend on the encoding, and the data package that describes them.
package dataset
