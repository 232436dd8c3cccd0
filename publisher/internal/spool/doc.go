// Package spool stores per-object records of a run, in memory or in a temporary file.
package spool
