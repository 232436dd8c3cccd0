package table

import (
	"context"
	"iter"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/snapshot/internal/rowjson"
)

// Profiles yields the rows of accounts with a profile, in the order of the table and with constant memory. It ends
// with the first error; an invalid row yields a *rowjson.RowError.
func Profiles(snapshot afero.Fs) iter.Seq2[rowjson.Account, error] {
	return func(yield func(rowjson.Account, error) bool) {
		ctx, stop := context.WithCancel(context.Background())
		accounts := make(chan rowjson.Account)
		var failed error // set before accounts is closed
		send := func(r Row[rowjson.Account]) error {
			if r.Value.ENS == nil {
				return nil
			}
			select {
			case accounts <- r.Value:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		go func() {
			defer close(accounts)
			failed = Reader[rowjson.Account]{Snapshot: snapshot, Workers: 1, Done: func(b Block[rowjson.Account]) error {
				return b.Each(send, func(e *rowjson.RowError) error { return e })
			}}.Table(ctx, rowjson.TableAccounts)
		}()
		defer func() {
			stop()
			for range accounts { // wait for the reader
			}
		}()
		for a := range accounts {
			if !yield(a, nil) {
				return
			}
		}
		if failed != nil {
			yield(rowjson.Account{}, failed)
		}
	}
}
