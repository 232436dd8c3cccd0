package rowjson

import "slices"

// A Table is one of the tables of a snapshot.
type Table string

// The tables. Only the last two may be missing.
const (
	TableEvents      Table = "events"
	TableLists       Table = "lists"
	TableAccounts    Table = "accounts"
	TableRecords     Table = "records"
	TableBadges      Table = "badges"
	TableRecommended Table = "recommended"
	TableOps         Table = "ops"
)

// Tables returns the tables that every snapshot has, in the order in which to read them: rows refer
// only to earlier tables.
func Tables() []Table {
	return []Table{TableEvents, TableLists, TableAccounts, TableRecords, TableBadges}
}

// AllTables returns all tables, those that may be missing last.
func AllTables() []Table { return append(Tables(), optionalTables...) }

// optionalTables may be missing.
var optionalTables = []Table{TableRecommended, TableOps}

// Optional reports whether a snapshot may lack the table.
func (t Table) Optional() bool { return slices.Contains(optionalTables, t) }
