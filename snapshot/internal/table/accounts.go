package table

import (
	"errors"
	"iter"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/snapshot/internal/lines"
	"github.com/followpress/followpress/snapshot/internal/rowjson"
)

// Profiles yields the rows of accounts with a profile, in the order of the table and with constant memory. It ends
// with the first error; an invalid row yields a *rowjson.RowError.
func Profiles(snapshot afero.Fs) iter.Seq2[rowjson.Account, error] {
	return func(yield func(rowjson.Account, error) bool) {
		if err := eachProfile(snapshot, func(a rowjson.Account) bool { return yield(a, nil) }); err != nil && !errors.Is(err, lines.ErrStopped) {
			yield(rowjson.Account{}, err)
		}
	}
}

func eachProfile(snapshot afero.Fs, yield func(rowjson.Account) bool) (err error) {
	table, err := openTable(snapshot, selection{table: rowjson.TableAccounts}, false, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, table.close()) }()
	accept := func(r Row[rowjson.Account]) error {
		if r.Value.ENS != nil && !yield(r.Value) {
			return lines.ErrStopped
		}
		return nil
	}
	for _, source := range table.sources {
		for b, err := range source {
			if err != nil {
				return err
			}
			rows := Block[rowjson.Account]{File: b.file}
			parseBlock(&rows, b, nil, decoded(rowjson.ParseAccount), same)
			var stopped error
			err := rows.Each(func(r Row[rowjson.Account]) error { stopped = accept(r); return stopped },
				func(e *rowjson.RowError) error {
					if stopped != nil {
						return stopped
					}
					return e
				})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
