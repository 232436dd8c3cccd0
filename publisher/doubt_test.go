package publisher

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// calmly runs a test in a simulated world without random faults.
func calmly(t *testing.T, locks locking, test func(t *testing.T, w *world)) {
	t.Helper()
	simulatedSites() // outside of the bubble
	newFollower()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(0, false)
		w.locks = locks
		test(t, w)
		for _, broken := range w.failed {
			t.Error(broken)
		}
	})
}

// calm is a process whose requests succeed, except those that have a fate, by id.
func (w *world) calm(name string, fates map[string]fate) *process {
	p := w.process(name)
	p.calm, p.fates = true, fates
	return p
}

func (w *world) publishCalmly(t *testing.T, s simulatedSite, p *process, o Options) *Report {
	t.Helper()
	o.Bulk = BulkOff
	if w.locks == unasked {
		o.NoLock = true
	}
	report, err := Publish(t.Context(), s, p, o)
	if err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	return report
}

// A meddled process has something done before it puts a key for the first time.
type meddled struct {
	*process
	key    site.Key
	meddle func()
}

func (m *meddled) Put(ctx context.Context, o storage.Object, condition storage.Condition) (string, error) {
	if o.Key == m.key && m.meddle != nil {
		m.meddle()
		m.meddle = nil
	}
	return m.process.Put(ctx, o, condition)
}

// object reads an object without a request.
func (w *world) object(key site.Key) (o stored, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o, ok = w.objects[key]
	return o, ok
}

// remove deletes an object without any process noticing.
func (w *world) remove(key site.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sorted = nil
	delete(w.objects, key)
}

// isSite checks that the bucket has a site, and nothing else.
func (w *world) isSite(t *testing.T, s simulatedSite) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if got := w.objects[site.RootKey].sum; got != s.entries[site.RootKey] {
		t.Errorf("root: got %v, want the one of %s", got, s.root.AsOf)
	}
	for _, d := range w.differences() {
		t.Error(d)
	}
}

// lock reads the lock.
func (w *world) lock(t *testing.T) (body lockBody) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.decodeLock(&body); err != nil {
		t.Fatal(err)
	}
	return body
}

// set replaces an object without any process noticing.
func (w *world) set(key site.Key, body []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sorted = nil
	w.objects[key] = stored{body: body, sum: site.Sum(body), at: time.Now()}
}

func (w *world) setLock(t *testing.T, body lockBody) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	w.set(site.LockKey, text)
}

// arriveLate replaces an object of a site, as a late request of an earlier run would.
func (w *world) arriveLate(s simulatedSite) (is func() bool) {
	key := s.root.Config.LeaderboardKey(site.Followers)
	w.set(key, []byte("of an earlier run"))
	return func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return string(w.objects[key].body) == "of an earlier run"
	}
}

// Only a heartbeat that others can see renews a lease. Reading a lock that has changed
// does not, whether the answer to a heartbeat was lost or another run has recorded a
// doubt.
func TestLeaseIsRenewedByWhatOthersSee(t *testing.T) {
	for name, doubted := range map[string]bool{"answer lost": false, "doubt noted": true} {
		t.Run(name, func(t *testing.T) {
			calmly(t, conditional, func(t *testing.T, w *world) {
				fates := map[string]fate{}
				for n := 4; n < 100; n++ { // the lock, its probe, and one heartbeat arrive
					fates[fmt.Sprint("put _lock ", n)] = fate{lost: true}
				}
				if doubted {
					delete(fates, "put _lock 4") // its condition does not hold any more
				} else {
					fates["put _lock 3"] = fate{unheard: true, out: time.Millisecond}
				}
				first, _, err := lockOn(t, w.calm("first", fates), Options{Lease: time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				defer first.abandon()
				time.Sleep(16 * time.Second)
				if doubted {
					w.mu.Lock()
					var body lockBody
					err := w.decodeLock(&body)
					w.mu.Unlock()
					if err != nil {
						t.Fatal(err)
					}
					body.Doubt = &doubt{Run: "x", Since: time.Now().UTC()}
					w.setLock(t, body)
				}
				second, _, err := lockOn(t, w.calm("second", nil), Options{Lease: time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				defer second.abandon()
				if first.lease.held() {
					t.Errorf("lease of the first owner after a takeover: got %v left, want none", first.lease.left())
				}
			})
		})
	}
}

// A request whose answer was lost causes a doubt, in every kind of world, but not for
// ever.
func TestDoubtEnds(t *testing.T) {
	for _, locks := range []locking{conditional, unsupported, ignored, unasked} {
		t.Run(fmt.Sprint(locks), func(t *testing.T) {
			calmly(t, locks, func(t *testing.T, w *world) {
				sites := simulatedSites()
				key := sites[1].root.Config.LeaderboardKey(site.Followers)
				w.set(key, []byte("something else")) // so that it is put
				w.set(site.MarkKey, []byte("{}"))
				w.publishCalmly(t, sites[1], w.calm("first", map[string]fate{"put " + string(key) + " 1": {unheard: true, out: time.Millisecond}}), Options{})
				if w.lock(t).Doubt == nil {
					t.Error("doubt: got none, want one")
				}
				for night := range 4 {
					time.Sleep(24 * time.Hour)
					report := w.publishCalmly(t, sites[night%2], w.calm(fmt.Sprint("night", night), nil), Options{})
					if lock := w.lock(t); night > 0 && (report.Resumed || lock.Doubt != nil) {
						t.Errorf("night %d: got resumed %v, doubt %+v, want neither", night, report.Resumed, lock.Doubt)
					}
				}
			})
		})
	}
}

// A doubt in the lock makes the next run compare everything, even on servers that
// ignore conditions, where anyone can overwrite the lock.
func TestDoubtIsNotLost(t *testing.T) {
	for _, locks := range []locking{conditional, unsupported, ignored, unasked} {
		t.Run(fmt.Sprint(locks), func(t *testing.T) {
			calmly(t, locks, func(t *testing.T, w *world) {
				s := simulatedSites()[0]
				w.publishCalmly(t, s, w.calm("first", nil), Options{})
				w.setLock(t, lockBody{ID: "x", Released: true, Doubt: &doubt{Since: time.Now()}})
				isLate := w.arriveLate(s)
				w.publishCalmly(t, s, w.calm("second", nil), Options{})
				if isLate() {
					t.Error("the object that arrived late: got it still, want it replaced")
				}
				isLate = w.arriveLate(s) // within the hour
				time.Sleep(2 * lateness)
				w.publishCalmly(t, s, w.calm("third", nil), Options{})
				if isLate() || w.lock(t).doubted() {
					t.Errorf("two hours later: got late %v, doubt %+v, want neither", isLate(), w.lock(t).Doubt)
				}
			})
		})
	}
}

// One wrong clock must not leave a doubt that never ends.
func TestDoubtOfTheFuture(t *testing.T) {
	calmly(t, conditional, func(t *testing.T, w *world) {
		s := simulatedSites()[0]
		w.publishCalmly(t, s, w.calm("first", nil), Options{})
		w.setLock(t, lockBody{ID: "x", Released: true, Doubt: &doubt{Since: time.Now().AddDate(1, 0, 0)}})
		for night := range 3 {
			time.Sleep(24 * time.Hour)
			w.publishCalmly(t, s, w.calm(fmt.Sprint("night", night), nil), Options{})
		}
		if lock := w.lock(t); lock.doubted() {
			t.Errorf("doubt after three nights: got %+v, want none", lock.Doubt)
		}
	})
}

// A run that breaks a lock with a long lease waits for that lease, and the doubt begins
// after the wait: the other run may have signed a request just before.
func TestBreakingALongLease(t *testing.T) {
	calmly(t, conditional, func(t *testing.T, w *world) {
		sites := simulatedSites()
		first, _, err := lockOn(t, w.calm("first", nil), Options{Lease: maxLease})
		if err != nil {
			t.Fatal(err)
		}
		first.stop() // it is stopped at once
		<-first.stopped
		begun := time.Now()
		w.publishCalmly(t, sites[1], w.calm("second", nil), Options{BreakLock: true})
		if took := time.Since(begun); took < maxLease+drainTime || first.lease.held() {
			t.Errorf("takeover: got it after %v, first lease held: %v, want it after the first lease", took, first.lease.held())
		}
		isLate := w.arriveLate(sites[1])
		time.Sleep(24 * time.Hour)
		w.publishCalmly(t, sites[1], w.calm("third", nil), Options{})
		if isLate() {
			t.Error("the object that arrived late: got it still, want it replaced")
		}
	})
}

// A run that is interrupted while it waits for the requests of an ended run restores
// the lock: it has sent nothing.
func TestInterruptedWait(t *testing.T) {
	calmly(t, conditional, func(t *testing.T, w *world) {
		sites := simulatedSites()
		w.publishCalmly(t, sites[0], w.calm("first", nil), Options{})
		w.setLock(t, lockBody{ID: "x", Released: true, Doubt: &doubt{Run: "x", Since: time.Now()}})
		ctx, cancel := context.WithTimeout(t.Context(), drainTime/2)
		defer cancel()
		if _, err := Publish(ctx, sites[1], w.calm("second", nil), Options{}); err == nil {
			t.Fatal("interrupted wait: got no error, want one")
		}
		begun := time.Now()
		w.publishCalmly(t, sites[1], w.calm("third", nil), Options{})
		if took := time.Since(begun); took > 2*drainTime {
			t.Errorf("time of the next run: got %v, want only the drain", took)
		}
	})
}

// A run without a lock records a doubt if another run has not released its lock.
func TestNoLockAfterAKilledRun(t *testing.T) {
	calmly(t, unasked, func(t *testing.T, w *world) {
		s := simulatedSites()[0]
		w.publishCalmly(t, s, w.calm("first", nil), Options{})
		w.setLock(t, lockBody{ID: "x", Lease: 60})
		w.set(site.MarkKey, []byte("{}"))
		w.publishCalmly(t, s, w.calm("second", nil), Options{})
		isLate := w.arriveLate(s)
		w.publishCalmly(t, s, w.calm("third", nil), Options{})
		if isLate() {
			t.Error("the object that arrived late: got it still, want it replaced")
		}
	})
}

// If another run has written the root meanwhile, although this one has the lock, both have put objects:
// the root stays, and a mark and a doubt say so. Each of them makes the next run compare everything.
func TestInterleaved(t *testing.T) {
	sites := simulatedSites()
	other := sites[3]
	for name, forget := range map[string]func(t *testing.T, w *world){
		"mark and doubt": func(*testing.T, *world) {},
		"only the mark": func(t *testing.T, w *world) {
			lock := w.lock(t)
			lock.Doubt = nil
			w.setLock(t, lock)
		},
		"only the doubt": func(_ *testing.T, w *world) { w.remove(site.MarkKey) }, // by a late request of the other run
	} {
		t.Run(name, func(t *testing.T) {
			calmly(t, conditional, func(t *testing.T, w *world) {
				w.publishCalmly(t, sites[0], w.calm("first", nil), Options{})
				meddle := func() {
					w.set(site.RootKey, []byte(other.memorySite[site.RootKey]))
					w.remove(site.MarkKey) // the last thing that the other run does
				}
				report, err := Publish(t.Context(), sites[1], &meddled{w.calm("second", nil), site.RootKey, meddle}, Options{Bulk: BulkOff})
				if !errors.Is(err, ErrInterleaved) || report.Live || report.Outcome != Failed {
					t.Errorf("got %v, %s, live %v, want %v", err, report.Outcome, report.Live, ErrInterleaved)
				}
				if root, _ := w.object(site.RootKey); root.sum != other.entries[site.RootKey] {
					t.Error("the root of the other run is gone, want it")
				}
				if _, marked := w.object(site.MarkKey); !marked {
					t.Error("got no mark, want one")
				}
				if lock := w.lock(t); !lock.Released || !lock.doubted() || lock.Doubt.Run != "" || len(lock.Doubt.Sites) == 0 {
					t.Errorf("lock: got %+v, doubt %+v, want it free, with a doubt about several runs that names their sites", lock, lock.Doubt)
				}
				forget(t, w)
				if report := w.publishCalmly(t, other, w.calm("third", nil), Options{}); !report.Resumed {
					t.Error("the next run has not compared with a listing, want that")
				}
				w.isSite(t, other)
			})
		})
	}
}

// A root whose answer was lost is the run's own, not one of another run.
func TestAnswerToTheRootIsLost(t *testing.T) {
	calmly(t, conditional, func(t *testing.T, w *world) {
		sites := simulatedSites()
		w.publishCalmly(t, sites[0], w.calm("first", nil), Options{})
		report := w.publishCalmly(t, sites[1], w.calm("second", map[string]fate{fmt.Sprint("put ", site.RootKey, " 1"): {unheard: true}}), Options{})
		if !report.Live || report.Outcome != Published {
			t.Errorf("got %s, live %v, want it published", report.Outcome, report.Live)
		}
		w.isSite(t, sites[1])
	})
}

// A run takes a lock over once it has seen no heartbeat for the lease and the drain: what the owner has
// sent last is carried out before.
func TestWaitingForTheLastRequests(t *testing.T) {
	calmly(t, conditional, func(t *testing.T, w *world) {
		first, _, err := lockOn(t, w.calm("first", nil), Options{Lease: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		first.stop()
		<-first.stopped
		begun := time.Now()
		w.publishCalmly(t, simulatedSites()[1], w.calm("second", nil), Options{})
		if took := time.Since(begun); took < time.Minute+drainTime {
			t.Errorf("takeover: got it after %v, want it after the lease and the drain", took)
		}
	})
}
