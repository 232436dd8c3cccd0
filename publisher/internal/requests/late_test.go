package requests

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// Each request that may still arrive is remembered.
func TestUnansweredRequests(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	lost := &storage.UnansweredError{Err: errors.New("lost")}
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		want bool
	}{
		"answered":         {t.Context(), nil, false},
		"refused":          {t.Context(), storage.ErrCondition, false},
		"without answer":   {t.Context(), lost, true},
		"cut off":          {ended, ErrNotHeld, true},
		"done, at the end": {ended, nil, false},
	} {
		w := &writes{}
		if w.record(c.ctx, c.err); w.settled() == c.want {
			t.Errorf("%s: got settled %v, want %v", name, w.settled(), !c.want)
		}
	}
	object := storage.Object{Entry: site.NewEntry("a", []byte("a")), Body: []byte("a")}
	for name, send := range map[string]func(context.Context, *Bucket) error{
		"put": func(ctx context.Context, b *Bucket) error {
			_, err := b.Put(ctx, object, storage.Always)
			return err
		},
		"delete one":     func(ctx context.Context, b *Bucket) error { return b.Delete(ctx, "a") },
		"delete several": func(ctx context.Context, b *Bucket) error { return b.Delete(ctx, "a", "b") },
		"put many":       func(ctx context.Context, b *Bucket) error { return b.PutMany(ctx, []storage.Object{object}) },
		"try to put many": func(ctx context.Context, b *Bucket) error {
			_, err := b.Unpacks(ctx, []storage.Object{object})
			return err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := New(t.Context(), &unheard{err: lost}, settings())
			if err := send(t.Context(), b); err != nil || b.Settled() {
				t.Errorf("%s: got %v, settled %v, want it done, and not settled", name, err, b.Settled())
			}
		})
	}
}

// An attempt cut off by the end of the lease is retried, even if a heartbeat has renewed the lease.
func TestAttemptsUnderALease(t *testing.T) {
	for name, held := range map[string]bool{"ended": false, "renewed": true} {
		synctest.Test(t, func(t *testing.T) {
			store := &unheard{err: context.Canceled}
			b := New(t.Context(), store, settings()).Under(lapse{held, store}, false)
			if _, err := b.Put(t.Context(), storage.Object{}, storage.Always); err != nil || store.sent != 2 {
				t.Errorf("%s: got %v after %d attempts, want success at the second", name, err, store.sent)
			}
		})
	}
}

func settings() Settings {
	return Settings{Concurrency: 4, Patience: time.Minute, Log: slog.New(slog.DiscardHandler), Retries: new(atomic.Int64)}
}

// lapse is a lease that cuts off the first attempt.
type lapse struct {
	held  bool // whether the lease is held when the attempt has ended
	store *unheard
}

func (l lapse) Held() bool { return l.held || l.store.sent > 1 }

func (l lapse) Context(parent context.Context) (context.Context, context.CancelFunc, error) {
	return cutOnce{parent, l.store}, func() {}, nil
}

type cutOnce struct {
	context.Context
	store *unheard
}

func (c cutOnce) Err() error {
	if c.store.sent == 1 {
		return ErrNotHeld
	}
	return c.Context.Err()
}

// unheard is a Store that only answers the first write, with an error.
type unheard struct {
	Store
	err  error
	sent int
}

func (u *unheard) answer() error {
	if u.sent++; u.sent == 1 {
		return u.err
	}
	return nil
}

func (u *unheard) Put(context.Context, storage.Object, storage.Condition) (string, error) {
	return "", u.answer()
}
func (u *unheard) Delete(context.Context, []site.Key) error                { return u.answer() }
func (u *unheard) PutMany(context.Context, []storage.Object) error         { return u.answer() }
func (u *unheard) Unpacks(context.Context, []storage.Object) (bool, error) { return true, u.answer() }

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
