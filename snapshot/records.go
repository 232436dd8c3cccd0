package snapshot

import (
	"context"

	"github.com/spf13/afero"
)

// ReadRecords is ReadTable of the table records: convert makes of each valid row what done gets. The
// record, and what it refers to, is only valid until convert returns, which must not change it. The
// times of records are read only if timed; otherwise they may be anything. Unless complete is nil, it
// gets the valid rows of each block, which it may change, before done; like convert, it is called
// concurrently.
func ReadRecords[T any](
	ctx context.Context, snapshot afero.Fs, workers int, timed bool,
	convert func(*Record) (T, error), complete func([]Row[T]), done func(Block[T]) error,
) error {
	return readRecords(ctx, snapshot, selection{table: TableRecords}, workers, timed, convert, complete, done)
}

// ReadRecordsFile is ReadRecords of one file of the table (TableFiles).
func ReadRecordsFile[T any](
	ctx context.Context, snapshot afero.Fs, file string, workers int, timed bool, convert func(*Record) (T, error), done func(Block[T]) error,
) error {
	return readRecords(ctx, snapshot, selection{TableRecords, file}, workers, timed, convert, nil, done)
}

func readRecords[T any](
	ctx context.Context, snapshot afero.Fs, from selection, workers int, timed bool,
	convert func(*Record) (T, error), complete func([]Row[T]), done func(Block[T]) error,
) error {
	parse := func(s *rowScanner, line []byte) (value T, err error) {
		r, ok := s.scanRecord(line, timed)
		if !ok {
			decoded, err := decodeRecord(line, timed)
			if err != nil {
				return value, err
			}
			r = &decoded
		}
		return convert(r)
	}
	return readParts(ctx, snapshot, from, timed, workers, func(p *Block[T], b block, s *rowScanner) {
		if b.rows != nil {
			take := func(row int) (*Record, bool) { return &s.record, s.columnsOfRecord(b.rows, row) }
			parseUsual(p, b, take, func(line []byte) (Record, error) { return decodeRecord(line, timed) }, convert)
		} else {
			p.parseLines(b, s, parse)
		}
		if complete != nil {
			complete(p.Rows)
		}
	}, done)
}

// ReadAccounts is ReadTable of the table accounts: convert makes of each valid row what done gets. The
// account, and what it refers to, is only valid until convert returns, which must not change it.
func ReadAccounts[T any](
	ctx context.Context, snapshot afero.Fs, workers int, convert func(*Account) (T, error), done func(Block[T]) error,
) error {
	return readAccounts(ctx, snapshot, selection{table: TableAccounts}, workers, convert, done)
}

// ReadAccountsFile is ReadAccounts of one file of the table (TableFiles).
func ReadAccountsFile[T any](
	ctx context.Context, snapshot afero.Fs, file string, workers int, convert func(*Account) (T, error), done func(Block[T]) error,
) error {
	return readAccounts(ctx, snapshot, selection{TableAccounts, file}, workers, convert, done)
}

func readAccounts[T any](
	ctx context.Context, snapshot afero.Fs, from selection, workers int, convert func(*Account) (T, error), done func(Block[T]) error,
) error {
	parse := func(s *rowScanner, line []byte) (value T, err error) {
		a, ok := s.scanAccount(line)
		if !ok {
			decoded, err := decodeAccount(line)
			if err != nil {
				return value, err
			}
			a = &decoded
		}
		return convert(a)
	}
	return readParts(ctx, snapshot, from, false, workers, func(p *Block[T], b block, s *rowScanner) {
		if b.rows != nil {
			take := func(row int) (*Account, bool) { return &s.account, s.columnsOfAccount(b.rows, row) }
			parseUsual(p, b, take, decodeAccount, convert)
		} else {
			p.parseLines(b, s, parse)
		}
	}, done)
}
