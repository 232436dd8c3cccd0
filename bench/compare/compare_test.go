package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/bench/internal/measure"
)

var one, other = measure.Machine{CPU: "one", Cores: 2}, measure.Machine{CPU: "other", Cores: 2}

func result(machine measure.Machine, snapshot string, add func(*measure.Table)) measure.Result {
	var table measure.Table
	if add != nil {
		add(&table)
	}
	return measure.Result{Bench: "some", Machine: machine, Snapshot: snapshot, Rows: table.Rows}
}

func figure(unit, target string, rounds ...float64) func(*measure.Table) {
	return func(t *measure.Table) { t.Figure("m", unit, rounds, target) }
}

// ratio has rounds whose other figure is 100.
func ratio(unit, target string, ours ...float64) func(*measure.Table) {
	return func(t *measure.Table) {
		var pairs []measure.Pair
		for _, v := range ours {
			pairs = append(pairs, measure.Pair{Ours: v, Other: 100})
		}
		t.Compare("m", unit, pairs, target)
	}
}

func TestCompare(t *testing.T) {
	tests := map[string]struct {
		old, new func(*measure.Table)
		want     []kind
	}{
		"the same":                      {figure("s", "", 1, 1, 1), figure("s", "", 1, 1, 1), nil},
		"slower":                        {figure("s", "", 10, 10.1, 10.2), figure("s", "", 12, 12.1, 12.2), []kind{worse}},
		"faster":                        {figure("s", "", 12, 12.1, 12.2), figure("s", "", 10, 10.1, 10.2), []kind{better}},
		"slower, spreads overlap":       {figure("s", "", 10, 10.1, 12), figure("s", "", 12, 12.1, 12.2), nil},
		"faster, spreads overlap":       {figure("s", "", 10, 14, 14), figure("s", "", 8, 9, 10), nil},
		"slower by too little":          {figure("s", "", 10, 10.01, 10.02), figure("s", "", 10.9, 10.91, 10.92), nil},
		"few rounds, slower by little":  {figure("s", "", 10), figure("s", "", 12), nil},
		"few rounds, slower":            {figure("s", "", 10), figure("s", "", 13), []kind{worse}},
		"few rounds before":             {figure("s", "", 10, 10), figure("s", "", 12, 12, 12), nil},
		"a lower rate":                  {figure("/s", "", 10, 10, 10), figure("/s", "", 8, 8, 8), []kind{worse}},
		"a higher rate":                 {figure("/s", "", 8, 8, 8), figure("/s", "", 10, 10, 10), []kind{better}},
		"more, as the target wants":     {figure("", "≥ 0.99", 0.5, 0.5, 0.5), figure("", "≥ 0.99", 1, 1, 1), []kind{better}},
		"first errors":                  {figure("", "≤ 0", 0), figure("", "≤ 0", 1), []kind{worse}},
		"no more errors":                {figure("", "≤ 0", 1), figure("", "≤ 0", 0), []kind{better}},
		"still none":                    {figure("", "≤ 0", 0), figure("", "≤ 0", 0), nil},
		"a higher ratio":                {ratio("s", "≤ 0.8", 50, 51, 52), ratio("s", "≤ 0.8", 60, 61, 62), []kind{worse}},
		"a higher ratio of rates":       {ratio("/s", "", 50, 51, 52), ratio("/s", "", 60, 61, 62), []kind{better}},
		"gone":                          {figure("s", "", 1), nil, []kind{gone}},
		"new":                           {nil, figure("s", "", 1), []kind{added}},
		"another unit":                  {figure("s", "", 1), figure("ms", "", 1000), []kind{gone}},
		"no ratio any more":             {ratio("s", "", 50), figure("s", "", 50), []kind{gone}},
		"another target, the same else": {figure("s", "≤ 3 s", 1), figure("s", "≤ 2 s", 1), nil},
	}
	for name, test := range tests {
		got := compare(result(one, "x", test.old), result(one, "x", test.new))
		var kinds []kind
		for _, c := range got.changes {
			kinds = append(kinds, c.kind)
		}
		if !slices.Equal(kinds, test.want) {
			t.Errorf("%s: got %v, want %v", name, got.changes, test.want)
		}
		if want := slices.Contains(test.want, worse) || slices.Contains(test.want, gone); got.worse() != want {
			t.Errorf("%s: worse: got %v, want %v", name, got.worse(), want)
		}
		if got.hint != "" {
			t.Errorf("%s: got hint %q, want none", name, got.hint)
		}
	}
}

// If only the tool that ours is compared with got slower, ours did not get better or worse: the machine
// did. So the ratio is what counts.
func TestCompareSlowMachine(t *testing.T) {
	pairs := func(ours, other float64) func(*measure.Table) {
		return func(t *measure.Table) {
			t.Compare("m", "s", slices.Repeat([]measure.Pair{{Ours: ours, Other: other}}, 3), "≤ 0.8")
		}
	}
	if got := compare(result(one, "x", pairs(10, 20)), result(one, "x", pairs(20, 40))); len(got.changes) > 0 || got.same != 1 {
		t.Errorf("both twice as slow: got %+v", got.changes)
	}
}

func TestCompareOtherMachine(t *testing.T) {
	both := func(seconds float64) func(*measure.Table) {
		return func(t *measure.Table) {
			t.Figure("seconds", "s", slices.Repeat([]float64{seconds}, 3), "")
			ratio("s", "", seconds, seconds, seconds)(t)
		}
	}
	got := compare(result(one, "x", both(10)), result(other, "x", both(20)))
	if !strings.Contains(got.hint, "another machine") || got.incomparable != 1 {
		t.Errorf("got hint %q and %d incomparable, want 1", got.hint, got.incomparable)
	}
	if len(got.changes) != 1 || got.changes[0].kind != worse {
		t.Errorf("got %v, want that the ratio is worse, and nothing else", got.changes)
	}
}

func TestCompareOtherSnapshot(t *testing.T) {
	got := compare(result(one, "x", ratio("s", "", 1, 1, 1)), result(one, "y", ratio("s", "", 9, 9, 9)))
	if !strings.Contains(got.hint, "another snapshot") || len(got.changes) > 0 || got.worse() {
		t.Errorf("got hint %q, changes %v", got.hint, got.changes)
	}
}

func write(t *testing.T, dir string, r measure.Result) {
	t.Helper()
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
}

// check runs the command's main part.
func check(t *testing.T, wantWorse bool, wantText string, args ...string) {
	t.Helper()
	var out bytes.Buffer
	got, err := run(&out, "HEAD", args)
	if err != nil {
		t.Fatalf("compare %v: %v", args, err)
	}
	if got != wantWorse || !strings.Contains(out.String(), wantText) {
		t.Errorf("compare %v: got %v and\n%s\nwant %v and %q", args, got, &out, wantWorse, wantText)
	}
}

func TestRunFoldersAndFiles(t *testing.T) {
	old, new := t.TempDir(), t.TempDir()
	write(t, old, result(one, "x", figure("s", "", 10, 10, 10)))
	write(t, new, result(one, "x", figure("s", "", 12, 12, 12)))
	alone := result(one, "x", figure("s", "", 1))
	alone.Bench = "alone"
	write(t, new, alone)
	check(t, true, "worse   m: 12 s, before 10 s: +20 %", old, new)
	check(t, true, "alone.json: nothing to compare with", old, new)
	check(t, true, "alone.json: gone", new, old)
	check(t, true, "worse", filepath.Join(old, "some.json"), filepath.Join(new, "some.json"))
	check(t, false, "better", filepath.Join(new, "some.json"), filepath.Join(old, "some.json"))
}

func TestRunRefuses(t *testing.T) {
	dir, empty := t.TempDir(), t.TempDir()
	write(t, dir, result(one, "x", figure("s", "", 1)))
	if err := os.WriteFile(filepath.Join(dir, "broken.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"one"}, {dir, empty}, {dir, dir}, {dir, filepath.Join(dir, "absent")}, {"a", "b", "c"}} {
		if _, err := run(&bytes.Buffer{}, "HEAD", args); err == nil {
			t.Errorf("compare %v: got no error", args)
		}
	}
}

// Without arguments the results are compared with those of a commit.
func TestRunCommitted(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git: install it, and have it in the PATH")
	}
	t.Chdir(t.TempDir())
	commit := func() {
		for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=x", "-c", "user.email=x@y", "commit", "-q", "-m", "x"}} {
			if text, err := exec.Command("git", args...).CombinedOutput(); err != nil {
				t.Fatalf("git %v: %v\n%s", args, err, text)
			}
		}
	}
	write(t, results, result(one, "x", figure("s", "", 10, 10, 10)))
	commit()
	check(t, false, "some.json: no new result")
	write(t, results, result(one, "x", figure("s", "", 12, 12, 12)))
	check(t, true, "worse")
	for i := range 2 {
		added := result(one, "x", figure("s", "", 1))
		added.Bench = fmt.Sprint("added-", i)
		write(t, results, added)
	}
	check(t, true, "added-1.json: nothing to compare with")
	commit()
	check(t, false, "some.json: no new result")
	if err := os.Remove(filepath.Join(results, "added-0.json")); err != nil {
		t.Fatal(err)
	}
	check(t, true, "added-0.json: gone")
	if _, err := run(&bytes.Buffer{}, "no-such-commit", nil); err == nil {
		t.Error("a commit that does not exist: got no error")
	}
}
