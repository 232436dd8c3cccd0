// Package lines reads files of lines: unpack.go knows their formats, frames.go unpacks zstd on several cores and
// compresses it so that this is possible, and cut.go cuts files into blocks of whole lines.
package lines
