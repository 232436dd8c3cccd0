// Package table reads the tables of a snapshot: parts.go finds their files and reads some ahead, reader.go and ops.go parse
// rows on several cores, block.go hands them on in their order, and digest.go and canonical.go are for whoever compares.
package table
