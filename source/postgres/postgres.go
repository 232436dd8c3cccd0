// Package postgres makes a snapshot of an indexer's database: of the indexer of 2024, or of its
// rewrite of 2026. It only reads, in one transaction, and streams.
//
// The API may change until version 1.
package postgres

import (
	"context"

	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
)

// Options say which database is read.
type Options struct {
	DSN      string   // a URL, postgres://user:password@host:5432/name, or key=value pairs; what is absent is taken from PG… variables
	Progress Progress // never nil
}

// Progress is told how far a run has come.
type Progress interface {
	// Stage begins a part of the run. total is the sum of n over all calls of Add in this stage,
	// or 0 if it is not known.
	Stage(name string, total int64)
	// Add says that n more items are done.
	Add(n int64)
}

// A Reader is a database that is read. It may be used by one goroutine at a time.
type Reader struct{}

// Open connects to a database and finds out which schema it has. It begins the transaction that
// Write reads in.
func Open(ctx context.Context, o Options) (*Reader, error) { panic("not yet") }

// Write writes the tables lists and records, keeps the profiles for Profiles, and ends the
// transaction: what comes after it may take its time. It can be called once.
func (r *Reader) Write(ctx context.Context, w *snapshot.Writer) (*source.Graph, error) {
	panic("not yet")
}

// Profiles are the profiles that the database had, after Write. They may be read several times.
func (r *Reader) Profiles() source.Profiles { panic("not yet") }

// Report says what Write did.
func (r *Reader) Report() *Report { panic("not yet") }

// Close ends the connection, and forgets the profiles.
func (r *Reader) Close() error { panic("not yet") }

// A Report says what was read, and what decided.
type Report struct {
	Schema   string            `json:"schema"` // v1 or v2
	Server   string            `json:"server"` // version of PostgreSQL
	Lists    uint64            `json:"lists"`
	Records  uint64            `json:"records"` // that were written: those of a shared slot count for each list
	Profiles uint64            `json:"profiles"`
	Primary  uint64            `json:"primary_lists"` // accounts that name one
	ListOps  uint64            `json:"list_ops"`      // in events
	Order    OrderReport       `json:"order"`
	Users    UserReport        `json:"users"`
	Ignored  map[string]uint64 `json:"ignored"`  // rows by the reason that they were left out for
	Warnings []string          `json:"warnings"` // what an operator should look at
	Seconds  float64           `json:"seconds"`
}

// An OrderReport says what decided the order, times and tags of the records of lists.
type OrderReport struct {
	Events uint64 `json:"events"` // lists whose operations in events give what the tables have
	Tables uint64 `json:"tables"` // other lists: the order in which rows were inserted
	Empty  uint64 `json:"empty"`  // lists without records
}

// A UserReport says what decided the users of lists.
type UserReport struct {
	Events uint64 `json:"events"`
	Tables uint64 `json:"tables"`
	None   uint64 `json:"none"` // lists without a user: the owner's
}

// String is the report for people.
func (r *Report) String() string { panic("not yet") }
