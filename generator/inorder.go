package generator

import (
	"context"
	"iter"

	"golang.org/x/sync/errgroup"
)

// inOrder runs work on the items on that many goroutines and hands the results to
// done in the order of the items, one at a time. At most a few items a worker are
// under way, so that memory stays bounded however many there are. It returns the
// first error of items, work or done after all goroutines have ended.
func inOrder[In, Out any](
	ctx context.Context, workers int, items iter.Seq2[In, error],
	work func(In, *place[Out]) (Out, error), done func(Out) error,
) error {
	type job struct {
		item  In
		place *place[Out]
	}
	group, ctx := errgroup.WithContext(ctx)
	jobs := make(chan job)
	places := make(chan *place[Out], 2*workers)

	group.Go(func() error {
		defer close(jobs)
		defer close(places)
		for item, err := range items {
			if err != nil {
				return err
			}
			j := job{item, &place[Out]{ctx, make(chan struct{}), make(chan Out, 1), done}}
			select {
			case places <- j.place:
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
				out, err := work(j.item, j.place)
				if err != nil {
					return err
				}
				j.place.last <- out
			}
			return nil
		})
	}
	group.Go(func() error {
		for p := range places {
			close(p.turn)
			select {
			case out := <-p.last:
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

// A place is that of an item in the order. Work that has much to give has two ways to
// keep it from piling up: to wait for its turn, and to hand parts of it on then.
type place[Out any] struct {
	ctx  context.Context
	turn chan struct{} // closed when all items before this one are done
	last chan Out      // what work returns
	done func(Out) error
}

// come reports whether it is this item's turn.
func (p *place[Out]) come() bool {
	select {
	case <-p.turn:
		return true
	default:
		return false
	}
}

// wait waits for the item's turn.
func (p *place[Out]) wait() error {
	select {
	case <-p.turn:
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

// give hands a part of the result to done. It must be the item's turn: then nobody else
// calls done, all wait for what work returns.
func (p *place[Out]) give(part Out) error { return p.done(part) }
