package inorder

import (
	"context"
	"iter"

	"golang.org/x/sync/errgroup"
)

// Each calls work for 0 to n-1, from at most limit goroutines, and done with each result, in this
// order and never concurrently. It returns the first error, after which requests of work in progress
// see the end of their context; if ctx has ended, it returns the cause of that.
func Each[T any](ctx context.Context, limit, n int, work func(ctx context.Context, i int) (T, error), done func(T) error) error {
	workCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := Do(workCtx, max(1, limit), Numbers(n), func(i int, _ *Ticket[T]) (T, error) {
		result, err := work(workCtx, i)
		if err != nil {
			cancel(err) // requests in flight are of no use any more
		}
		return result, err
	}, done)
	if cause := context.Cause(workCtx); cause != nil {
		return cause
	}
	return err
}

// Numbers are 0 to n-1, without errors.
func Numbers(n int) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for i := range n {
			if !yield(i, nil) {
				return
			}
		}
	}
}

// Chunks calls f for 0 to n-1, from as many goroutines as there are workers, each of which takes some
// thousand successive numbers at a time. Unlike the other functions it keeps no order.
func Chunks(ctx context.Context, workers, n int, f func(i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	const chunk = 4096
	for from := 0; from < n; from += chunk {
		group.Go(func() error {
			for i := from; i < min(from+chunk, n); i++ {
				if err := f(i); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	return group.Wait()
}
