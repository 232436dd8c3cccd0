package inorder

import (
	"context"

	"golang.org/x/sync/errgroup"
)

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
