package profile_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	json "github.com/goccy/go-json"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures/worst"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/testenv/tempdir"
	"github.com/followpress/followpress/internal/testenv/upstreams"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/internal/collect"
	"github.com/followpress/followpress/source/internal/store"
	"github.com/followpress/followpress/source/profile"
)

func TestMain(m *testing.M) {
	tempdir.InMemory()
	m.Run()
}

type silent struct{}

func (silent) Stage(string, int64) {}
func (silent) Add(int64)           {}
func (silent) End()                {}

func address(n int) site.Address { return site.Address{byte(n >> 8), byte(n), 0xab} }

// wanted are n accounts; account i is followed by i lists.
func wanted(n int) map[site.Address]uint32 {
	all := map[site.Address]uint32{}
	for i := range n {
		all[address(i)] = uint32(i)
	}
	return all
}

// worker has profiles of n accounts, named as their number.
func worker(n int) *upstreams.ENS {
	w := &upstreams.ENS{MaxBulk: 50, Profiles: map[string]string{}, Errors: map[string]int{}}
	for i := range n {
		w.Profiles[address(i).String()] = profileOf(i, 1000)
	}
	return w
}

// profileOf returns the profile of account i, with its address in mixed case as workers send it.
func profileOf(i int, fresh int64) string {
	return upstreams.Profile("0x"+strings.ToUpper(address(i).String()[2:]), fmt.Sprintf("%d.eth", i), fresh)
}

func refresh(t testing.TB, state string, w http.Handler, o profile.Options) *profile.Report {
	t.Helper()
	report, err := tryRefresh(t.Context(), state, w, o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func tryRefresh(ctx context.Context, state string, w http.Handler, o profile.Options) (*profile.Report, error) {
	o.State, o.URL, o.Progress, o.Transport = state, "https://worker.example", silent{}, upstreams.Transport(w)
	return profile.Refresh(ctx, o)
}

// names returns the names of the profiles of a state by the number of the account.
func names(t testing.TB, state string) map[int]string {
	t.Helper()
	all := map[int]string{}
	last := -1
	for p, err := range profile.Profiles(state) {
		if err != nil {
			t.Fatal(err)
		}
		n := int(p.Address[0])<<8 | int(p.Address[1])
		if n <= last {
			t.Fatalf("profiles: %d after %d, want the order of addresses", n, last)
		}
		all[n], last = p.ENS.Name, n
	}
	return all
}

// named returns the names that names returns for accounts.
func named(numbers ...int) map[int]string {
	all := map[int]string{}
	for _, n := range numbers {
		all[n] = fmt.Sprintf("%d.eth", n)
	}
	return all
}

func upTo(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

func check(t testing.TB, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %.300s, want %.300s", what, fmt.Sprint(got), fmt.Sprint(want))
	}
}

// TestProfilesPassAsTheyAre: texts, members and numbers of the worker arrive unchanged.
func TestProfilesPassAsTheyAre(t *testing.T) {
	w, state := worker(0), t.TempDir()
	w.Profiles[address(1).String()] = `{"name":"é.eth","avatar":"data:image/png;base64,AA==","header":"ipfs://x","display":"É.eth","contenthash":"y",` +
		`"records":{"b":"<&>","a":"\u0000"},"chains":{"eth":"0x1"},"fresh":1700000000123,"resolver":"0xAb","ccip_urls":["z"],"errors":{"c":"no"}}`
	refresh(t, state, w, profile.Options{Wanted: wanted(3)})
	for p, err := range profile.Profiles(state) {
		if err != nil {
			t.Fatal(err)
		}
		body, _ := p.ENS.Append(nil)
		check(t, "profile", string(body), `{"name":"é.eth","avatar":"data:image/png;base64,AA==","header":"ipfs://x","display":"É.eth",`+
			`"records":{"a":"\u0000","b":"<&>"},"chains":{"eth":"0x1"},"fresh":1700000000123,"resolver":"0xAb","errors":{"c":"no"}}`)
	}
}

// TestRequests: how many requests a worker gets, and what becomes of the answers.
func TestRequests(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare  func(*upstreams.ENS)
		bulk     int
		requests int
		longest  time.Duration
	}{
		"bulk of 50":               {func(*upstreams.ENS) {}, 50, 7, 0},
		"bulk of 10":               {func(w *upstreams.ENS) { w.MaxBulk = 10 }, 10, 1 + 30 + 1, 0},
		"bulk of 1":                {func(w *upstreams.ENS) { w.MaxBulk = 1 }, 1, 1 + 301, 0},
		"no bulk":                  {func(w *upstreams.ENS) { w.MaxBulk = 0 }, 1, 1 + 301, 0},
		"limited":                  {func(w *upstreams.ENS) { w.PerMinute = func(string) int { return 3 } }, 50, 14, 3 * time.Minute},
		"limited, says how long":   {func(w *upstreams.ENS) { w.PerMinute, w.RetryAfter = func(string) int { return 3 }, true }, 50, 9, 3 * time.Minute},
		"limited bulk of 10":       {func(w *upstreams.ENS) { w.MaxBulk, w.PerMinute = 10, upstreams.ENSLimits }, 10, 1 + 9 + 301 + 20, 4 * time.Minute},
		"limited single":           {func(w *upstreams.ENS) { w.MaxBulk, w.PerMinute = 0, upstreams.ENSLimits }, 1, 1 + 301 + 20, 3 * time.Minute},
		"another form of bulk":     {func(w *upstreams.ENS) { w.Bulk = func([]string) string { return `{"profiles":[]}` } }, 1, 1 + 301, 0},
		"a deep entry":             {func(w *upstreams.ENS) { w.Bulk = func(e []string) string { e[2] = deep(); return bulkOf(e) } }, 1, 1 + 301, 0},
		"bulk drops an entry":      {func(w *upstreams.ENS) { w.Bulk = func(e []string) string { return bulkOf(e[1:]) } }, 1, 1 + 301, 0},
		"bulk in another order":    {func(w *upstreams.ENS) { w.Bulk = func(e []string) string { slices.Reverse(e); return bulkOf(e) } }, 50, 7 + 301, 0},
		"one account makes it 500": {func(w *upstreams.ENS) { w.Fault = poison(500) }, 50, 7 + 2 + 49 + 3, 20 * time.Second},
		"one account makes it 400": {func(w *upstreams.ENS) { w.Errors[address(300).String()] = 400 }, 50, 7 + 50, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, state := worker(300), t.TempDir()
				tc.prepare(w)
				begun := time.Now()
				r := refresh(t, state, w, profile.Options{Wanted: wanted(301)})
				check(t, "names", names(t, state), named(upTo(300)...))
				check(t, "bulk", r.Bulk, tc.bulk)
				check(t, "requests in the report", r.Requests, len(w.Asked()))
				check(t, "found, left", []int{r.Found, r.Left, r.Known}, []int{300, 0, 300})
				if r.Requests > tc.requests {
					t.Errorf("requests: got %d, want at most %d", r.Requests, tc.requests)
				}
				if took := time.Since(begun); took > tc.longest {
					t.Errorf("took %v, want at most %v", took, tc.longest)
				}
			})
		})
	}
}

func bulkOf(entries []string) string {
	return fmt.Sprintf(`{"response_length":%d,"response":[%s]}`, len(entries), strings.Join(entries, ","))
}

// deep returns a profile that no decoder follows to its end.
func deep() string {
	return `{"type":"success","name":"x","records":` + strings.Repeat(`{"a":`, 20000) + `1` + strings.Repeat(`}`, 20001)
}

// poison answers every request about account 300 with a status.
func poison(status int) func(int, http.ResponseWriter, *http.Request) bool {
	return func(_ int, w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.String(), address(300).String()) {
			return false
		}
		w.WriteHeader(status)
		return true
	}
}

// TestOrder: the most followed new accounts come first, then the oldest.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, state := worker(200), t.TempDir()
		o := profile.Options{Wanted: wanted(110), Budget: source.Budget{Requests: 1}}
		for _, want := range [][]int{{60, 110}, {10, 60}, {0, 10}} { // the accounts from … to that are new
			time.Sleep(time.Hour)
			before := names(t, state)
			r := refresh(t, state, w, o)
			for i := want[0]; i < want[1]; i++ {
				before[i] = fmt.Sprintf("%d.eth", i)
			}
			check(t, "names", names(t, state), before)
			check(t, "never asked", r.NeverYet, want[0])
			check(t, "stopped", r.Stopped != "", want[0] > 0 || r.Left > 0)
		}
		// The third run asked about ten new ones and the forty oldest, which are of the first run.
		asked := w.Asked()
		check(t, "accounts of the third run", strings.Count(asked[2], "addresses"), 50)
		for _, i := range []int{0, 9, 109, 70} {
			check(t, fmt.Sprint("asked about ", i), strings.Contains(asked[2], address(i).String()), true)
		}
		time.Sleep(time.Hour)
		o.Wanted[address(150)] = 0 // new, though followed by nobody
		refresh(t, state, w, o)
		last := w.Asked()[3]
		for i, want := range map[int]bool{150: true, 60: true, 69: true, 59: true, 21: true, 20: false, 0: false, 109: false} {
			check(t, fmt.Sprint("asked about ", i), strings.Contains(last, address(i).String()), want)
		}
	})
}

// TestSettled: an account answered about minutes ago is not asked about again.
func TestSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, state := worker(10), t.TempDir()
		refresh(t, state, w, profile.Options{Wanted: wanted(10)})
		time.Sleep(9 * time.Minute)
		check(t, "requests at once", refresh(t, state, w, profile.Options{Wanted: wanted(10)}).Requests, 0)
		time.Sleep(time.Minute)
		check(t, "requests later", refresh(t, state, w, profile.Options{Wanted: wanted(10)}).Requests, 1)
	})
}

// TestGone: a profile is dropped after the worker has denied it twice, a day apart.
func TestGone(t *testing.T) {
	for name, tc := range map[string]struct {
		answers []int // status per run; 200 is a profile
		every   time.Duration
		kept    bool
	}{
		"once":                    {[]int{200, 404}, 25 * time.Hour, true},
		"twice, a day apart":      {[]int{200, 404, 404}, 24 * time.Hour, false},
		"twice, too soon":         {[]int{200, 404, 404}, 23 * time.Hour, true},
		"three times in a day":    {[]int{200, 404, 404, 404}, 12 * time.Hour, false},
		"with a name in between":  {[]int{200, 404, 200, 404}, 25 * time.Hour, true},
		"with a fault in between": {[]int{200, 404, 502, 404}, 25 * time.Hour, false},
		"a fault for ever":        {[]int{200, 502, 502, 500, 502}, 25 * time.Hour, true},
		"another one's name":      {[]int{200, 422, 422}, 25 * time.Hour, false},
		"and back again":          {[]int{200, 404, 404, 200}, 25 * time.Hour, true},
	} {
		for _, bulk := range []int{0, 50} {
			t.Run(fmt.Sprint(name, ", bulk ", bulk), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, state := worker(0), t.TempDir()
					w.MaxBulk = bulk
					dropped := 0
					for _, status := range tc.answers {
						w.Errors[address(1).String()] = status
						w.Set(address(1).String(), "")
						if status == http.StatusOK {
							w.Set(address(1).String(), profileOf(1, time.Now().UnixMilli()))
						}
						dropped += refresh(t, state, w, profile.Options{Wanted: wanted(2)}).Dropped
						time.Sleep(tc.every)
					}
					want := map[int]string{}
					if tc.kept {
						want = named(1)
					} else {
						check(t, "dropped", dropped, 1)
					}
					check(t, "names", names(t, state), want)
				})
			})
		}
	}
}

// TestWorkerKnowsNothing: a worker that answers 404 for nearly all has a fault.
func TestWorkerKnowsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, state := worker(100), t.TempDir()
		refresh(t, state, w, profile.Options{Wanted: wanted(100)})
		for i := range 60 {
			w.Set(address(i).String(), "")
		}
		var r *profile.Report
		for range 3 {
			time.Sleep(25 * time.Hour)
			r = refresh(t, state, w, profile.Options{Wanted: wanted(100)})
		}
		check(t, "doubted, dropped", []int{r.Doubted, r.Dropped}, []int{60, 0})
		check(t, "names", names(t, state), named(upTo(100)...))
		for i := range 20 {
			w.Set(address(i).String(), profileOf(i, 2000))
		}
		time.Sleep(25 * time.Hour)
		r = refresh(t, state, w, profile.Options{Wanted: wanted(100)})
		check(t, "doubted, dropped with fewer", []int{r.Doubted, r.Dropped}, []int{0, 40})
	})
}

// TestOutage: any answer other than profiles stops the run soon, and nothing is lost.
func TestOutage(t *testing.T) {
	for name, tc := range map[string]struct {
		fault    func(w http.ResponseWriter)
		requests int
	}{
		"500":         {func(w http.ResponseWriter) { w.WriteHeader(500) }, 10},
		"cut":         {upstreams.Cut, 10},
		"429":         {func(w http.ResponseWriter) { w.WriteHeader(429) }, 20},
		"403":         {func(w http.ResponseWriter) { w.WriteHeader(403) }, 1},
		"a redirect":  {func(w http.ResponseWriter) { w.Header().Set("Location", "/"); w.WriteHeader(301) }, 1},
		"a 404 page":  {func(w http.ResponseWriter) { w.WriteHeader(404); _, _ = io.WriteString(w, "<html>") }, 30},
		"a 200 page":  {func(w http.ResponseWriter) { _, _ = io.WriteString(w, "<html>") }, 30},
		"another 403": {func(w http.ResponseWriter) { w.WriteHeader(403); _, _ = io.WriteString(w, `{"error":"no"}`) }, 1},
		"another 404": {func(w http.ResponseWriter) { w.WriteHeader(404); _, _ = io.WriteString(w, `{"message":"no route"}`) }, 30},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, state := worker(100), t.TempDir()
				refresh(t, state, w, profile.Options{Wanted: wanted(100)})
				before := len(w.Asked())
				w.Fault = func(_ int, rw http.ResponseWriter, _ *http.Request) bool {
					tc.fault(rw)
					return true
				}
				for range 3 {
					time.Sleep(25 * time.Hour)
					r := refresh(t, state, w, profile.Options{Wanted: wanted(200)})
					if r.Stopped == "" {
						t.Errorf("stopped: got nothing, want a reason: %v", r)
					}
					check(t, "found, absent", r.Found+r.Absent, 0)
				}
				if got := len(w.Asked()) - before; got > 3*tc.requests {
					t.Errorf("requests of three runs: got %d, want at most %d", got, 3*tc.requests)
				}
				check(t, "names", names(t, state), named(upTo(100)...))
			})
		})
	}
}

// TestUnresolvable: accounts whose names cannot be resolved do not look like an outage.
func TestUnresolvable(t *testing.T) {
	for _, bulk := range []int{0, 50} {
		synctest.Test(t, func(t *testing.T) {
			w, state := worker(100), t.TempDir()
			w.MaxBulk = bulk
			for i := range 15 {
				w.Set(address(40+i).String(), "")
				w.Errors[address(40+i).String()] = 502
			}
			r := refresh(t, state, w, profile.Options{Wanted: wanted(100)})
			check(t, "failed", r.Failed, map[string]int{"status 502": 15})
			check(t, "found, stopped", fmt.Sprint(r.Found, r.Stopped), "85")
			if r.Requests > 101 {
				t.Errorf("requests: got %d, want one for each account at most", r.Requests)
			}
		})
	}
}

// TestHostileEntries: an entry that is not a profile of the account fails, and the others do not.
func TestHostileEntries(t *testing.T) {
	for name, entry := range map[string]string{
		"null":                      `null`,
		"a number":                  `7`,
		"a text":                    `"x"`,
		"an array":                  `[{"name":"x"}]`,
		"nothing in it":             `{}`,
		"nothing but a type":        `{"type":"success"}`,
		"name is no text":           `{"type":"success","name":7}`,
		"records are an array":      `{"type":"success","name":"x","records":["a"]}`,
		"address is malformed":      `{"type":"success","name":"x","address":"0x12"}`,
		"half of a surrogate":       `{"type":"success","name":"\ud800"}`,
		"fresh is a text":           `{"type":"success","name":"x","fresh":"now"}`,
		"fresh is out of range":     `{"type":"success","name":"x","fresh":1e300}`,
		"an error without a status": `{"type":"error","error":"x"}`,
		"an error of another kind":  `{"type":"error","status":200,"error":"x"}`,
		"an error with a profile":   `{"type":"error","status":500,"name":"x"}`,
		"a status that is a text":   `{"type":"error","status":"404"}`,
		"too long":                  `{"type":"success","name":"` + strings.Repeat("x", 1<<20) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, state := worker(5), t.TempDir()
				refresh(t, state, w, profile.Options{Wanted: wanted(5)})
				time.Sleep(time.Hour)
				w.Bulk = func(entries []string) string {
					entries[2] = entry
					return bulkOf(entries)
				}
				r := refresh(t, state, w, profile.Options{Wanted: wanted(5)})
				failed := 0
				for _, n := range r.Failed {
					failed += n
				}
				check(t, "found, failed", []int{r.Found, failed}, []int{4, 1})
				check(t, "names", names(t, state), named(upTo(5)...))
				check(t, "example", len(r.Examples) == 1 && len(r.Examples[0]) < 300, true)
			})
		})
	}
}

// TestFreshness: a profile never gets older, and none is fresher than now.
func TestFreshness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, state := worker(0), t.TempDir()
		now := time.Now().UnixMilli()
		for _, step := range []struct{ sent, want int64 }{{5000, 5000}, {4000, 5000}, {6000, 6000}, {now * 100, -1}, {now, -1}} {
			w.Set(address(0).String(), profileOf(0, step.sent))
			if step.want < 0 {
				step.want = time.Now().UnixMilli()
			}
			refresh(t, state, w, profile.Options{Wanted: wanted(1)})
			for p, err := range profile.Profiles(state) {
				if err != nil || p.ENS.Fresh > step.want || step.sent < now && p.ENS.Fresh != step.want {
					t.Errorf("sent %d: got %d, %v, want %d", step.sent, p.ENS.Fresh, err, step.want)
				}
			}
			time.Sleep(time.Hour)
		}
	})
}

// TestClockGoesBack: what a run has noted whose clock was years ahead does not hold up later ones.
func TestClockGoesBack(t *testing.T) {
	w, state := worker(4), t.TempDir()
	wanted := wanted(4)
	synctest.Test(t, func(t *testing.T) { // each bubble begins in the year 2000
		time.Sleep(20 * 365 * 24 * time.Hour)
		imported(t, state, account(3, "three", time.Now().UnixMilli()))
		w.Set(address(0).String(), profileOf(0, time.Now().UnixMilli()))
		refresh(t, state, w, profile.Options{Wanted: wanted})
		w.Set(address(2).String(), "")
		time.Sleep(time.Hour)
		refresh(t, state, w, profile.Options{Wanted: wanted})
	})
	synctest.Test(t, func(t *testing.T) {
		w.Set(address(0).String(), upstreams.Profile(address(0).String(), "new.eth", time.Now().UnixMilli()))
		w.Set(address(3).String(), profileOf(3, time.Now().UnixMilli()))
		r := refresh(t, state, w, profile.Options{Wanted: wanted})
		check(t, "asked about, absent", []int{r.Asked, r.Absent}, []int{4, 1})
		check(t, "names", names(t, state), map[int]string{0: "new.eth", 1: "1.eth", 2: "2.eth", 3: "3.eth"})
		time.Sleep(24 * time.Hour)
		check(t, "dropped a day later", refresh(t, state, w, profile.Options{Wanted: wanted}).Dropped, 1)
		imported(t, state, account(1, "future", time.Now().UnixMilli()*1000)) // in microseconds
		check(t, "imported", names(t, state)[1], "future")
		time.Sleep(time.Hour)
		w.Set(address(1).String(), profileOf(1, time.Now().UnixMilli()))
		refresh(t, state, w, profile.Options{Wanted: wanted})
		check(t, "asked about since", names(t, state)[1], "1.eth")
	})
}

// TestSmallBudget: each run gets the answers to all requests of its budget. The first request finds
// out that the worker lacks bulk requests.
func TestSmallBudget(t *testing.T) {
	for requests := 1; requests <= 6; requests++ {
		synctest.Test(t, func(t *testing.T) {
			w, state := worker(30), t.TempDir()
			w.MaxBulk = 0
			slow := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				w.ServeHTTP(rw, r)
				select {
				case <-time.After(time.Second):
				case <-r.Context().Done():
					panic(http.ErrAbortHandler)
				}
			})
			found := 0
			for range 3 {
				r := refresh(t, state, slow, profile.Options{Wanted: wanted(30), Budget: source.Budget{Requests: requests}})
				found += r.Found
				time.Sleep(time.Hour)
			}
			check(t, fmt.Sprint("found by 3 runs of ", requests), found, 3*(requests-1))
		})
	}
}

// TestForgotten: unwanted profiles are dropped in time, wanted ones never.
func TestForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, state := worker(10), t.TempDir()
		w.Set(address(9).String(), "")
		imported(t, state, account(20, "imported", 1))
		refresh(t, state, w, profile.Options{Wanted: wanted(10)})
		time.Sleep(60 * 24 * time.Hour)
		imported(t, state, account(5, "newer", time.Now().UnixMilli()))
		r := refresh(t, state, w, profile.Options{Wanted: wanted(4)})
		check(t, "forgotten after 60 days", r.Forgotten, 0)
		time.Sleep(31 * 24 * time.Hour)
		w.Fault = func(_ int, rw http.ResponseWriter, _ *http.Request) bool {
			rw.WriteHeader(http.StatusForbidden)
			return true
		}
		r = refresh(t, state, w, profile.Options{Wanted: wanted(4)})
		check(t, "forgotten after 91 days", []int{r.Forgotten, r.Known}, []int{6, 5})
		time.Sleep(365 * 24 * time.Hour)
		check(t, "forgotten without an answer", refresh(t, state, w, profile.Options{Wanted: wanted(4)}).Forgotten, 0)
		want := named(0, 1, 2, 3)
		want[20] = "imported"
		check(t, "names", names(t, state), want)
	})
}

// TestCancelled: answers from before the end of the context are kept.
func TestCancelled(t *testing.T) {
	for _, bulk := range []int{0, 50} {
		synctest.Test(t, func(t *testing.T) {
			w, state := worker(200), t.TempDir()
			w.MaxBulk = bulk
			ctx, cancel := context.WithCancel(t.Context())
			w.Fault = func(n int, _ http.ResponseWriter, _ *http.Request) bool {
				if n == 4 {
					cancel()
				}
				return false
			}
			if _, err := tryRefresh(ctx, state, w, profile.Options{Wanted: wanted(200)}); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want the end of the context", err)
			}
			first := len(names(t, state))
			if first < 1 || first > 150 {
				t.Errorf("profiles: got %d, want some", first)
			}
			w.Fault = nil
			r := refresh(t, state, w, profile.Options{Wanted: wanted(200)})
			check(t, "found by the next run", r.Found, 200-first)
			check(t, "names", names(t, state), named(upTo(200)...))
		})
	}
}

// TestNeverWrong: with any faults of the worker, an account has its own profile or none. Once the
// worker recovers, all accounts have theirs.
func TestNeverWrong(t *testing.T) {
	for seed := range uint64(servers.Rounds(4, 100)) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 4))
			w, state := worker(60), t.TempDir()
			w.MaxBulk = random.IntN(20)
			if random.IntN(2) == 0 {
				w.PerMinute = upstreams.ENSLimits
			}
			w.Fault = func(_ int, rw http.ResponseWriter, _ *http.Request) bool {
				switch random.IntN(8) {
				case 0:
					rw.WriteHeader([]int{400, 404, 429, 500, 502, 503}[random.IntN(6)])
				case 1:
					upstreams.Cut(rw)
				default:
					return false
				}
				return true
			}
			w.Bulk = func(entries []string) string {
				switch random.IntN(6) {
				case 0:
					random.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
				case 1:
					entries = entries[:random.IntN(len(entries)+1)]
				case 2:
					entries[random.IntN(len(entries))] = `{"type":"error","status":404,"error":"Not Found"}`
				}
				return bulkOf(entries)
			}
			for run := range 8 {
				if run == 7 {
					w.Fault, w.Bulk = nil, nil
				}
				refresh(t, state, w, profile.Options{Wanted: wanted(70), Budget: source.Budget{Time: time.Hour}})
				for n, name := range names(t, state) {
					if name != fmt.Sprintf("%d.eth", n) {
						t.Fatalf("seed %d: account %d has the profile of %s", seed, n, name)
					}
				}
				time.Sleep(13 * time.Hour)
			}
			check(t, fmt.Sprintf("seed %d: names", seed), names(t, state), named(upTo(60)...))
		})
	}
}

func account(n int, name string, fresh int64) snapshot.Account {
	return snapshot.Account{Address: address(n), ENS: &site.Profile{Name: name, Fresh: fresh}}
}

func imported(t testing.TB, state string, accounts ...snapshot.Account) int {
	t.Helper()
	n, err := profile.Import(state, func(yield func(snapshot.Account, error) bool) {
		for _, a := range accounts {
			if !yield(a, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestImport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, state := worker(4), t.TempDir() // fresh since 1000
		refresh(t, state, w, profile.Options{Wanted: wanted(3)})
		n := imported(t, state, account(7, "seven", 0), account(1, "older", 999), account(2, "newer", 1001),
			snapshot.Account{Address: address(8), Primary: "8"}, account(3, "three", 5))
		check(t, "imported", n, 3)
		want := map[int]string{0: "0.eth", 1: "1.eth", 2: "newer", 3: "three", 7: "seven"}
		check(t, "names", names(t, state), want)
		check(t, "imported again", imported(t, state, account(7, "other", 0), account(2, "newer", 1001)), 0)

		// Known profiles come after unknown accounts, and before accounts asked about since.
		time.Sleep(time.Hour)
		r := refresh(t, state, w, profile.Options{Wanted: wanted(60), Budget: source.Budget{Requests: 2}})
		check(t, "never asked", r.NeverYet, 0)
		want[2], want[3] = "newer", "3.eth"
		check(t, "names after a refresh", names(t, state), want)

		// What the worker has dropped does not come back from an earlier snapshot.
		w.Set(address(1).String(), "")
		for range 2 {
			time.Sleep(25 * time.Hour)
			refresh(t, state, w, profile.Options{Wanted: wanted(3)})
		}
		check(t, "imported after it was dropped", imported(t, state, account(1, "1.eth", 1000)), 0)
		if got := names(t, state)[1]; got != "" {
			t.Errorf("a dropped profile: got %q, want none", got)
		}
	})
}

func TestImportErrors(t *testing.T) {
	broken := errors.New("no snapshot")
	_, err := profile.Import(t.TempDir(), func(yield func(snapshot.Account, error) bool) {
		_ = yield(account(1, "x", 0), nil) && yield(snapshot.Account{}, broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

func TestErrors(t *testing.T) {
	state := t.TempDir()
	for name, url := range map[string]string{"no URL": "", "no host": "https:///x", "a query": "https://example.com?key=secret"} {
		_, err := profile.Refresh(t.Context(), profile.Options{State: state, URL: url, Progress: silent{}})
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want an error without the URL", name, err)
		}
	}
	busy, err := store.Open[struct{}](filepath.Join(state, "profiles"))
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	if _, err := tryRefresh(t.Context(), state, worker(0), profile.Options{}); !errors.Is(err, profile.ErrBusy) {
		t.Errorf("two runs: got %v, want ErrBusy", err)
	}
}

func TestNoState(t *testing.T) {
	check(t, "names", names(t, filepath.Join(t.TempDir(), "none")), map[int]string{})
}

func TestDamagedState(t *testing.T) {
	put := func(key, body string) func(state string) error {
		return func(state string) error {
			kept, err := store.Open[struct{}](filepath.Join(state, "profiles"))
			if err != nil {
				return err
			}
			return errors.Join(kept.Put(key, struct{}{}, json.RawMessage(body)), kept.Close())
		}
	}
	for name, damage := range map[string]func(state string) error{
		"no database": func(state string) error {
			return os.CopyFS(filepath.Join(state, "profiles"), fstest.MapFS{"store.db": {Data: []byte("{\n")}})
		},
		"no address": put("x", "{}"),
		"no profile": put(address(0).String(), "7"),
	} {
		state := t.TempDir()
		if err := damage(state); err != nil {
			t.Fatal(err)
		}
		var last error
		for _, err := range profile.Profiles(state) {
			last = err
		}
		if last == nil {
			t.Errorf("%s: got no error, want one", name)
		}
	}
}

func TestReport(t *testing.T) {
	r := &profile.Report{Known: 5, Asked: 7, Found: 4, Absent: 3, Dropped: 1, Doubted: 2, Failed: map[string]int{"status 502": 2, "no answer": 1},
		Examples: []string{"0x1: status 502"}, Left: 9, NeverYet: 8, Bulk: 50, Cost: collect.Cost{Requests: 6, Bytes: 1_500_000, Waited: 90, Stopped: "the budget is spent"}}
	check(t, "report", r.String(), `profiles           5 known; 7 asked about, 4 found, 3 absent, 1 dropped, 1 failed (no answer), 2 failed (status 502)
                   6 requests, up to 50 accounts each, 1.5 MB, waited 1m30s
failed    0x1: status 502
kept      2 profiles that the worker lacks, because it lacked most profiles in this run
stopped   the budget is spent
left      9 accounts for the next run, 8 of them for the first time
`)
}

// TestHostileRecords: whatever JSON a worker sends, the state can be read again, and so can a snapshot of it.
func TestHostileRecords(t *testing.T) {
	hostile := []string{"1e999", "-0", `"\u0000"`, `"\u2028\n"`, `{"a":1,"a":2}`, "1e99999999999999999", "00", "+1", ".5", "nul", "NaN", "1 2",
		"\"\x00\"", "\"\n\"", "\"\x01\"", `"\x"`, `"\ud800"`, "[1,]", `{"a":1,}`, "\xff", strings.Repeat("9", 50_000)}
	for _, levels := range []int{1, 98, 99, 100, 9_994, 9_995, 9_996, 9_997, 9_998, 9_999, 100_000} {
		for _, brackets := range []string{`{"a":,}`, `[,]`} {
			opening, closing, _ := strings.Cut(brackets, ",")
			hostile = append(hostile, strings.Repeat(opening, levels)+"1"+strings.Repeat(closing, levels))
		}
	}
	w, state := worker(0), t.TempDir()
	w.MaxBulk = 0
	found := 0
	for n, value := range hostile {
		w.Profiles[address(n).String()] = fmt.Sprintf(`{"name":"%d.eth","records":{"a":%s}}`, n, value)
		found += refresh(t, state, w, profile.Options{Wanted: map[site.Address]uint32{address(n): 1}}).Found
	}
	out := filepath.Join(t.TempDir(), "snapshot")
	writer, err := snapshot.Create(out, snapshot.WriteOptions{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if err := source.WriteAccounts(writer, &source.Graph{}, profile.Profiles(state)); err != nil {
		t.Fatalf("write: %.300s", err)
	}
	if err := writer.Commit(snapshot.Meta{AsOf: time.Now()}); err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, err := range snapshot.Accounts(afero.NewBasePathFs(afero.NewOsFs(), out)) {
		if err != nil {
			t.Fatalf("read: %.300s", err)
		}
		rows++
	}
	check(t, "rows", rows, found)
	if found < 10 {
		t.Errorf("found: got %d profiles, want 10 at least", found)
	}
}

// TestWorstAnswers: whatever a worker answers, a run asks for at most some times the bytes of the
// largest answer that it takes, 1 MiB for each account.
func TestWorstAnswers(t *testing.T) {
	const accounts = 2
	wanted := map[site.Address]uint32{}
	for n := range accounts {
		wanted[address(n)] = 1
	}
	for _, name := range worst.Names() {
		for where, begin := range map[string]string{
			"alone": ``, "response": `{"response_length":2,"response":`, "unknown": `{"unknown":`,
			"profile": `{"response_length":2,"response":[{"name":"a.eth","records":`,
		} {
			worst.Check(t, where+": "+name, 20*accounts<<20, func() {
				report, err := profile.Refresh(t.Context(), profile.Options{
					State: t.TempDir(), URL: "https://worker.example", Wanted: wanted, Budget: source.Budget{Requests: 2},
					Progress: silent{}, Transport: worst.JSON[name].Around(begin).Answer(worst.Size),
				})
				if err != nil || report.Found > 0 {
					t.Errorf("%s, %s: got %+v and %v", where, name, report, err)
				}
			})
		}
	}
}
