package publisher

import (
	"context"
	"iter"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/inorder"
)

// parallel calls do for 0 to n-1, from at most limit goroutines. It returns the first error, after
// which it makes no more calls; if ctx has ended, it returns the cause of that.
func parallel(ctx context.Context, limit, n int, do func(ctx context.Context, i int) error) error {
	return parallelEach(ctx, limit, numbers(n), do)
}

// parallelEach is parallel over items. It takes an item when a goroutine is free, and returns the
// error of items like one of do.
func parallelEach[T any](ctx context.Context, limit int, items iter.Seq2[T, error], do func(ctx context.Context, item T) error) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, limit))
	for item, err := range items {
		if groupCtx.Err() != nil {
			break
		}
		group.Go(func() error {
			if err != nil {
				return err
			}
			return do(groupCtx, item)
		})
	}
	err := group.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// inOrder calls work for 0 to n-1, from at most limit goroutines, and done with each result, in this
// order and never concurrently. Errors are those of parallel.
func inOrder[T any](ctx context.Context, limit, n int, work func(ctx context.Context, i int) (T, error), done func(T) error) error {
	workCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := inorder.Do(workCtx, max(1, limit), numbers(n), func(i int, _ *inorder.Ticket[T]) (T, error) {
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

func numbers(n int) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for i := range n {
			if !yield(i, nil) {
				return
			}
		}
	}
}
