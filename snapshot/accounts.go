package snapshot

import (
	"errors"
	"iter"

	"github.com/spf13/afero"
)

// Accounts reads the rows of accounts that have a profile, in the order of the table, with constant
// memory. It ends with the first error; an invalid row is a *RowError.
func Accounts(snapshot afero.Fs) iter.Seq2[Account, error] {
	return func(yield func(Account, error) bool) {
		if err := eachProfile(snapshot, func(a Account) bool { return yield(a, nil) }); err != nil && !errors.Is(err, errStopped) {
			yield(Account{}, err)
		}
	}
}

func eachProfile(snapshot afero.Fs, yield func(Account) bool) (err error) {
	if _, err := ReadAsOf(snapshot); err != nil {
		return err
	}
	table, err := openTable(snapshot, selection{table: TableAccounts}, false, nil, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, table.close()) }()
	accept := func(r Row[Account]) error {
		if r.Value.ENS != nil && !yield(r.Value) {
			return errStopped
		}
		return nil
	}
	for _, source := range table.sources {
		for b, err := range source {
			if err != nil {
				return err
			}
			rows := Block[Account]{File: b.file}
			parseBlock(&rows, b, nil, false, decoded(ParseAccount), same)
			var stopped error
			err := rows.Each(func(r Row[Account]) error { stopped = accept(r); return stopped },
				func(e *RowError) error {
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
