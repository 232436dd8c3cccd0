package snapshot

import (
	"time"

	"github.com/followpress/followpress/site"
)

// WriteOptions are options of a Writer.
type WriteOptions struct {
	Compression string // gzip, zstd or none; "" is zstd
	NoSync      bool   // do not sync the snapshot to disk before it replaces the old one
}

// A Writer writes a snapshot. The tables are independent of each other: rows of several tables may
// be mixed, and tables may be written from different goroutines, one goroutine a table.
type Writer struct{}

// Create begins a snapshot that Commit puts into the folder dir. Until then the snapshot that is
// there stays as it is. An error wraps ErrBusy if another Writer writes to that folder.
func Create(dir string, o WriteOptions) (*Writer, error) { panic("not yet") }

// WriteList writes a row of lists.
func (w *Writer) WriteList(List) error { panic("not yet") }

// WriteRecord writes a row of records.
func (w *Writer) WriteRecord(Record) error { panic("not yet") }

// WriteAccount writes a row of accounts.
func (w *Writer) WriteAccount(Account) error { panic("not yet") }

// WriteEvent writes a row of events.
func (w *Writer) WriteEvent(site.Event) error { panic("not yet") }

// WriteBadge writes a row of badges.
func (w *Writer) WriteBadge(Badge) error { panic("not yet") }

// WriteRecommended writes a row of recommended. A snapshot without such rows has no such table.
func (w *Writer) WriteRecommended(Recommended) error { panic("not yet") }

// Meta is meta.json without the version of the format.
type Meta struct {
	AsOf    time.Time
	ListOps *uint64 // nil for none
}

// Commit completes the snapshot and puts it into its folder in one step.
func (w *Writer) Commit(Meta) error { panic("not yet") }

// Close gives the snapshot up, unless it was committed.
func (w *Writer) Close() error { panic("not yet") }
