package snapshot

import (
	"context"

	"github.com/spf13/afero"
)

// ReadRecords is ReadTable of the table records: convert makes of each valid row what done gets. The
// record, and what it refers to, is only valid until convert returns, which must not change it. The
// times of records are read only if timed; otherwise they may be anything.
func ReadRecords[T any](
	ctx context.Context, snapshot afero.Fs, workers int, timed bool, convert func(*Record) (T, error), done func(Block[T]) error,
) error {
	return ReadTable(ctx, snapshot, TableRecords, workers, func(line []byte) (T, error) {
		r, err := parseRecord(line, timed)
		if err != nil {
			var none T
			return none, err
		}
		return convert(&r)
	}, done)
}
