package snapshot

import "fmt"

// A Table is one of the tables of a snapshot.
type Table string

// The tables. Only the last one may be missing.
const (
	TableEvents      Table = "events"
	TableLists       Table = "lists"
	TableAccounts    Table = "accounts"
	TableRecords     Table = "records"
	TableBadges      Table = "badges"
	TableRecommended Table = "recommended"
)

// Tables are those that every snapshot has. Rows refer only to earlier tables.
var Tables = []Table{TableEvents, TableLists, TableAccounts, TableRecords, TableBadges}

const maxLineBytes = 16 << 20 // limit of a row

// A RowError is an invalid row of a snapshot, or an invalid refreshed object.
type RowError struct {
	File   string `json:"file"` // name of the table's file, or key of the object
	Line   int    `json:"line"` // from 1; 0 for an object
	Reason string `json:"reason"`
}

// Error is "file:line: reason", or "key: reason" for an object.
func (e *RowError) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Reason
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason)
}
