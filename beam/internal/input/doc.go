// Package input reads the tables of a snapshot, and refreshed data, into a pipeline: each file of a
// table on one worker.
//
// A reader also returns counts and notes, as data and not as metrics, because metrics of a repeated
// bundle count twice. Counts are KV<string, int64>: names (Rows, Skipped, WithoutEffect, LongTexts)
// and numbers, several of each name. Notes are KV<string, []byte>: names (Invalid, LongTexts) and
// wire.Note.
package input
