package lock

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

func TestMergeDoubts(t *testing.T) {
	early, late := time.Unix(1e9, 0), time.Unix(2e9, 0)
	run := func(path string, since time.Time) Run {
		return Run{Since: since, Config: site.Config{BasePath: path}}
	}
	one, other := run("one", early), run("other", late)
	for name, c := range map[string]struct{ a, b, want *Doubt }{
		"neither":     {nil, nil, nil},
		"only one":    {&Doubt{Run: "x", Since: early}, nil, &Doubt{Run: "x", Since: early}},
		"two runs":    {&Doubt{Run: "x", Since: early}, &Doubt{Run: "y", Since: late}, &Doubt{Since: late}},
		"one run":     {&Doubt{Run: "x", Since: early}, &Doubt{Run: "x", Since: late}, &Doubt{Run: "x", Since: late}},
		"several":     {&Doubt{Run: "x", Since: early}, &Doubt{Since: early}, &Doubt{Since: early}},
		"other sites": {&Doubt{Since: early, Sites: []Run{other}}, &Doubt{Since: early, Sites: []Run{one}}, &Doubt{Since: early, Sites: []Run{one, other}}},
		"same site":   {&Doubt{Since: early, Sites: []Run{one}}, &Doubt{Since: early, Sites: []Run{run("one", late)}}, &Doubt{Since: early, Sites: []Run{one}}},
	} {
		for _, sum := range []*Doubt{c.a.Merge(c.b), c.b.Merge(c.a)} {
			same := sum.Equal(c.want) && (sum == nil || slices.EqualFunc(sum.Sites, c.want.Sites, Run.equal))
			if !same {
				t.Errorf("%s: got %+v, want %+v", name, sum, c.want)
			}
		}
	}
	if x := (&Doubt{Run: "x", Since: early}); x.Equal(&Doubt{Run: "x", Since: late}) || x.Equal(&Doubt{Run: "y", Since: early}) || x.Equal(nil) {
		t.Error("doubts of other times and runs: got them equal")
	}
	future := (&Doubt{Run: "x", Since: late, Sites: []Run{one}}).NotInFuture(early)
	if !future.Since.Equal(early) || future.Run != "x" || len(future.Sites) != 1 {
		t.Errorf("doubt of the future: got %+v, want the same, now", future)
	}
}

// A doubt leads to a listing unless it is about the lock's own run.
func TestDoubtedLock(t *testing.T) {
	for run, want := range map[string]bool{"": true, "x": false, "y": true} {
		if got := (Body{ID: "x", Doubt: &Doubt{Run: run}}).Doubted(); got != want {
			t.Errorf("doubt about %q in a lock of x: got %v, want %v", run, got, want)
		}
	}
	heartbeat := time.Unix(1e9, 0)
	d := Body{ID: "x", Lease: 60}.DoubtOf(storage.Info{Modified: heartbeat}, heartbeat)
	if d.Run != "x" || !d.Since.Equal(heartbeat.Add(time.Minute)) {
		t.Errorf("doubt about a dead run: got %+v, want it to begin after the lease", d)
	}
}

// The headers of an object are known only if all runs that may have put it, allowing for clock
// differences, put the same ones.
func TestRulesOfObjects(t *testing.T) {
	const pattern = "/p"
	begun := time.Unix(1e9, 0)
	rules := func(text string) map[string]site.MD5 { return map[string]site.MD5{pattern: site.Sum([]byte(text))} }
	live := &site.Root{HeaderRules: rules("live")}
	first, second := Run{Since: begun, HeaderRules: rules("first")}, Run{Since: begun.Add(time.Hour), HeaderRules: rules("second")}
	for _, c := range []struct {
		name string
		runs []Run
		live *site.Root
		put  time.Duration // after the first run began
		want string        // "" if unknown
	}{
		{"no run is named", nil, live, time.Hour, "live"},
		{"nothing is named", nil, nil, time.Hour, ""},
		{"long before the run", []Run{first}, live, -clockSlack - 1, "live"},
		{"hardly before the run", []Run{first}, live, -clockSlack + 1, ""},
		{"while earlier requests may arrive", []Run{first}, live, requests.Lateness - 1, ""},
		{"long after it began", []Run{first}, live, requests.Lateness, "first"},
		{"before a first publish", []Run{first}, nil, -clockSlack - 1, ""},
		{"hardly before a first publish", []Run{first}, nil, -clockSlack, "first"},
		{"of the first of two", []Run{first, second}, nil, 30 * time.Minute, "first"},
		{"of one of two", []Run{first, second}, live, time.Hour, ""},
		{"of the second of two, or of a late request of the first", []Run{first, second}, live, 2*time.Hour - 1, ""},
		{"of the second of two", []Run{first, second}, live, 2 * time.Hour, "second"},
		{"of two with the same", []Run{first, {Since: begun.Add(time.Hour), HeaderRules: rules("first")}}, live, time.Hour, "first"},
	} {
		got, ok := (&Mark{Runs: c.runs}).RulesAt(begun.Add(c.put), pattern, c.live)
		if ok != (c.want != "") || ok && got != site.Sum([]byte(c.want)) {
			t.Errorf("%s: got %v, known %v, want %q", c.name, got, ok, c.want)
		}
	}
}

// Leftovers are found of every site that may have some: the live one, those of marked runs, and the
// next one.
func TestConfigsOfLeftovers(t *testing.T) {
	live, next := site.Root{Config: site.Config{BasePath: "live"}}, site.Root{Config: site.Config{BasePath: "next"}}
	found := map[string]bool{}
	for _, c := range (&Mark{Runs: []Run{{Config: site.Config{BasePath: "marked"}}}}).Configs(&live, &next) {
		found[c.BasePath] = true
	}
	if want := map[string]bool{"live": true, "next": true, "marked": true}; !maps.Equal(found, want) {
		t.Errorf("base paths: got %v, want %v", found, want)
	}
}
