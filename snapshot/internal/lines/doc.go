// Package lines reads compressed files of lines in blocks of whole lines. It writes zstd files that it can unpack
// concurrently.
package lines
