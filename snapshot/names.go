package snapshot

import (
	"context"
	"iter"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/snapshot/internal/folder"
	"github.com/followpress/followpress/snapshot/internal/rowjson"
	"github.com/followpress/followpress/snapshot/internal/table"
	"github.com/followpress/followpress/snapshot/memory"
)

// A Table is one of the tables of a snapshot.
type Table = rowjson.Table

// The tables. Only the last two are optional.
const (
	TableEvents      = rowjson.TableEvents
	TableLists       = rowjson.TableLists
	TableAccounts    = rowjson.TableAccounts
	TableRecords     = rowjson.TableRecords
	TableBadges      = rowjson.TableBadges
	TableRecommended = rowjson.TableRecommended
	TableOps         = rowjson.TableOps
)

// Tables returns the required tables in reading order: rows refer to earlier tables only.
func Tables() []Table { return rowjson.Tables() }

// Rows of tables. Rows of events are site.Event.
type (
	// A List is a row of the table lists.
	List = rowjson.List
	// A Record is a row of the table records.
	Record = rowjson.Record
	// An Account is a row of the table accounts.
	Account = rowjson.Account
	// A Badge is a row of the table badges.
	Badge = rowjson.Badge
	// A Recommended is a row of the table recommended.
	Recommended = rowjson.Recommended
	// An Op is a row of the table ops: an operation with a visible effect on a list that still has the slot.
	Op = rowjson.Op
)

// A Reader reads a table and parses rows concurrently. Done receives all blocks, in order and never concurrently.
type Reader[T any] = table.Reader[T]

// A Block has successive valid and invalid rows of a table, each in the order of lines.
type Block[T any] = table.Block[T]

// A Row is a parsed line of a table.
type Row[T any] = table.Row[T]

// A Digest is the digest of a table's rows. It does not depend on the files that hold them.
type Digest = table.Digest

// ErrNoTable means that a snapshot does not have a table.
var ErrNoTable = table.ErrNoTable

// CheckTable checks that the files of a table can be opened. The error wraps ErrNoTable if the table is missing.
func CheckTable(snapshot afero.Fs, t Table) error { return table.Check(snapshot, t) }

// TableFiles returns the names of a table's files, in the order of their rows. The error wraps ErrNoTable if the
// table is missing.
func TableFiles(snapshot afero.Fs, t Table) (names []string, err error) {
	return table.Files(snapshot, t)
}

// TableBytes returns the stored size of a table's files.
func TableBytes(snapshot afero.Fs, t Table) (total int64, err error) { return table.Bytes(snapshot, t) }

// Canonical calls found with each row of a table in canonical form, without the line feed, in the order of the table.
// The row is valid until found returns. If untimed, records have no times, as for a site with the API spec. An invalid row
// returns a *RowError; only ops is checked for repeated rows. The error wraps ErrNoTable if the table is missing.
func Canonical(ctx context.Context, snapshot afero.Fs, t Table, untimed bool, found func(row []byte) error) error {
	return table.Canonical(ctx, snapshot, t, untimed, found)
}

// Accounts yields the rows of accounts with a profile, in the order of the table and with constant memory. It ends
// with the first error; an invalid row yields a *RowError.
func Accounts(snapshot afero.Fs) iter.Seq2[Account, error] {
	if _, err := ReadAsOf(snapshot); err != nil {
		return func(yield func(Account, error) bool) { yield(Account{}, err) }
	}
	return table.Profiles(snapshot)
}

// A RowError is an invalid row of a snapshot, or an invalid refreshed object.
type RowError = rowjson.RowError

// NewMemory returns a read-only snapshot in memory. Its files equal those of Create without compression for the same
// rows. Missing tables have no rows; recommended and ops stay missing. The files never change, and are safe for
// concurrent use.
//
// Rows stay text. A million records took 136 bytes each as text and 128 bytes as structs with shared strings. The
// garbage collector would have to scan the latter, and digests, copies and comparisons need the text. Reading the
// million takes 0.7 s on two cores, as from a file.
func NewMemory(m Meta, tables map[Table][]memory.Piece) (afero.Fs, error) {
	meta, err := encodeMeta(m)
	if err != nil {
		return nil, err
	}
	return memory.New(meta, tables), nil
}

// A Folder is an open snapshot folder. It keeps showing the same snapshot even if another process replaces the
// folder, as a Writer does.
type Folder = folder.Folder

// Open opens a folder. A missing folder, or one that is not a snapshot, fails only when it is read. The caller must
// close it.
func Open(dir string) (*Folder, error) { return folder.Open(dir) }

// NoTime is the time of a record whose time is unknown.
const NoTime = rowjson.NoTime
