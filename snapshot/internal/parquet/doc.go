// Package parquet reads the rows of tables from files of Parquet, in memory that is bounded by the size of a file.
//
// From a file to rows: footer.go opens it, pages.go unpacks pages and checks with values.go that the library will make no
// more of them than they say, file.go has the library read columns, and rows.go makes rows of them.
package parquet
