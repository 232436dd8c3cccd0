package snapshot

import (
	"bytes"
	"iter"

	"github.com/spf13/afero"
)

// Accounts reads the rows of accounts that have a profile, in the order of the table, with constant
// memory. It ends with the first error; an invalid row is a *RowError.
func Accounts(snapshot afero.Fs) iter.Seq2[Account, error] {
	return func(yield func(Account, error) bool) {
		if _, err := ReadAsOf(snapshot); err != nil {
			yield(Account{}, err)
			return
		}
		file, err := openTable(snapshot, TableAccounts)
		if err != nil {
			yield(Account{}, err)
			return
		}
		defer func() { _ = file.close() }() // nothing more is read
		for b, err := range lineBlocks(file, nil) {
			if err != nil {
				yield(Account{}, err)
				return
			}
			if !b.accounts(file.name, yield) {
				return
			}
		}
	}
}

// accounts yields the accounts of a block that have a profile. It reports whether to go on.
func (b lineBlock) accounts(file string, yield func(Account, error) bool) bool {
	number := b.first
	for line := range bytes.Lines(b.lines) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			a, err := ParseAccount(line)
			if err != nil {
				yield(Account{}, &RowError{file, number, err.Error()})
				return false
			}
			if a.ENS != nil && !yield(a, nil) {
				return false
			}
		}
		number++
	}
	return true
}
