// Package spool keeps what a run has to remember of single objects, in memory or in a temporary file.
package spool
