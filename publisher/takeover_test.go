package publisher

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/followpress/followpress/publisher/internal/lock"
	"github.com/followpress/followpress/site"
)

// A lease begins when its request is sent, not when the answer arrives.
func TestLeaseBeginsWhenItsRequestIsSent(t *testing.T) {
	const length, answer = time.Minute, 20 * time.Second
	for name, c := range map[string]struct {
		slow  string
		sleep time.Duration // until the answer arrives
		most  time.Duration // time left then, at most
	}{
		"the lock":    {"put _lock 1", 0, length - answer},
		"a heartbeat": {"put _lock 4", length/lock.Heartbeats + answer + time.Second, length - answer},
	} {
		t.Run(name, func(t *testing.T) {
			calmly(t, conditional, func(t *testing.T, w *world) {
				fates := map[string]fate{c.slow: {back: answer}}
				for n := 5; n < 20; n++ {
					fates[fmt.Sprint("put _lock ", n)] = fate{lost: true}
				}
				l, _, err := lockOn(t, w.calm("owner", fates), Options{Lease: length})
				if err != nil {
					t.Fatal(err)
				}
				defer l.Abandon()
				time.Sleep(c.sleep)
				left := l.Lease.Remaining()
				if left < c.most-2*time.Second || left > c.most {
					t.Errorf("left of the lease: got %v, want %v or a little less", left, c.most)
				}
			})
		})
	}
}

// A run takes a lock over once it has seen no heartbeat for the lease and the drain: the owner's
// last requests are carried out before.
func TestWaitingForTheLastRequests(t *testing.T) {
	for name, breaks := range map[string]bool{"watched": false, "broken": true} {
		t.Run(name, func(t *testing.T) {
			calmly(t, conditional, func(t *testing.T, w *world) {
				w.setLock(t, lock.Body{ID: "x", Lease: time.Minute.Seconds()})
				w.mu.Lock()
				o := w.objects[site.LockKey]
				o.at = o.at.Add(-5 * time.Minute) // by a clock of the bucket that is slow
				w.objects[site.LockKey] = o
				w.mu.Unlock()
				begun := time.Now()
				w.publishCalmly(t, simulatedSites()[1], w.calm("second", nil), Options{BreakLock: breaks})
				if took := time.Since(begun); took < time.Minute+lock.DrainTime {
					t.Errorf("takeover: got it after %v, want it after the lease and the drain", took)
				}
			})
		})
	}
}

// A run that breaks a lock, and ends while it waits for the owner's lease, leaves a lock for which
// the next run waits as long.
func TestTakingOverALockThatWasTakenOver(t *testing.T) {
	for name, kill := range map[string]bool{"interrupted": false, "killed": true} {
		t.Run(name, func(t *testing.T) {
			calmly(t, conditional, func(t *testing.T, w *world) {
				s := simulatedSites()[1]
				w.setLock(t, lock.Body{ID: "x", Lease: lock.MaxLease.Seconds()})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				second := w.calm("second", nil)
				if kill {
					second.killed = time.Now().Add(30 * time.Second)
				}
				if _, err := Publish(ctx, s, second, Options{BreakLock: true}); err == nil {
					t.Fatal("the second run: got no error")
				}
				begun := time.Now()
				w.publishCalmly(t, s, w.calm("third", nil), Options{})
				if took := time.Since(begun); took < lock.MaxLease {
					t.Errorf("takeover: got it after %v, want it after the lease of the first owner", took)
				}
			})
		})
	}
}

// A lock whose answer was lost belongs to the run.
func TestAnswerToTheLockIsLost(t *testing.T) {
	calmly(t, conditional, func(t *testing.T, w *world) {
		begun := time.Now()
		w.remove(site.RootKey)
		w.publishCalmly(t, simulatedSites()[0], w.calm("first", map[string]fate{"put _lock 1": {unheard: true}}), Options{})
		if took, lock := time.Since(begun), w.lock(t); took > time.Minute || lock.Doubt != nil {
			t.Errorf("got it after %v, with the doubt %+v, want it at once, and none", took, lock.Doubt)
		}
	})
}

// Of two runs that have read a free lock, the second to write does not get it.
func TestLockThatIsTakenMeanwhile(t *testing.T) {
	calmly(t, conditional, func(t *testing.T, w *world) {
		w.setLock(t, lock.Body{ID: "free", Released: true})
		second := &meddled{w.calm("second", nil), site.LockKey, func() { w.setLock(t, lock.Body{ID: "x", Lease: 60}) }}
		begun := time.Now()
		l, _, err := lockOn(t, second, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Abandon()
		if took := time.Since(begun); took < time.Minute || !l.Doubted {
			t.Errorf("got it after %v, doubted %v, want it after the lease of the first one, and a doubt", took, l.Doubted)
		}
	})
}

// An unreadable lock counts as held, perhaps by a later version.
func TestUnreadableLock(t *testing.T) {
	calmly(t, conditional, func(t *testing.T, w *world) {
		w.set(site.LockKey, []byte(`{"id":1}`))
		begun := time.Now()
		w.publishCalmly(t, simulatedSites()[0], w.calm("first", nil), Options{})
		if took := time.Since(begun); took < DefaultLease {
			t.Errorf("takeover: got it after %v, want it after %v", took, DefaultLease)
		}
		w.failed = nil // the world cannot read it either
	})
}

// A run keeps what another run writes into its lock.
func TestDoubtInALockThatIsHeld(t *testing.T) {
	calmly(t, conditional, func(t *testing.T, w *world) {
		l, _, err := lockOn(t, w.calm("owner", nil), Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Abandon()
		doubtBy := func(run string) {
			body := w.lock(t)
			body.Doubt = body.Doubt.Merge(&lock.Doubt{Run: run, Since: time.Now().UTC()})
			w.setLock(t, body)
		}
		doubtBy("x")
		time.Sleep(DefaultLease / 2)
		if body := w.lock(t); body.Doubt == nil || body.Beats < 3 {
			t.Fatalf("after a heartbeat: got %+v, want a doubt", body)
		}
		doubtBy("y")
		if err := l.Release(t.Context(), lock.SameDoubt); err != nil {
			t.Fatal(err)
		}
		body := w.lock(t)
		if !body.Released || body.Doubt == nil || body.Doubt.Run != "" {
			t.Errorf("after the release: got %+v, doubt %+v, want one about both runs", body, body.Doubt)
		}
		time.Sleep(DefaultLease)
		if again := w.lock(t); l.Lease.Held() || again.Beats != body.Beats {
			t.Errorf("after the release: got the lease held %v and %d more heartbeats, want neither", l.Lease.Held(), again.Beats-body.Beats)
		}
	})
}

// A run whose lock was taken over does not change the lock on release.
func TestReleaseOfALockThatWasTakenOver(t *testing.T) {
	calmly(t, conditional, func(t *testing.T, w *world) {
		first, _, err := lockOn(t, w.calm("first", nil), Options{})
		if err != nil {
			t.Fatal(err)
		}
		first.Abandon()
		second, _, err := lockOn(t, w.calm("second", nil), Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer second.Abandon()
		if err := first.Release(t.Context(), lock.SameDoubt); err != nil {
			t.Error(err)
		}
		if lock := w.lock(t); lock.ID != second.ID() || lock.Released {
			t.Errorf("lock: got %+v, want the one of the second run", lock)
		}
	})
}

// A stopped run that lost its lock may have sent requests until it noticed: it adds a doubt to the
// other run's lock.
func TestARunThatLostItsLockLeavesADoubt(t *testing.T) {
	calmly(t, conditional, func(t *testing.T, w *world) {
		sites := simulatedSites()
		w.publishCalmly(t, sites[0], w.calm("first", nil), Options{})
		stopped := w.calm("stopped", nil)
		stopped.stopped = time.Now().Add(500 * time.Millisecond)
		stopped.goesOn = stopped.stopped.Add(10 * time.Minute)
		ended := make(chan error, 1)
		go func() {
			_, err := Publish(t.Context(), sites[2], stopped, Options{Concurrency: 1})
			ended <- err
		}()
		time.Sleep(time.Second)
		w.publishCalmly(t, sites[1], w.calm("other", nil), Options{})
		if err := <-ended; !errors.Is(err, lock.ErrLockLost) {
			t.Errorf("got %v, want %v", err, lock.ErrLockLost)
		}
		if lock := w.lock(t); lock.Doubt == nil || lock.Doubt.Since.Before(stopped.goesOn) {
			t.Errorf("doubt: got %+v, want one that begins after %v", lock.Doubt, stopped.goesOn)
		}
	})
}
