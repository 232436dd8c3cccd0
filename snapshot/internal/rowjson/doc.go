// Package rowjson has the tables of snapshots, their rows, and the form of rows as JSON: scan.go reads the form in which
// programs write rows, parse.go any other, and encode.go writes the canonical one.
package rowjson
