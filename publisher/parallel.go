package publisher

import (
	"context"
	"iter"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/internal/inorder"
)

// parallel calls do for 0 to n-1, from at most limit goroutines. It returns the first error, after
// which it makes no more calls; if ctx has ended, it returns the cause of that.
func parallel(ctx context.Context, limit, n int, do func(ctx context.Context, i int) error) error {
	return parallelEach(ctx, limit, inorder.Numbers(n), do)
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

// items are those of a slice, for what may fail elsewhere.
func items[T any](all []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, item := range all {
			if !yield(item, nil) {
				return
			}
		}
	}
}
