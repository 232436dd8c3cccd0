package rowjson

import (
	"fmt"
	"math"
	"slices"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// NoTime is the time of a record whose time is unknown.
const NoTime = math.MinInt64

// A List is a row of the table lists.
type List struct {
	TokenID string
	Owner   site.Address
	User    *site.Address // nil if unset
}

// A Record is a row of the table records.
type Record struct {
	TokenID string
	Version uint32
	Type    string // address, or a decimal for another type
	Data    []byte // 20 bytes for an address
	Tags    []string
	Added   int64 // milliseconds since the Unix epoch, or NoTime
}

// Address returns the address in a record of the type address. ok is false for other types and malformed data.
func (r *Record) Address() (site.Address, bool) {
	if r.Type != rules.TypeAddress || len(r.Data) != len(site.Address{}) {
		return site.Address{}, false
	}
	return site.Address(r.Data), true
}

// An Account is a row of the table accounts.
type Account struct {
	Address site.Address
	Primary string        // token ID of its primary list; "" for none
	ENS     *site.Profile // nil for none
}

// A Badge is a row of the table badges.
type Badge struct {
	EventID string
	TokenID string
	Owner   site.Address
}

// A Recommended is a row of the table recommended.
type Recommended struct {
	Address site.Address
	Class   string // "" for none
}

// MaxLineBytes is the maximum size of a row in bytes.
const MaxLineBytes = 16 << 20

// A RowError is an invalid row of a snapshot, or an invalid refreshed object.
type RowError struct {
	File   string `json:"file"` // name of the table's file, or key of the object
	Line   int    `json:"line"` // from 1; 0 for an object
	Reason string `json:"reason"`
}

// Error returns "file:line: reason", or "key: reason" for an object.
func (e *RowError) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Reason
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason)
}

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
