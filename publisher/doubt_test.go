package publisher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/publisher/internal/lock"
	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/shards"
	"github.com/followpress/followpress/storage"
)

// calmly runs a test in a simulated world without random faults.
func calmly(t *testing.T, locks locking, test func(t *testing.T, w *world)) {
	t.Helper()
	simulatedSites() // outside the bubble
	newFollower()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, false)
		w.locks, w.signatures = locks, nil
		delete(w.objects, site.NoteKey)
		test(t, w)
		for _, broken := range w.failed {
			t.Error(broken)
		}
	})
}

// calm returns a process whose requests succeed, except those with a fate, by id.
func (w *world) calm(name string, fates map[string]fate) *process {
	p := w.process(name)
	p.calm, p.fates = true, fates
	return p
}

func (w *world) publishCalmly(t *testing.T, s simulatedSite, p *process, o Options) *Report {
	t.Helper()
	report, err := Publish(t.Context(), s, p, o)
	if err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	return report
}

// A meddled process calls a function before it first puts a key.
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

// remove deletes an object unnoticed by any process.
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
func (w *world) lock(t *testing.T) (body lock.Body) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.decodeLock(&body); err != nil {
		t.Fatal(err)
	}
	return body
}

// set replaces an object unnoticed by any process.
func (w *world) set(key site.Key, body []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sorted = nil
	w.objects[key] = stored{body: body, sum: site.Sum(body), at: time.Now()}
}

func (w *world) setLock(t *testing.T, body lock.Body) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	w.set(site.LockKey, text)
}

// arriveLate replaces an object of a site, like a late request of an earlier run.
func (w *world) arriveLate(s simulatedSite) (is func() bool) {
	key := s.root.Config.LeaderboardKey(site.Followers)
	w.set(key, []byte("of an earlier run"))
	return func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return string(w.objects[key].body) == "of an earlier run"
	}
}

// Only a heartbeat that others can see renews a lease. Reading a changed lock does not, whether the
// answer to a heartbeat was lost or another run has recorded a doubt.
func TestLeaseIsRenewedByWhatOthersSee(t *testing.T) {
	for name, doubted := range map[string]bool{"answer lost": false, "doubt noted": true} {
		t.Run(name, func(t *testing.T) {
			calmly(t, conditional, func(t *testing.T, w *world) {
				fates := map[string]fate{}
				for n := 5; n < 100; n++ { // the lock, its two probes, and one heartbeat arrive
					fates[fmt.Sprint("put _lock ", n)] = fate{lost: true}
				}
				if doubted {
					delete(fates, "put _lock 5") // its condition no longer holds
				} else {
					fates["put _lock 4"] = fate{unheard: true, out: time.Millisecond}
				}
				first, _, err := lockOn(t, w.calm("first", fates), Options{Lease: time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				defer first.Abandon()
				time.Sleep(16 * time.Second)
				if doubted {
					w.mu.Lock()
					var body lock.Body
					err := w.decodeLock(&body)
					w.mu.Unlock()
					if err != nil {
						t.Fatal(err)
					}
					body.Doubt = &lock.Doubt{Run: "x", Since: time.Now().UTC()}
					w.setLock(t, body)
				}
				second, _, err := lockOn(t, w.calm("second", nil), Options{Lease: time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				defer second.Abandon()
				if first.Lease.Held() {
					t.Errorf("lease of the first owner after a takeover: got %v left, want none", first.Lease.Remaining())
				}
			})
		})
	}
}

// A request whose answer was lost causes a doubt, in every kind of world, but not forever.
func TestDoubtEnds(t *testing.T) {
	for _, locks := range []locking{conditional, unsupported, ignored} {
		t.Run(fmt.Sprint(locks), func(t *testing.T) {
			calmly(t, locks, func(t *testing.T, w *world) {
				sites := simulatedSites()
				key := sites[1].root.Config.LeaderboardKey(site.Followers)
				w.set(key, []byte("something else")) // forces a put
				w.set(site.MarkKey, []byte("{}"))
				w.publishCalmly(t, sites[1], w.calm("first", map[string]fate{"put " + string(key) + " 1": {unheard: true, out: time.Millisecond}}), Options{})
				if w.lock(t).Doubt == nil {
					t.Error("doubt: got none, want one")
				}
				for night := range 4 {
					time.Sleep(24 * time.Hour)
					report := w.publishCalmly(t, sites[night%2], w.calm(fmt.Sprint("night", night), nil), Options{AllowRollback: true})
					if lock := w.lock(t); night > 0 && (report.Resumed || lock.Doubt != nil) {
						t.Errorf("night %d: got resumed %v, doubt %+v, want neither", night, report.Resumed, lock.Doubt)
					}
				}
			})
		})
	}
}

// A doubt in the lock makes the next run compare everything, even on servers that ignore
// conditions, where anyone can overwrite the lock.
func TestDoubtIsNotLost(t *testing.T) {
	for _, locks := range []locking{conditional, unsupported, ignored} {
		t.Run(fmt.Sprint(locks), func(t *testing.T) {
			calmly(t, locks, func(t *testing.T, w *world) {
				s := simulatedSites()[0]
				w.publishCalmly(t, s, w.calm("first", nil), Options{})
				w.setLock(t, lock.Body{ID: "x", Released: true, Doubt: &lock.Doubt{Since: time.Now()}})
				isLate := w.arriveLate(s)
				w.publishCalmly(t, s, w.calm("second", nil), Options{})
				if isLate() {
					t.Error("the object that arrived late: got it still, want it replaced")
				}
				isLate = w.arriveLate(s) // within the hour
				time.Sleep(2 * requests.Lateness)
				w.publishCalmly(t, s, w.calm("third", nil), Options{})
				if isLate() || w.lock(t).Doubted() {
					t.Errorf("two hours later: got late %v, doubt %+v, want neither", isLate(), w.lock(t).Doubt)
				}
			})
		})
	}
}

// One wrong clock must not leave an endless doubt.
func TestDoubtOfTheFuture(t *testing.T) {
	calmly(t, conditional, func(t *testing.T, w *world) {
		s := simulatedSites()[0]
		w.publishCalmly(t, s, w.calm("first", nil), Options{})
		w.setLock(t, lock.Body{ID: "x", Released: true, Doubt: &lock.Doubt{Since: time.Now().AddDate(1, 0, 0)}})
		for night := range 3 {
			time.Sleep(24 * time.Hour)
			w.publishCalmly(t, s, w.calm(fmt.Sprint("night", night), nil), Options{})
		}
		if lock := w.lock(t); lock.Doubted() {
			t.Errorf("doubt after three nights: got %+v, want none", lock.Doubt)
		}
	})
}

// A run that breaks a lock with a long lease waits for the lease, and the doubt begins after the
// wait: the other run may have signed a request just before.
func TestBreakingALongLease(t *testing.T) {
	calmly(t, conditional, func(t *testing.T, w *world) {
		sites := simulatedSites()
		first, _, err := lockOn(t, w.calm("first", nil), Options{Lease: lock.MaxLease})
		if err != nil {
			t.Fatal(err)
		}
		first.Abandon() // ends at once and leaves the lock
		begun := time.Now()
		w.publishCalmly(t, sites[1], w.calm("second", nil), Options{BreakLock: true})
		if took := time.Since(begun); took < lock.MaxLease+lock.DrainTime {
			t.Errorf("takeover: got it after %v, want it after the first lease", took)
		}
		isLate := w.arriveLate(sites[1])
		time.Sleep(24 * time.Hour)
		w.publishCalmly(t, sites[1], w.calm("third", nil), Options{})
		if isLate() {
			t.Error("the object that arrived late: got it still, want it replaced")
		}
	})
}

// A run interrupted while it waits for the requests of an ended run restores the lock: it has sent
// nothing.
func TestInterruptedWait(t *testing.T) {
	calmly(t, conditional, func(t *testing.T, w *world) {
		sites := simulatedSites()
		w.publishCalmly(t, sites[0], w.calm("first", nil), Options{})
		w.setLock(t, lock.Body{ID: "x", Released: true, Doubt: &lock.Doubt{Run: "x", Since: time.Now()}})
		ctx, cancel := context.WithTimeout(t.Context(), lock.DrainTime/2)
		defer cancel()
		if _, err := Publish(ctx, sites[1], w.calm("second", nil), Options{}); err == nil {
			t.Fatal("interrupted wait: got no error, want one")
		}
		begun := time.Now()
		w.publishCalmly(t, sites[1], w.calm("third", nil), Options{})
		if took := time.Since(begun); took > 2*lock.DrainTime {
			t.Errorf("time of the next run: got %v, want only the drain", took)
		}
	})
}

// A run without a lock records a doubt if another run has not released its lock.
func TestUnlockedAfterAKilledRun(t *testing.T) {
	calmly(t, unsupported, func(t *testing.T, w *world) {
		s := simulatedSites()[0]
		w.publishCalmly(t, s, w.calm("first", nil), Options{})
		w.setLock(t, lock.Body{ID: "x", Lease: 60})
		w.set(site.MarkKey, []byte("{}"))
		w.publishCalmly(t, s, w.calm("second", nil), Options{})
		isLate := w.arriveLate(s)
		w.publishCalmly(t, s, w.calm("third", nil), Options{})
		if isLate() {
			t.Error("the object that arrived late: got it still, want it replaced")
		}
	})
}

// publishComparing fails unless a run compares the site with a listing and makes the bucket equal
// to it.
func (w *world) publishComparing(t *testing.T, s simulatedSite) {
	t.Helper()
	if report := w.publishCalmly(t, s, w.calm("comparing", nil), Options{}); !report.Resumed {
		t.Error("got no comparison with a listing, want one")
	}
	w.isSite(t, s)
}

// If another run writes the root although this run holds the lock, both have put objects: the root
// stays, and a mark and a doubt record this. Either of them makes the next run compare everything.
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
				report, err := Publish(t.Context(), sites[1], &meddled{w.calm("second", nil), site.RootKey, meddle}, Options{})
				if !errors.Is(err, errInterleaved) || report.Live || report.Outcome != Failed {
					t.Errorf("got %v, %s, live %v, want %v", err, report.Outcome, report.Live, errInterleaved)
				}
				if root, _ := w.object(site.RootKey); root.sum != other.entries[site.RootKey] {
					t.Error("the root of the other run is gone, want it")
				}
				if _, marked := w.object(site.MarkKey); !marked {
					t.Error("got no mark, want one")
				}
				if lock := w.lock(t); !lock.Released || !lock.Doubted() || lock.Doubt.Run != "" || len(lock.Doubt.Sites) == 0 {
					t.Errorf("lock: got %+v, doubt %+v, want it free, with a doubt about several runs that names their sites", lock, lock.Doubt)
				}
				forget(t, w)
				w.publishComparing(t, other)
			})
		})
	}
}

// A root whose answer was lost belongs to this run, not to another.
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

// Any sign that the bucket may be incomplete makes a run of the same site compare with a listing.
func TestTheSameSiteAgain(t *testing.T) {
	s := simulatedSites()[0]
	for name, doubtful := range map[string]func(t *testing.T, w *world){
		"a mark":              func(_ *testing.T, w *world) { w.set(site.MarkKey, []byte("{}")) },
		"a lock that is held": func(t *testing.T, w *world) { w.setLock(t, lock.Body{ID: "x", Lease: 1}) },
		"a doubt": func(t *testing.T, w *world) {
			w.setLock(t, lock.Body{ID: "x", Released: true, Doubt: &lock.Doubt{Run: "y", Since: time.Now()}})
		},
		"a doubt about several runs": func(t *testing.T, w *world) {
			w.setLock(t, lock.Body{ID: "x", Released: true, Doubt: &lock.Doubt{Since: time.Now()}})
		},
		"no root": func(_ *testing.T, w *world) { w.remove(site.RootKey) },
	} {
		t.Run(name, func(t *testing.T) {
			calmly(t, conditional, func(t *testing.T, w *world) {
				w.publishCalmly(t, s, w.calm("first", nil), Options{})
				w.arriveLate(s)
				doubtful(t, w)
				w.publishComparing(t, s)
			})
		})
	}
}

// The doubt and the mark stay until no request can arrive anymore.
func TestDoubtThatIsNotSettled(t *testing.T) {
	calmly(t, conditional, func(t *testing.T, w *world) {
		sites := simulatedSites()
		w.publishCalmly(t, sites[0], w.calm("first", nil), Options{})
		w.setLock(t, lock.Body{ID: "x", Released: true, Doubt: &lock.Doubt{Run: "y", Since: time.Now().Add(-2*tooOld - time.Minute)}})
		w.publishCalmly(t, sites[1], w.calm("second", nil), Options{})
		if _, marked := w.object(site.MarkKey); !marked || !w.lock(t).Doubted() {
			t.Errorf("half an hour later: got mark %v, doubt %+v, want both", marked, w.lock(t).Doubt)
		}
		time.Sleep(requests.Lateness)
		w.publishCalmly(t, sites[1], w.calm("third", nil), Options{})
		if _, marked := w.object(site.MarkKey); marked || w.lock(t).Doubt != nil {
			t.Errorf("an hour later: got mark %v, doubt %+v, want neither", marked, w.lock(t).Doubt)
		}
	})
}

// A doubt names sites whose objects may arrive when the mark is gone; a run deletes them.
func TestDoubtNamesSites(t *testing.T) {
	calmly(t, conditional, func(t *testing.T, w *world) {
		sites := simulatedSites()
		s, other := sites[0], sites[4]
		w.publishCalmly(t, s, w.calm("first", nil), Options{})
		w.setLock(t, lock.Body{ID: "x", Released: true, Doubt: &lock.Doubt{Run: "y", Since: time.Now(),
			Sites: []lock.Run{{Config: other.root.Config, HeaderRules: other.root.HeaderRules}}}})
		w.set(other.root.Config.LeaderboardKey(site.Followers), []byte("late"))
		w.publishCalmly(t, s, w.calm("second", nil), Options{})
		w.isSite(t, s)
	})
}

// A lock that changes between read and write keeps what another run wrote.
func TestChangeLockMeanwhile(t *testing.T) {
	calmly(t, conditional, func(t *testing.T, w *world) {
		w.setLock(t, lock.Body{ID: "x", Released: true})
		p := &meddled{w.calm("first", nil), site.LockKey, func() { w.setLock(t, lock.Body{ID: "y", Lease: 60}) }}
		err := lock.Change(t.Context(), retrying(p, time.Second), func(body *lock.Body) bool {
			body.Doubt = &lock.Doubt{Run: "z", Since: time.Now().UTC()}
			return true
		})
		if body := w.lock(t); err != nil || body.ID != "y" || body.Released || body.Doubt == nil {
			t.Errorf("got %+v, %v, want the lock of y with a doubt", body, err)
		}
	})
}

// A manifest shard that does not match the root is not used for comparison.
func TestManifestOfAnotherSite(t *testing.T) {
	calmly(t, conditional, func(t *testing.T, w *world) {
		sites := simulatedSites()
		w.publishCalmly(t, sites[0], w.calm("first", nil), Options{})
		for _, shard := range shards.Names(&sites[1].root) {
			key := site.ManifestKey(shard)
			w.set(key, []byte(sites[1].memorySite[key]))
		}
		if report := w.publishCalmly(t, sites[1], w.calm("second", nil), Options{}); !report.Resumed {
			t.Error("got no comparison with a listing, want one")
		}
	})
}

// A repair leaves a bucket with a mark to a publish.
func TestRepairOfAMarkedBucket(t *testing.T) {
	calmly(t, conditional, func(t *testing.T, w *world) {
		s := simulatedSites()[1]
		w.publishCalmly(t, s, w.calm("first", nil), Options{})
		w.set(site.MarkKey, []byte("{}"))
		if _, err := Repair(t.Context(), s, w.calm("repairer", nil), Options{}); err == nil {
			t.Error("got no error, want one")
		}
	})
}

// The lock shows whether ETags are MD5s.
func TestLockShowsETags(t *testing.T) {
	for _, encrypted := range []bool{false, true} {
		calmly(t, conditional, func(t *testing.T, w *world) {
			w.encrypted = encrypted
			l, _, err := lockOn(t, w.calm("owner", nil), Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Abandon()
			if l.MD5ETags == encrypted {
				t.Errorf("encrypted %v: got MD5s %v", encrypted, l.MD5ETags)
			}
		})
	}
}

// A mark names the live site and all runs, successive ones with the same rules once, even under
// concurrent writes.
func TestMarkNames(t *testing.T) {
	sites := simulatedSites()
	live, same, older, moved := &sites[0].root, &sites[1].root, &sites[len(sites)/2].root, &sites[4].root
	named := func(roots ...*site.Root) (runs []lock.Run) {
		for _, root := range roots {
			runs = append(runs, lock.Run{Config: root.Config, HeaderRules: root.HeaderRules})
		}
		return runs
	}
	for name, c := range map[string]struct {
		found     []*site.Root // named by the existing mark
		meanwhile []*site.Root // named by a mark that arrives before this run's
		live      *site.Root
		next      *site.Root
		want      []*site.Root
	}{
		"a first publish":        {nil, nil, nil, older, []*site.Root{older}},
		"an update":              {nil, nil, live, older, []*site.Root{live, older}},
		"the same rules":         {[]*site.Root{live, older}, nil, live, older, []*site.Root{live, older}},
		"other headers":          {[]*site.Root{live}, nil, live, older, []*site.Root{live, older}},
		"another configuration":  {[]*site.Root{live}, nil, live, moved, []*site.Root{live, moved}},
		"the same rules again":   {[]*site.Root{older}, nil, live, same, []*site.Root{older, same}},
		"one that arrives late":  {nil, []*site.Root{moved}, live, older, []*site.Root{moved, older}},
		"one that is replaced":   {[]*site.Root{live}, []*site.Root{live, moved}, live, older, []*site.Root{live, moved, older}},
		"the same arrives late":  {nil, []*site.Root{live, older}, live, older, []*site.Root{live, older}},
		"one of unknown content": {[]*site.Root{}, nil, live, older, []*site.Root{older}},
	} {
		t.Run(name, func(t *testing.T) {
			calmly(t, conditional, func(t *testing.T, w *world) {
				meddle := func() {
					if c.meanwhile != nil {
						w.setMark(t, &lock.Mark{Runs: named(c.meanwhile...)})
					}
				}
				b := retrying(&meddled{w.calm("p", nil), site.MarkKey, meddle}, time.Minute)
				if c.found != nil {
					w.setMark(t, &lock.Mark{Runs: named(c.found...)})
				}
				found, err := lock.ReadMark(t.Context(), b)
				if err != nil {
					t.Fatal(err)
				}
				runs, err := lock.WriteMark(t.Context(), b, found, c.live, c.next)
				if err != nil {
					t.Fatal(err)
				}
				stored, err := lock.ReadMark(t.Context(), b)
				if err != nil {
					t.Fatal(err)
				}
				for of, got := range map[string][]lock.Run{"stored": stored.Runs, "returned": runs} {
					if !slices.EqualFunc(got, named(c.want...), lock.Run.SameRules) {
						t.Errorf("%s: got %v, want %v", of, got, named(c.want...))
					}
				}
			})
		})
	}
}

func (w *world) setMark(t *testing.T, m *lock.Mark) {
	t.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	w.set(site.MarkKey, text)
}
