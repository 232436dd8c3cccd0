package rowjson

import "slices"

// A Table is one of the tables of a snapshot.
type Table string

// The tables. Only the last two are optional.
const (
	TableEvents      Table = "events"
	TableLists       Table = "lists"
	TableAccounts    Table = "accounts"
	TableRecords     Table = "records"
	TableBadges      Table = "badges"
	TableRecommended Table = "recommended"
	TableOps         Table = "ops"
)

// Tables returns the required tables in reading order: rows refer to earlier tables only.
func Tables() []Table {
	return []Table{TableEvents, TableLists, TableAccounts, TableRecords, TableBadges}
}

// AllTables returns all tables, optional ones last.
func AllTables() []Table { return append(Tables(), optionalTables...) }

// optionalTables may be missing from a snapshot.
var optionalTables = []Table{TableRecommended, TableOps}

// Optional reports whether a snapshot may lack the table.
func (t Table) Optional() bool { return slices.Contains(optionalTables, t) }
