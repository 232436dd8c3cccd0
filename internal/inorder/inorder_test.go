package inorder_test

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/followpress/followpress/internal/inorder"
)

func upTo(n int, last error) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for i := range n {
			if !yield(i, nil) {
				return
			}
		}
		if last != nil {
			yield(0, last)
		}
	}
}

// TestOrder: results come in the order of items, however long each takes, and only a few items per
// worker are in progress.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		const items, workers = 500, 4
		var delays [items]time.Duration
		for i := range delays {
			delays[i] = time.Duration(random.IntN(1000)) * time.Millisecond
		}
		delays[100] = time.Hour // everything else waits
		var begun, done atomic.Int64
		var got []int
		err := inorder.Do(t.Context(), workers, upTo(items, nil), func(i int, _ *inorder.Ticket[int]) (int, error) {
			if open := begun.Add(1) - done.Load(); open > 4*workers {
				t.Errorf("item %d: %d are in progress", i, open)
			}
			time.Sleep(delays[i])
			return i, nil
		}, func(i int) error {
			done.Add(1)
			got = append(got, i)
			return nil
		})
		if err != nil || len(got) != items || !slices.IsSorted(got) {
			t.Errorf("got %v and the error %v, want all in order", got, err)
		}
	})
}

// TestParts: work may hand over parts of a result when its turn has come.
func TestParts(t *testing.T) {
	var got strings.Builder
	err := inorder.Do(t.Context(), 3, upTo(9, nil), func(i int, ticket *inorder.Ticket[string]) (string, error) {
		digit := string(rune('0' + i))
		if err := ticket.Wait(); err != nil {
			return "", err
		}
		if !ticket.IsDue() {
			t.Errorf("item %d: its turn came, but it is not due", i)
		}
		return digit + " ", ticket.HandOver(digit)
	}, func(part string) error {
		got.WriteString(part)
		return nil
	})
	if want := "00 11 22 33 44 55 66 77 88 "; err != nil || got.String() != want {
		t.Errorf("got %q and the error %v, want %q", got.String(), err, want)
	}
}

// TestErrors: the first error ends everything, wherever it comes from.
func TestErrors(t *testing.T) {
	broken := errors.New("broken")
	at := func(from, where string, i int) error {
		if from == where && i == 7 {
			return broken
		}
		return nil
	}
	for _, where := range []string{"items", "work", "done"} {
		var last error
		if where == "items" {
			last = broken
		}
		err := inorder.Do(t.Context(), 2, upTo(50, last), func(i int, _ *inorder.Ticket[int]) (int, error) {
			return i, at("work", where, i)
		}, func(i int) error { return at("done", where, i) })
		if !errors.Is(err, broken) {
			t.Errorf("an error of %s: got %v", where, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := inorder.Do(ctx, 2, upTo(50, nil), func(i int, ticket *inorder.Ticket[int]) (int, error) {
		return i, ticket.Wait()
	}, func(int) error { return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}
