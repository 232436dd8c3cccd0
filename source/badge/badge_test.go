package badge_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures/worst"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/testenv/tempdir"
	"github.com/followpress/followpress/internal/testenv/upstreams"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/snapshot/memory"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/badge"
	"github.com/followpress/followpress/source/internal/store"
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

const key = "a secret key"

// api has the events 10 and 20. The first n accounts have a badge of 10, even accounts one of 20.
func api(n int, bulk bool) *upstreams.POAP {
	p := &upstreams.POAP{Key: key, Bulk: bulk, Events: map[string]string{"10": upstreams.Event("10"), "20": upstreams.Event("20")}, Tokens: map[string][]upstreams.Token{}}
	for i := range n {
		owner := "0x" + strings.ToUpper(address(i).String()[2:])
		p.Give("10", upstreams.Token{ID: fmt.Sprint(1000 + i), Owner: owner})
		if i%2 == 0 {
			p.Give("20", upstreams.Token{ID: fmt.Sprint(2000 + i), Owner: owner})
		}
	}
	return p
}

// holders returns the badges that api gives, as badges returns them.
func holders(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("10 %d %d", 1000+i, i))
	}
	for i := 0; i < n; i += 2 {
		all = append(all, fmt.Sprintf("20 %d %d", 2000+i, i))
	}
	return all
}

var events = []string{"10", "20"}

// badges returns the badges of a state, each as event, token and number of the account.
func badges(t testing.TB, state string) []string {
	t.Helper()
	var all []string
	for b, err := range badge.Badges(state, events) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %s %d", b.EventID, b.TokenID, int(b.Owner[0])<<8|int(b.Owner[1])))
	}
	return all
}

func refresh(t testing.TB, state string, h http.Handler, o badge.Options) *badge.Report {
	t.Helper()
	report, err := tryRefresh(t.Context(), state, h, o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func tryRefresh(ctx context.Context, state string, h http.Handler, o badge.Options) (*badge.Report, error) {
	if o.Events == nil {
		o.Events = events
	}
	if o.Key == "" {
		o.Key = key
	}
	o.State, o.URL, o.Progress, o.Transport = state, "https://badges.example", silent{}, upstreams.Transport(h)
	return badge.Refresh(ctx, o)
}

func check(t testing.TB, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %.300s, want %.300s", what, fmt.Sprint(got), fmt.Sprint(want))
	}
}

// TestBulk: some dozens of requests, however many accounts there are.
func TestBulk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, state := api(700, true), t.TempDir()
		r := refresh(t, state, p, badge.Options{Wanted: wanted(5)})
		check(t, "badges", badges(t, state), holders(700))
		check(t, "requests", r.Requests, 1+3+1+2)
		check(t, "counts", []int{r.Events[0].Badges, r.Events[1].Badges}, []int{700, 350})
		check(t, "paths", p.Asked()[1], "/event/10/poaps?limit=300&offset=0")

		described, err := badge.Events(state, []string{"20", "30", "10"})
		if err != nil || len(described) != 2 || described[0].ID != 20 || described[1].ID != 10 {
			t.Fatalf("events: got %v, %v, want 20 and 10", described, err)
		}
		check(t, "event", described[1], site.Event{ID: 10, FancyID: "event-10-2024", Name: "Event 10", EventURL: "https://example.com/10",
			ImageURL: "https://example.com/10.png", Description: "d", Year: 2024, StartDate: "12-Nov-2024", EndDate: "15-Nov-2024", ExpiryDate: "15-Dec-2024"})

		// An account that gives its badge away loses it; of two badges the first one counts.
		p.Take("10", address(3).String())
		p.Give("10", upstreams.Token{ID: "7", Owner: address(4).String()})
		p.Give("10", upstreams.Token{ID: "5000", Owner: address(5).String()})
		refresh(t, state, p, badge.Options{})
		want := holders(700)
		want[4] = "10 7 4"
		check(t, "badges later", badges(t, state), slices.Delete(want, 3, 4))
	})
}

// TestByAccount: an API that lists no owners is asked about accounts within the budget. The most
// followed accounts come first, then those asked about the longest time ago.
func TestByAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, state := api(20, false), t.TempDir()
		o := badge.Options{Wanted: wanted(30), Budget: source.Budget{Requests: 24}}
		r := refresh(t, state, p, o)
		check(t, "asked, left", []int{r.Events[0].Asked, r.Events[1].Asked, r.Events[0].Left, r.Events[1].Left}, []int{10, 10, 20, 20})
		check(t, "stopped", r.Stopped, "the budget is spent")
		check(t, "badges", badges(t, state), []string(nil)) // the most followed have none
		for range 2 {
			refresh(t, state, p, o)
		}
		check(t, "badges after three runs", badges(t, state), holders(20))

		p.Take("10", address(19).String())
		before := len(p.Asked())
		time.Sleep(time.Hour)
		refresh(t, state, p, o)
		check(t, "the oldest", p.Asked()[before+4], "/actions/scan/"+address(29).String()+"/10")
		refresh(t, state, p, o)
		check(t, "badges", slices.Contains(badges(t, state), "10 1019 19"), false)
		check(t, "number of badges", len(badges(t, state)), 29)
	})
}

// TestClockGoesBack: what a run has asked whose clock was ahead is asked again in its turn.
func TestClockGoesBack(t *testing.T) {
	p, state := api(4, false), t.TempDir()
	synctest.Test(t, func(t *testing.T) { // each bubble begins in the year 2000
		time.Sleep(20 * 365 * 24 * time.Hour)
		refresh(t, state, p, badge.Options{Wanted: wanted(4)})
	})
	synctest.Test(t, func(t *testing.T) {
		p.Take("10", address(0).String())
		for range 2 {
			refresh(t, state, p, badge.Options{Wanted: wanted(8), Budget: source.Budget{Requests: 4 + 8}})
		}
		check(t, "badges", slices.Contains(badges(t, state), "10 1000 0"), false)
	})
}

// TestOnly404MeansNo: only a 404 removes a badge. Any other answer of the API keeps it.
func TestOnly404MeansNo(t *testing.T) {
	for name, tc := range map[string]struct {
		fault func(w http.ResponseWriter)
		kept  bool
	}{
		"404":                {func(w http.ResponseWriter) { w.WriteHeader(404) }, false},
		"400":                {func(w http.ResponseWriter) { w.WriteHeader(400) }, true},
		"429":                {func(w http.ResponseWriter) { w.WriteHeader(429) }, true},
		"500":                {func(w http.ResponseWriter) { w.WriteHeader(500) }, true},
		"cut":                {upstreams.Cut, true},
		"an empty list":      {func(w http.ResponseWriter) { fmt.Fprint(w, `[]`) }, true},
		"nothing":            {func(http.ResponseWriter) {}, true},
		"null":               {func(w http.ResponseWriter) { fmt.Fprint(w, `null`) }, true},
		"another owner":      {func(w http.ResponseWriter) { fmt.Fprint(w, scan(upstreams.Event("10"), `"1"`, address(9).String())) }, true},
		"another event":      {func(w http.ResponseWriter) { fmt.Fprint(w, scan(upstreams.Event("11"), `"1"`, address(0).String())) }, true},
		"a malformed token":  {func(w http.ResponseWriter) { fmt.Fprint(w, scan(upstreams.Event("10"), `"1e3"`, address(0).String())) }, true},
		"no owner":           {func(w http.ResponseWriter) { fmt.Fprint(w, `{"event":{"id":10},"tokenId":"1"}`) }, true},
		"an event's name: 7": {func(w http.ResponseWriter) { fmt.Fprint(w, scan(`{"id":10,"name":7}`, `"1"`, address(0).String())) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, state := api(1, false), t.TempDir()
				refresh(t, state, p, badge.Options{Wanted: wanted(1)})
				check(t, "badges", badges(t, state), holders(1))
				p.Fault = func(_ int, w http.ResponseWriter, r *http.Request) bool {
					if !strings.HasPrefix(r.URL.Path, "/actions/") || !strings.HasSuffix(r.URL.Path, "/10") {
						return false
					}
					tc.fault(w)
					return true
				}
				r := refresh(t, state, p, badge.Options{Wanted: wanted(1)})
				want := holders(1)
				if !tc.kept {
					want = want[1:]
				} else if len(r.Events[0].Failed) == 0 && r.Stopped == "" {
					t.Errorf("report: got %v, want a failure", r)
				}
				check(t, "badges later", badges(t, state), want)
			})
		})
	}
}

func scan(event, token, owner string) string {
	return fmt.Sprintf(`{"event":%s,"tokenId":%s,"owner":"%s"}`, event, token, owner)
}

// TestHostileLists: a list of owners that cannot be the whole one changes nothing, and ends.
func TestHostileLists(t *testing.T) {
	token := func(id, owner string) string { return fmt.Sprintf(`{"id":%s,"owner":{"id":"%s"}}`, id, owner) }
	page := func(total any, tokens ...string) string {
		return fmt.Sprintf(`{"limit":300,"offset":0,"total":%v,"tokens":[%s]}`, total, strings.Join(tokens, ","))
	}
	own := address(9).String()
	for name, body := range map[string]string{
		"empty":                page(0),
		"fewer than the total": page(3, token(`"1"`, own)),
		"no total":             `{"tokens":[` + token(`"1"`, own) + `]}`,
		"a negative total":     page(-1),
		"an endless total":     page(1e15, token(`"1"`, own)),
		"a total of text":      page(`"7"`, token(`"1"`, own)),
		"a malformed owner":    page(1, token(`"1"`, "vitalik.eth")),
		"a malformed token":    page(1, token(`"0x1"`, own)),
		"no token":             page(1, `{"owner":{"id":"`+own+`"}}`),
		"tokens of text":       `{"total":1,"tokens":"x"}`,
		"a list":               `[]`,
		"no JSON":              `<html>`,
		"nothing":              ``,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, state := api(10, true), t.TempDir()
				refresh(t, state, p, badge.Options{})
				before := len(p.Asked())
				p.Fault = func(_ int, w http.ResponseWriter, r *http.Request) bool {
					if strings.HasPrefix(r.URL.Path, "/event/10/") {
						fmt.Fprint(w, body)
						return true
					}
					return false
				}
				r := refresh(t, state, p, badge.Options{Wanted: wanted(5)})
				check(t, "badges", badges(t, state), holders(10))
				check(t, "failures", r.Events[0].Failed, map[string]int{"invalid answer": 1})
				if n := len(p.Asked()) - before; n > 10 {
					t.Errorf("requests: got %d, want few", n)
				}
			})
		})
	}
}

// TestListChanges: a list whose pages shift while they are read is read again.
func TestListChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, state := api(700, true), t.TempDir()
		p.Fault = func(n int, _ http.ResponseWriter, _ *http.Request) bool {
			if n == 3 { // the second page: now the first one has moved on
				p.Give("10", upstreams.Token{ID: "7", Owner: address(900).String()})
			}
			return false
		}
		r := refresh(t, state, p, badge.Options{})
		check(t, "badges", badges(t, state), slices.Insert(holders(700), 700, "10 7 900"))
		check(t, "requests", r.Requests, 7+3)
	})
}

// TestKey: a refused key is an error that does not show it, and changes nothing.
func TestKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, state := api(10, true), t.TempDir()
		refresh(t, state, p, badge.Options{})
		var log bytes.Buffer
		_, err := tryRefresh(t.Context(), state, p, badge.Options{Key: "the wrong key", Log: slog.New(slog.NewTextHandler(&log, nil))})
		if !errors.Is(err, badge.ErrKey) || strings.Contains(err.Error()+log.String(), "wrong") {
			t.Errorf("got %v, want ErrKey without the key", err)
		}
		check(t, "badges", badges(t, state), holders(10))
		p.Fault = func(_ int, w http.ResponseWriter, r *http.Request) bool {
			if strings.HasPrefix(r.URL.Path, "/event/") {
				w.WriteHeader(401)
				return true
			}
			return false
		}
		if _, err := tryRefresh(t.Context(), state, p, badge.Options{}); !errors.Is(err, badge.ErrKey) {
			t.Errorf("a key that may not list owners: got %v, want ErrKey", err)
		}
	})
	_, err := tryRefresh(t.Context(), t.TempDir(), api(0, true), badge.Options{Key: "secret\n"})
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a key with a line end: got %v, want an error without it", err)
	}
}

// TestOutage: an API that is down stops the run, and nothing is lost.
func TestOutage(t *testing.T) {
	for name, fault := range map[string]func(w http.ResponseWriter){
		"500": func(w http.ResponseWriter) { w.WriteHeader(500) },
		"404": func(w http.ResponseWriter) { w.WriteHeader(404) }, // as of a wrong URL
		"200": func(w http.ResponseWriter) { fmt.Fprint(w, "<html>") },
		"302": func(w http.ResponseWriter) { w.WriteHeader(302) },
	} {
		for _, bulk := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", bulk ", bulk), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p, state := api(30, bulk), t.TempDir()
					refresh(t, state, p, badge.Options{Wanted: wanted(30)})
					p.Fault = func(_ int, w http.ResponseWriter, _ *http.Request) bool {
						fault(w)
						return true
					}
					for range 3 {
						refresh(t, state, p, badge.Options{Wanted: wanted(30)})
					}
					check(t, "badges", badges(t, state), holders(30))
					check(t, "known", len(must(badge.Events(state, events))), 2)
				})
			})
		}
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// TestUnknownEvent: an event that does not exist is reported, and nobody is asked about it.
func TestUnknownEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, state := api(10, true), t.TempDir()
		p.Fault = func(_ int, w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/30") {
				w.WriteHeader(404)
				return true
			}
			return false
		}
		r := refresh(t, state, p, badge.Options{Events: []string{"30", "10"}, Wanted: wanted(1000)})
		check(t, "requests", r.Requests, 4)
		check(t, "known", []bool{r.Events[0].Known, r.Events[1].Known}, []bool{false, true})
		check(t, "report", strings.Contains(r.String(), "0 of event 30, 1 failed (unknown event), without a description: left out\n"), true)
	})
}

// TestOnlyScans: an API that has nothing but scans describes events there.
func TestOnlyScans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, state := api(10, false), t.TempDir()
		p.Fault = func(_ int, w http.ResponseWriter, r *http.Request) bool {
			if strings.HasPrefix(r.URL.Path, "/actions/") {
				return false
			}
			w.WriteHeader(404)
			return true
		}
		refresh(t, state, p, badge.Options{Wanted: wanted(12)})
		check(t, "badges", badges(t, state), holders(10))
		check(t, "known", len(must(badge.Events(state, events))), 2)
	})
}

// TestNeverWrong: under random faults a badge is one that its owner has had, and in the end all are right.
func TestNeverWrong(t *testing.T) {
	for seed := range uint64(servers.Rounds(5, 100)) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 5))
			bulk := random.IntN(2) == 0
			p, state := api(30, bulk), t.TempDir()
			p.Fault = func(_ int, w http.ResponseWriter, _ *http.Request) bool {
				switch random.IntN(8) {
				case 0:
					w.WriteHeader([]int{400, 429, 500, 502, 503}[random.IntN(5)])
				case 1:
					upstreams.Cut(w)
				default:
					return false
				}
				return true
			}
			for range 5 {
				refresh(t, state, p, badge.Options{Wanted: wanted(35)})
				all := holders(30)
				for _, b := range badges(t, state) {
					if !slices.Contains(all, b) {
						t.Fatalf("seed %d: got the badge %s, want none such", seed, b)
					}
				}
			}
			p.Fault = nil
			refresh(t, state, p, badge.Options{Wanted: wanted(35)})
			check(t, fmt.Sprintf("seed %d: badges", seed), badges(t, state), holders(30))
		})
	}
}

func TestErrors(t *testing.T) {
	for name, ids := range map[string][]string{"no number": {"x"}, "a sign": {"-1"}, "empty": {""}, "twice": {"1", "1"}, "a path": {"1/2"}} {
		if _, err := tryRefresh(t.Context(), t.TempDir(), api(0, true), badge.Options{Events: ids}); err == nil {
			t.Errorf("%s: got no error, want one", name)
		}
	}
	state := t.TempDir()
	busy, err := store.Open[struct{}](filepath.Join(state, "badges"))
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	if _, err := tryRefresh(t.Context(), state, api(0, true), badge.Options{}); !errors.Is(err, badge.ErrBusy) {
		t.Errorf("two runs: got %v, want ErrBusy", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tryRefresh(ctx, t.TempDir(), api(0, true), badge.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v, want the end of the context", err)
	}
}

func TestNoState(t *testing.T) {
	state := filepath.Join(t.TempDir(), "none")
	check(t, "badges", len(badges(t, state)), 0)
	check(t, "events", len(must(badge.Events(state, events))), 0)
}

// TestTold: a snapshot has the times of the answers that have its badges, and not of later ones that failed.
func TestTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, state := api(3, false), t.TempDir()
		told := func() *site.ServiceInput {
			t.Helper()
			w := snapshot.InMemory()
			in, err := badge.Write(w, state, events)
			if err != nil {
				t.Fatal(err)
			}
			files, err := snapshot.NewMemory(snapshot.Meta{AsOf: time.Now()}, map[snapshot.Table][]memory.Piece{
				snapshot.TableEvents: {rowsOf(t, w, snapshot.TableEvents)}, snapshot.TableBadges: {rowsOf(t, w, snapshot.TableBadges)},
			})
			if err != nil {
				t.Fatal(err)
			}
			var d snapshot.Digest
			for _, table := range []string{"events", "badges"} {
				text, err := afero.ReadFile(files, table+".ndjson")
				if err != nil {
					t.Fatal(err)
				}
				for line := range strings.Lines(string(text)) {
					d.Add([]byte(strings.TrimSuffix(line, "\n")))
				}
			}
			if in != nil {
				check(t, "digest", in.Digest, d.Sum())
			}
			return in
		}
		check(t, "nothing", told(), (*site.ServiceInput)(nil))
		refresh(t, state, p, badge.Options{Wanted: wanted(3)})
		first := told()
		at, err := time.Parse(time.RFC3339, first.Until)
		if err != nil || first.From > first.Until || time.Since(at) > time.Minute {
			t.Errorf("got %+v, want the times of this run", first)
		}
		time.Sleep(time.Hour)
		p.Fault = func(_ int, w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/scan/") {
				return false
			}
			w.WriteHeader(http.StatusInternalServerError)
			return true
		}
		refresh(t, state, p, badge.Options{Wanted: wanted(3)})
		check(t, "after answers that failed", *told(), *first)
		p.Fault = nil
		refresh(t, state, p, badge.Options{Wanted: wanted(3)})
		again := told()
		check(t, "the same answers", again.Digest, first.Digest)
		if again.From <= first.Until {
			t.Errorf("got %+v, want times after %s", again, first.Until)
		}
		p.Take("10", address(1).String())
		refresh(t, state, p, badge.Options{Wanted: wanted(3)})
		if other := told(); other.Digest == first.Digest {
			t.Error("other answers: got the same digest")
		}
	})
}

func rowsOf(t *testing.T, w *snapshot.Writer, table snapshot.Table) memory.Piece {
	t.Helper()
	rows, _, err := w.Rows(table)
	if err != nil {
		t.Fatal(err)
	}
	return rows.Piece()
}

// TestWorstAnswers: with any answers of the API, a run allocates at most a small multiple of the
// largest accepted answer, 1 MiB, per request.
func TestWorstAnswers(t *testing.T) {
	const requests = 4
	for _, name := range worst.Names() {
		for where, begin := range map[string]string{
			"alone": ``, "tokens": `{"total":9,"tokens":`, "owner": `{"total":9,"tokens":[{"id":"1","owner":`, "text": `{"id":10,"name":`, "unknown": `{"unknown":`,
		} {
			synctest.Test(t, func(t *testing.T) {
				worst.Check(t, where+": "+name, requests*40<<20, func() {
					report, err := badge.Refresh(t.Context(), badge.Options{
						State: t.TempDir(), URL: "https://badges.example", Events: []string{"10"}, Wanted: wanted(2), Budget: source.Budget{Requests: requests},
						Progress: silent{}, Transport: worst.JSON[name].Around(begin).Answer(worst.Size),
					})
					if err != nil || report.Events[0].Badges > 0 {
						t.Errorf("%s, %s: got %+v and %v", where, name, report, err)
					}
				})
			})
		}
	}
}

// TestShrinkingList: many owners that a list no longer has are kept until it has lacked them for a
// day, also if it shrinks while its pages are read; few are dropped at once.
func TestShrinkingList(t *testing.T) {
	const n = 1_000
	for _, test := range []struct{ left, want, dayLater int }{{1, n, 1}, {n / 2, n, n / 2}, {n - 101, n, n - 101}, {n - 100, n - 100, n - 100}} {
		synctest.Test(t, func(t *testing.T) {
			state, all := t.TempDir(), api(n, true)
			only := badge.Options{Events: []string{"10"}}
			refresh(t, state, all, only)
			fewer := api(test.left, true)
			for _, wait := range []time.Duration{0, time.Hour} {
				time.Sleep(wait)
				report := refresh(t, state, fewer, only)
				check(t, "badges", report.Events[0].Badges, test.want)
				check(t, "doubted", report.Doubted, test.want-test.left)
			}
			time.Sleep(23 * time.Hour)
			report := refresh(t, state, fewer, only)
			check(t, "badges a day later", report.Events[0].Badges, test.dayLater)
			check(t, "doubted a day later", report.Doubted, 0)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		state, all := t.TempDir(), api(n, true)
		only := badge.Options{Events: []string{"10"}}
		refresh(t, state, all, only)
		refresh(t, state, api(1, true), only)
		time.Sleep(time.Hour)
		refresh(t, state, all, only) // they are back, so the day starts over
		time.Sleep(24 * time.Hour)
		check(t, "badges", refresh(t, state, api(1, true), only).Events[0].Badges, n)
	})
	synctest.Test(t, func(t *testing.T) {
		state, all := t.TempDir(), api(n, true)
		refresh(t, state, all, badge.Options{})
		want := badges(t, state)
		shrinks := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.RawQuery, "offset=0") || !strings.Contains(r.URL.Path, "poaps") {
				all.ServeHTTP(w, r)
				return
			}
			_, _ = fmt.Fprintf(w, `{"total":%d,"tokens":[{"id":"1000","owner":{"id":"%s"}}]}`, 1, address(0))
		})
		report := refresh(t, state, shrinks, badge.Options{})
		if got := badges(t, state); !slices.Equal(got, want) {
			t.Errorf("a list that shrinks within a run: got %d badges, want %d", len(got), len(want))
		}
		check(t, "failures", report.Events[0].Failed["invalid answer"], 1)
	})
}
