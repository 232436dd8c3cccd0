package requests

import (
	"context"
	"iter"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/internal/inorder"
)

// Parallel calls do for 0 to n-1, from at most limit goroutines. After the first error, which it
// returns, it makes no more calls. If ctx has ended, it returns its cause.
func Parallel(ctx context.Context, limit, n int, do func(ctx context.Context, i int) error) error {
	return ParallelEach(ctx, limit, inorder.Numbers(n), do)
}

// ParallelEach is like Parallel, over items. It takes an item when a goroutine is free. An error of
// items ends it too.
func ParallelEach[T any](ctx context.Context, limit int, items iter.Seq2[T, error], do func(ctx context.Context, item T) error) error {
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
