package main

import (
	"os"
	"strings"
	"testing"

	"github.com/followpress/followpress/bench/internal/measure"
)

// The pages show the results that are committed.
func TestPages(t *testing.T) {
	results, err := read("../results")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../../README.md", "../performance.md"} {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want, err := update(string(page), results)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if want != string(page) {
			t.Errorf("%s and bench/results disagree: run make docs, and commit both", name)
		}
	}
}

// all are results that have the rows of README, and one more.
func all() []measure.Result {
	tables := map[string]*measure.Table{"generate": {}, "publish": {}, "fallback": {}}
	for _, l := range lines {
		tables[l.bench].Compare(l.measure, "s", []measure.Pair{{Ours: 1, Other: 4}, {Ours: 2, Other: 4}, {Ours: 4, Other: 4}}, "≤ 0.4")
	}
	tables["publish"].Figure("more", "MiB", []float64{1, 2, 3}, "≤ 5 MiB", "a note")
	var results []measure.Result
	for _, bench := range []string{"fallback", "generate", "publish"} {
		results = append(results, measure.NewResult(bench, network, tables[bench]))
	}
	return results
}

func TestUpdate(t *testing.T) {
	for begin, want := range map[string]string{
		someFigures: "| generate 359,474 objects into a folder | 2 s |\n",
		allTables:   "| more | 2 MiB (1 to 3) |  |  | ≤ 5 MiB | a note |\n",
	} {
		got, err := update("before\n"+begin+"stale\n"+end+"after\n", all())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(got, "before\n"+begin) || !strings.HasSuffix(got, end+"after\n") || strings.Contains(got, "stale") || !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant %q in it", got, want)
		}
		if again, err := update(got, all()); err != nil || again != got {
			t.Errorf("again: got %v and\n%s", err, again)
		}
	}
}

func TestUpdateRefuses(t *testing.T) {
	other := all()
	other[0].Snapshot = "synthetic"
	fewer := all()
	fewer[0].Rows = nil
	for name, test := range map[string]struct {
		page    string
		results []measure.Result
	}{
		"no marks":            {"text", all()},
		"no end":              {someFigures, all()},
		"no end of tables":    {allTables, all()},
		"a result is missing": {someFigures + end, all()[1:]},
		"a row is missing":    {someFigures + end, fewer},
		"another snapshot":    {someFigures + end, other},
	} {
		if _, err := update(test.page, test.results); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}
