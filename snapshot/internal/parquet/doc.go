// Package parquet reads the rows of tables from Parquet files, with memory bounded by the size of a file. It unpacks
// pages and checks them before the Parquet library sees them, because the library allocates as much as a file claims.
package parquet
