package compute

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/followpress/followpress/server/internal/cache"
	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/server/internal/gate"
)

// Answers that wait until clients have read others are made in the order in which they were asked for.
func TestWhoWaitsForRoomKeepsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, answers = 64 << 10, 8
		memory := &gate.Gate{Size: 1 << 20}
		c, err := cache.New(&fetch.Fetcher{}, cache.Options{
			Bytes: 1 << 20, SentBytes: size / 2, Gates: cache.Gates{Small: memory, Large: memory, Waiting: memory, Rereads: memory},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		large := &gate.Gate{Size: size, Line: memory} // one at a time
		m := NewMaker(c, Gates{Small: &gate.Gate{Size: LeastBytes, Line: memory}, Large: large}, nil)
		reading := c.NewComputed(make([]byte, size))
		made := make(chan int, answers)
		read := make(chan *cache.Object, answers)
		for i := range answers {
			go func() {
				o, err := m.answer(t.Context(), reader{}, Request{}).filled(size, func(a *Answer) error {
					a.Body = append(a.Body, make([]byte, size)...)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
				made <- i
				read <- o
			}()
			synctest.Wait() // it waits
		}
		var order []int
		for range answers {
			reading.Release() // a client has read an answer
			order, reading = append(order, <-made), <-read
		}
		if !slices.IsSorted(order) {
			t.Errorf("got the answers in the order %v, want that of the requests", order)
		}
		reading.Release()
		if got := large.Taken(); got != 0 {
			t.Errorf("got %d bytes taken in the end, want none", got)
		}
	})
}
