package lock

import (
	"slices"
	"testing"
	"time"

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
