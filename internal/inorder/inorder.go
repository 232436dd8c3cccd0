// Package inorder does work on many goroutines and hands over the results in order.
package inorder

import (
	"context"
	"iter"

	"golang.org/x/sync/errgroup"
)

// Do calls work for each item, from as many goroutines as there are workers, and done for each
// result, in the order of items and never concurrently. At most a few items per worker are in
// progress, so memory stays bounded. It returns the first error of items, work or done, after all
// goroutines have ended.
func Do[In, Out any](
	ctx context.Context, workers int, items iter.Seq2[In, error],
	work func(In, *Ticket[Out]) (Out, error), done func(Out) error,
) error {
	type job struct {
		item   In
		ticket *Ticket[Out]
	}
	group, ctx := errgroup.WithContext(ctx)
	jobs := make(chan job)
	tickets := make(chan *Ticket[Out], 2*workers)

	group.Go(func() error {
		defer close(jobs)
		defer close(tickets)
		for item, err := range items {
			if err != nil {
				return err
			}
			j := job{item, &Ticket[Out]{ctx, make(chan struct{}), make(chan Out, 1), done}}
			select {
			case tickets <- j.ticket:
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
				out, err := work(j.item, j.ticket)
				if err != nil {
					return err
				}
				j.ticket.result <- out
			}
			return nil
		})
	}
	group.Go(func() error {
		for t := range tickets {
			close(t.turn)
			select {
			case out := <-t.result:
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

// A Ticket is the position of an item in the order. Work with a large result can wait until it is
// the item's turn, and then hand over parts of the result.
type Ticket[Out any] struct {
	ctx    context.Context
	turn   chan struct{} // closed when all items before this one are done
	result chan Out      // what work returns
	done   func(Out) error
}

// IsDue reports whether it is this item's turn.
func (t *Ticket[Out]) IsDue() bool {
	select {
	case <-t.turn:
		return true
	default:
		return false
	}
}

// Wait waits for the item's turn.
func (t *Ticket[Out]) Wait() error {
	select {
	case <-t.turn:
		return nil
	case <-t.ctx.Done():
		return t.ctx.Err()
	}
}

// HandOver calls done with a part of the result. It must be the item's turn, so that done is not
// called concurrently.
func (t *Ticket[Out]) HandOver(part Out) error { return t.done(part) }
