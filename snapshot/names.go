package snapshot

import "github.com/followpress/followpress/snapshot/internal/rowjson"

// A Table is one of the tables of a snapshot.
type Table = rowjson.Table

// The tables. Only the last two may be missing.
const (
	TableEvents      = rowjson.TableEvents
	TableLists       = rowjson.TableLists
	TableAccounts    = rowjson.TableAccounts
	TableRecords     = rowjson.TableRecords
	TableBadges      = rowjson.TableBadges
	TableRecommended = rowjson.TableRecommended
	TableOps         = rowjson.TableOps
)

// Tables returns the tables that every snapshot has, in the order in which to read them: rows refer
// only to earlier tables.
func Tables() []Table { return rowjson.Tables() }

// Rows of the tables. Those of events are site.Event.
type (
	List        = rowjson.List
	Record      = rowjson.Record
	Account     = rowjson.Account
	Badge       = rowjson.Badge
	Recommended = rowjson.Recommended
	Op          = rowjson.Op
)

// A RowError is an invalid row of a snapshot, or an invalid refreshed object.
type RowError = rowjson.RowError

const (
	// NoTime is the time of a record of which it is not known.
	NoTime = rowjson.NoTime
	// MaxOp is the most bytes that an operation of the table ops may have.
	MaxOp = rowjson.MaxOp
)

// The functions below parse, check and normalise one row. They may be called from any goroutine. The
// texts of a row may share memory with each other. References to other rows are not checked.

// ParseList parses a row of lists.
func ParseList(line []byte) (List, error) { return rowjson.ParseList(line) }

// ParseRecord parses a row of records without the time at which it was added, which may be anything.
// Tags come back sorted, without repetitions.
func ParseRecord(line []byte) (Record, error) { return rowjson.ParseRecord(line) }

// ParseTimedRecord is ParseRecord with the time.
func ParseTimedRecord(line []byte) (Record, error) { return rowjson.ParseTimedRecord(line) }

// ParseAccount parses a row of accounts. A profile comes back as site.Profile.Normalize returns it.
func ParseAccount(line []byte) (Account, error) { return rowjson.ParseAccount(line) }

// ParseBadge parses a row of badges.
func ParseBadge(line []byte) (Badge, error) { return rowjson.ParseBadge(line) }

// ParseRecommended parses a row of recommended.
func ParseRecommended(line []byte) (Recommended, error) { return rowjson.ParseRecommended(line) }

// ParseOp parses a row of ops. The order of rows is not checked.
func ParseOp(line []byte) (Op, error) { return rowjson.ParseOp(line) }
