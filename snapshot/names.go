package snapshot

import (
	"context"
	"io"
	"iter"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot/internal/folder"
	"github.com/followpress/followpress/snapshot/internal/lines"
	"github.com/followpress/followpress/snapshot/internal/memory"
	"github.com/followpress/followpress/snapshot/internal/rowjson"
	"github.com/followpress/followpress/snapshot/internal/table"
)

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

// The rows of tables follow. Those of events are site.Event.
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
	// An Op is a row of the table ops: an operation with an effect that readers can see, of a list that has
	// the slot now.
	Op = rowjson.Op
)

// A Reader reads a table. It parses rows on several goroutines. Done gets all blocks of rows, in their
// order and never concurrently.
type Reader[T any] = table.Reader[T]

// A Block has successive rows of a table, those that are valid and those that are not, each in the
// order of lines.
type Block[T any] = table.Block[T]

// A Row is a parsed line of a table.
type Row[T any] = table.Row[T]

// A Digest is the digest of the rows of a table, whatever files have them.
type Digest = table.Digest

// ErrNoTable says that a snapshot does not have a table.
var ErrNoTable = table.ErrNoTable

// CheckTable opens the files of a table and closes them again. An error wraps ErrNoTable if the table
// is missing.
func CheckTable(snapshot afero.Fs, t Table) error { return table.Check(snapshot, t) }

// TableFiles returns the names of the files of a table, in the order of their rows. An error wraps
// ErrNoTable if the table is missing.
func TableFiles(snapshot afero.Fs, t Table) (names []string, err error) {
	return table.Files(snapshot, t)
}

// TableBytes is the size of the files of a table, as they are stored.
func TableBytes(snapshot afero.Fs, t Table) (total int64, err error) { return table.Bytes(snapshot, t) }

// TableDigest reads a table to its end and returns its digest. An invalid row is a *RowError; that a row may be there
// only once is checked of ops alone. If untimed, times of records do not count, as for a site with the API spec. An
// error wraps ErrNoTable if the table is missing.
func TableDigest(ctx context.Context, snapshot afero.Fs, t Table, untimed bool) (site.SHA256, error) {
	return table.DigestOf(ctx, snapshot, t, untimed)
}

// Canonical calls found with each row of a table in canonical form, without the end of the line, in the order of the
// table. The row is only valid until found returns. Its options and errors are those of TableDigest.
func Canonical(ctx context.Context, snapshot afero.Fs, t Table, untimed bool, found func(row []byte) error) error {
	return table.Canonical(ctx, snapshot, t, untimed, found)
}

// Accounts reads the rows of accounts that have a profile, in the order of the table, with constant
// memory. It ends with the first error; an invalid row is a *RowError.
func Accounts(snapshot afero.Fs) iter.Seq2[Account, error] {
	if _, err := ReadAsOf(snapshot); err != nil {
		return func(yield func(Account, error) bool) { yield(Account{}, err) }
	}
	return table.Profiles(snapshot)
}

// Compress returns what compresses rows into w as a Writer does. Each Write must be of whole rows if frames are to end at
// the ends of rows. Close leaves w open.
func Compress(w io.Writer) (io.WriteCloser, error) { return lines.Compress(w) }

// A RowError is an invalid row of a snapshot, or an invalid refreshed object.
type RowError = rowjson.RowError

// Rows are rows of a table as bytes, which never change. Rows of records may be those of several
// lists: they lack the token id.
type Rows = memory.Rows

// A Piece is some rows of a table in memory. Pieces may share their Rows.
type Piece = memory.Piece

// RecordRows makes rows of records, whose token ids do not matter. It refuses what WriteRecord would
// refuse.
func RecordRows(records []Record) (Rows, error) { return memory.RecordRows(records) }

// ListRows makes rows of lists. It refuses what WriteList would refuse, but for a list that is there
// twice.
func ListRows(lists []List) (Rows, error) { return memory.ListRows(lists) }

// OpRows makes rows of ops, in the order of Op.Compare. It refuses what WriteOp would refuse.
func OpRows(ops []Op) (Rows, error) { return memory.OpRows(ops) }

// Addresses yields the addresses of rows of accounts or records that only one of two has: those of
// records that are about an address. Rows that both have in the same order cost next to nothing.
func Addresses(one, other Rows) []site.Address { return memory.Addresses(one, other) }

// NewMemory is a snapshot in memory, for reading: its files are those that Create makes without
// compression of the same rows. Tables that are absent have no rows, but recommended and ops, which are absent
// then. The files never change, and may be read from any number of goroutines.
//
// Rows stay text: a million records took 136 bytes each as text and 128 as structs with the memory of texts shared, which
// the garbage collector would have to walk, and digests, copies and comparisons of rows need the text. Reading the million
// takes 0.7 s on two cores, as from a file.
func NewMemory(m Meta, tables map[Table][]Piece) (afero.Fs, error) {
	meta, err := encodeMeta(m)
	if err != nil {
		return nil, err
	}
	return memory.New(meta, tables), nil
}

// A Folder is the folder of a snapshot, for reading. It stays the snapshot that it was when it was
// opened, even if another process replaces the folder, as a Writer does.
type Folder = folder.Folder

// Open opens a folder. That it is not there, or no snapshot, is not an error of Open but of what
// reads it. Close must be called after a success.
func Open(dir string) (*Folder, error) { return folder.Open(dir) }

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
