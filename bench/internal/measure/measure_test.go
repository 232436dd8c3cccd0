package measure

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestFigureOf(t *testing.T) {
	for _, test := range []struct {
		rounds []float64
		want   Figure
	}{
		{[]float64{3}, Figure{3, 3, 3, 1}},
		{[]float64{3, 1, 2}, Figure{2, 1, 3, 3}},
		{[]float64{4, 1, 2, 3}, Figure{2.5, 1, 4, 4}},
		{[]float64{1.0 / 3}, Figure{0.33333, 0.33333, 0.33333, 1}},
		{[]float64{1_828_041}, Figure{1_828_041, 1_828_041, 1_828_041, 1}},
	} {
		before := append([]float64(nil), test.rounds...)
		if got := FigureOf(test.rounds); got != test.want {
			t.Errorf("FigureOf(%v): got %v, want %v", test.rounds, got, test.want)
		}
		if !reflect.DeepEqual(before, test.rounds) {
			t.Errorf("FigureOf sorted what it was given: %v", test.rounds)
		}
	}
}

func TestText(t *testing.T) {
	for _, test := range []struct {
		value float64
		unit  string
		want  string
	}{
		{15.71, "s", "15.7 s"}, {3.14159, "s", "3.14 s"}, {2, "s", "2 s"}, {0.0213, "s", "0.021 s"}, {0, "errors", "0 errors"},
		{50_237.4, "/s", "50,237/s"}, {999.6, "MiB", "1,000 MiB"}, {153.2, "MiB", "153 MiB"}, {1_828_041, "objects", "1,828,041 objects"},
		{0.63, "", "0.63"}, {-1234, "s", "-1,234 s"}, {-123, "s", "-123 s"},
	} {
		if got := Text(test.value, test.unit); got != test.want {
			t.Errorf("Text(%v, %q): got %q, want %q", test.value, test.unit, got, test.want)
		}
	}
}

func TestTable(t *testing.T) {
	var table Table
	table.Compare("a / b", "s", []Pair{{1, 2}, {3, 4}, {1, 4}}, "≤ 0.4")
	table.Compare("rate", "/s", []Pair{{60_000, 50_000}}, "≥ 61,000/s")
	table.Compare("no target", "s", []Pair{{1, 1}}, "")
	table.Figure("memory", "MiB", []float64{300, 200, 100}, "≤ 256 MiB", "some objects", "twice")
	table.Figure("hits", "", []float64{0.98}, "≥ 0.99")
	if err := table.Err(); err != nil {
		t.Fatal(err)
	}
	want := `| measure | ours | other | ratio | target | note |
|---|---|---|---|---|---|
| a / b | 1 s | 4 s | **0.50 (0.25 to 0.75)** | ≤ 0.4 |  |
| rate | **60,000/s** | 50,000/s | 1.20 | ≥ 61,000/s |  |
| no target | 1 s | 1 s | 1 |  |  |
| memory | 200 MiB (100 to 300) |  |  | ≤ 256 MiB | some objects, twice |
| hits | **0.98** |  |  | ≥ 0.99 |  |
`
	if got := table.String(); got != want {
		t.Errorf("table: got\n%s\nwant\n%s", got, want)
	}
}

// A slip in a target is told after the run, not in place of its figures.
func TestTableErr(t *testing.T) {
	for _, target := range []string{"< 3", "≤", "≤ 3", "≤ 3 s", "≤ many MiB", "≤ ≥ 3 MiB", "3 MiB"} {
		var table Table
		table.Figure("memory", "MiB", []float64{1}, target)
		if table.Err() == nil {
			t.Errorf("target %q: got no error", target)
		}
		if len(table.Rows) != 1 || table.Rows[0].Missed() {
			t.Errorf("target %q: got rows %v, want one that misses nothing", target, table.Rows)
		}
	}
	var table Table
	table.Figure("memory", "MiB", []float64{1}, "")
	table.Figure("memory", "MiB", []float64{1}, "")
	if table.Err() == nil {
		t.Error("two rows of one name: got no error")
	}
	table = Table{}
	table.Compare("a / b", "s", []Pair{{1, 0}}, "")
	if table.Err() == nil {
		t.Error("division by zero: got no error")
	}
}

func TestMoreIsBetter(t *testing.T) {
	for row, want := range map[Row]bool{
		{Unit: "s"}: false, {Unit: "/s"}: true, {Unit: "/s", Target: "≤ 5/s"}: false, {Target: "≥ 0.9"}: true,
	} {
		if got := row.MoreIsBetter(); got != want {
			t.Errorf("%+v: got %v, want %v", row, got, want)
		}
	}
}

func TestRounds(t *testing.T) {
	pairs, err := Rounds(2, func(round int) (Pair, error) { return Pair{float64(round), 1}, nil })
	if want := []Pair{{0, 1}, {1, 1}}; err != nil || !reflect.DeepEqual(pairs, want) {
		t.Errorf("got %v, %v, want %v", pairs, err, want)
	}
	wrong := errors.New("wrong")
	if _, err := Rounds(2, func(int) (Pair, error) { return Pair{}, wrong }); !errors.Is(err, wrong) {
		t.Errorf("Rounds: got error %v", err)
	}
	if _, err := Repeat(2, func(int) (float64, error) { return math.Inf(1), wrong }); !errors.Is(err, wrong) {
		t.Errorf("Repeat: got error %v", err)
	}
}

// What is written is what is read, and the same twice.
func TestResult(t *testing.T) {
	var table Table
	table.Compare("generate / `cp -r`", "s", []Pair{{1, 3}, {2, 3}}, "≤ 0.8", "1 < 2")
	table.Figure("errors", "errors", []float64{0}, "≤ 0 errors")
	result := NewResult("some", "small", &table)
	dir := filepath.Join(t.TempDir(), "results")
	if err := result.Write(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "some.json"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseResult(text)
	if err != nil || !reflect.DeepEqual(again, result) {
		t.Errorf("read: got %+v, %v, want %+v", again, err, result)
	}
	if !strings.Contains(string(text), "1 < 2") {
		t.Errorf("the file is not readable:\n%s", text)
	}
	if result.Machine.Cores < 1 {
		t.Errorf("machine: got %+v", result.Machine)
	}
}

func TestParseResultRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":       `{`,
		"unknown field": `{"bunch":"x"}`,
		"no rounds":     `{"rows":[{"measure":"a","ours":{"median":1}}]}`,
		"no name":       `{"rows":[{"ours":{"median":1,"rounds":1}}]}`,
		"no ratio":      `{"rows":[{"measure":"a","ours":{"rounds":1},"other":{"rounds":1}}]}`,
		"wrong target":  `{"rows":[{"measure":"a","unit":"s","ours":{"rounds":1},"target":"≤ 3 MiB"}]}`,
	} {
		if _, err := ParseResult([]byte(text)); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}
