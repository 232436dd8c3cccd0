package publisher

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// parallel calls do for 0 to n-1, from at most limit goroutines. It returns the first error, after
// which it makes no more calls; if ctx has ended, it returns the cause of that.
func parallel(ctx context.Context, limit, n int, do func(ctx context.Context, i int) error) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, limit))
	for i := range n {
		if groupCtx.Err() != nil {
			break
		}
		group.Go(func() error { return do(groupCtx, i) })
	}
	err := group.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
