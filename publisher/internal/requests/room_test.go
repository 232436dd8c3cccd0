package requests

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Requests that give up waiting take no room, even if they were just admitted.
func TestRoomIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(3, 3))
		s := newWindow(3)
		var group sync.WaitGroup
		for range 2000 {
			patience, work := time.Duration(random.IntN(50))*time.Millisecond, time.Duration(random.IntN(5))*time.Millisecond
			bytes, failed := int64(random.IntN(2)*random.IntN(1e6)), random.IntN(10) == 0
			time.Sleep(time.Millisecond)
			group.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				if taken, err := s.take(ctx, bytes); err == nil {
					time.Sleep(work)
					s.give(taken, !failed, failed)
				}
			})
		}
		group.Wait()
		if s.taken != 0 || s.bytes != 0 || s.waiting.Len() != 0 || s.limit < 1 || s.limit > 3 {
			t.Errorf("at the end: got %d with %d bytes, %d waiting, limit %v, want none", s.taken, s.bytes, s.waiting.Len(), s.limit)
		}
	})
}
