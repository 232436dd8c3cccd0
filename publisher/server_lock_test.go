package publisher_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
)

// A meeting holds back the first request of each of its transports until all have arrived, and
// writes of objects until one publisher has given up.
type meeting struct {
	once    sync.Once
	all     *sync.WaitGroup
	givenUp <-chan struct{}
	next    http.RoundTripper
}

func (m *meeting) RoundTrip(r *http.Request) (*http.Response, error) {
	m.once.Do(func() { m.all.Done(); m.all.Wait() })
	if r.Method == http.MethodPut && !strings.HasSuffix(r.URL.Path, "/"+string(site.LockKey)) {
		select {
		case <-m.givenUp:
		case <-r.Context().Done():
		}
	}
	return m.next.RoundTrip(r)
}

// Of two publishers that begin at the same time one wins; the error of the other names it.
func TestOneOfTwoPublishersWins(t *testing.T) {
	first := demo(t)
	sites := []memory{first.Changed(t, 2, " "), first.WithoutLists(t, 2)}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	onServers(t, func(t *testing.T, server *servers.Server) {
		p := newPlace(t, server, "")
		for range 3 {
			publish(t, first, p.open(t, nil), publisher.Options{})
			var together, group sync.WaitGroup
			together.Add(len(sites))
			errs := make([]error, len(sites))
			givenUp := make(chan struct{})
			end := sync.OnceFunc(func() { close(givenUp) })
			for i, m := range sites {
				r := newRecorder(p.at)
				bucket := p.open(t, &meeting{all: &together, givenUp: givenUp, next: r})
				group.Go(func() {
					defer end()
					o := publisher.Options{Owner: fmt.Sprintf("publisher%d@test", i), Concurrency: 2, Bulk: publisher.BulkOff, Lease: 2 * time.Second}
					_, errs[i] = publisher.Publish(t.Context(), m, bucket, o)
				})
			}
			group.Wait()
			winner := 0
			if errs[0] != nil {
				winner = 1
			}
			err := errs[1-winner]
			if errs[winner] != nil || !errors.Is(err, publisher.ErrLocked) {
				t.Fatalf("two runs: got %v and %v, want success and ErrLocked", errs[winner], err)
			}
			if !strings.Contains(err.Error(), fmt.Sprintf("publisher%d@test", winner)) || !strings.Contains(err.Error(), "host "+host) {
				t.Errorf("error: got %q, want one that names the owner", err)
			}
			p.holds(t, sites[winner])
		}
	})
}

// A publisher suspended for longer than its lease, at any point, notices on resuming, and does not
// damage what another has published since.
func TestAPublisherThatWasStoppedDoesNoHarm(t *testing.T) {
	first := demo(t)
	older, newer := first.Changed(t, 2, " older").WithoutLists(t, 4), first.Changed(t, 3, " newer").WithoutLists(t, 3)
	const seed = 20261122
	onServers(t, func(t *testing.T, server *servers.Server) {
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		path := older.Write(t, filepath.Join(t.TempDir(), "older"))
		var stopped []*stoppedRun
		for i := range 8 {
			bulk := []publisher.Bulk{publisher.BulkOff, publisher.BulkAuto}[i%2]
			delay := time.Duration(random.Int64N(int64(200 * time.Millisecond)))
			stopped = append(stopped, stopWithin(t, server, first, path, bulk, delay))
		}
		var group sync.WaitGroup
		for _, s := range stopped {
			bucket := s.place.open(t, s.successor)
			group.Go(func() {
				if _, err := publisher.Publish(t.Context(), newer, bucket, publisher.Options{}); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		for _, s := range stopped {
			s.Signal(syscall.SIGCONT)
		}
		for _, s := range stopped {
			status, _ := s.Wait()
			lost := status == 1 && strings.Contains(s.Stderr(), publisher.ErrLockLost.Error())
			// Deleting the mark is a run's last write. If it was in flight at the stop, there is no
			// more lock to lose.
			if done := status == 0 && !s.successor.found(site.MarkKey); !lost && !done {
				t.Errorf("%s: status of the stopped publisher: got %d, want a failure by the lost lock: %s", s.when, status, s.Stderr())
			}
			s.place.holds(t, newer)
		}
	})
}

// A stoppedRun is a publisher that was suspended while it put objects.
type stoppedRun struct {
	childPublisher
	when      string
	successor *recorder // records the run that takes over its lock
}

// stopWithin stops a run some time after it has begun to put objects, sooner if that is too late.
func stopWithin(t *testing.T, server *servers.Server, before memory, path string, bulk publisher.Bulk, delay time.Duration) *stoppedRun {
	t.Helper()
	for range 8 {
		p := newPlace(t, server, "") // without a doubt or mark of an earlier run
		publish(t, before, p.open(t, nil), publisher.Options{})
		c := p.start(t, job{Site: path, Bulk: bulk, Workers: 4, Lease: time.Second})
		if !c.WaitFor("upload") {
			t.Fatalf("run: got its end before the first put, want it after: %s", c.Stderr())
		}
		time.Sleep(delay)
		c.Signal(syscall.SIGSTOP)
		if _, publishing := p.get(t, site.MarkKey); publishing {
			return &stoppedRun{c, fmt.Sprintf("bulk %s, after %v", bulk, delay), newRecorder(p.at)}
		}
		c.Signal(syscall.SIGCONT)
		c.Wait()
		delay /= 2
	}
	t.Fatal("run: got its end each time, want it to be stopped before")
	return nil
}
