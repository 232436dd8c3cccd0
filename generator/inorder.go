package generator

import (
	"context"
	"iter"

	"golang.org/x/sync/errgroup"
)

// inOrder runs work on the items on that many goroutines and hands the results to
// done in the order of the items, on one goroutine. At most a few items a worker
// are under way, so that memory stays bounded however many there are. It returns
// the first error of items, work or done after all goroutines have ended.
func inOrder[In, Out any](
	ctx context.Context, workers int, items iter.Seq2[In, error],
	work func(In) (Out, error), done func(Out) error,
) error {
	type job struct {
		item   In
		result chan Out
	}
	group, ctx := errgroup.WithContext(ctx)
	jobs := make(chan job)
	results := make(chan chan Out, 2*workers)

	group.Go(func() error {
		defer close(jobs)
		defer close(results)
		for item, err := range items {
			if err != nil {
				return err
			}
			j := job{item, make(chan Out, 1)}
			select {
			case results <- j.result:
			case <-ctx.Done():
				return ctx.Err()
			}
			select {
			case jobs <- j:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	for range workers {
		group.Go(func() error {
			for j := range jobs {
				out, err := work(j.item)
				if err != nil {
					return err
				}
				j.result <- out
			}
			return nil
		})
	}
	group.Go(func() error {
		for result := range results {
			select {
			case out := <-result:
				if err := done(out); err != nil {
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	return group.Wait()
}
