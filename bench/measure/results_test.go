package measure

import (
	"os"
	"path/filepath"
	"testing"
)

func TestText(t *testing.T) {
	for _, test := range []struct {
		rounds []float64
		unit   string
		want   string
	}{
		{[]float64{15.71}, "s", "15.7 s"}, {[]float64{2}, "s", "2 s"}, {[]float64{0.0213}, "s", "0.0213 s"}, {[]float64{0}, "errors", "0 errors"},
		{[]float64{50_237.4}, "/s", "50237/s"}, {[]float64{1_828_041}, "objects", "1828041 objects"}, {[]float64{0.63}, "", "0.63"},
		{[]float64{3, 1, 2}, "s", "2 s (1 to 3)"}, {[]float64{4, 1, 2, 3}, "s", "2.5 s (1 to 4)"},
	} {
		if got := Text(test.unit, test.rounds...); got != test.want {
			t.Errorf("Text(%q, %v): got %q, want %q", test.unit, test.rounds, got, test.want)
		}
	}
}

// Every round is a line that benchstat can read.
func TestResults(t *testing.T) {
	var r Results
	r.Compare("generate / `cp -r`", "s", []Pair{{1, 4}, {3, 4}}, "≤ 0.8")
	r.Figure("rate", "/s", []float64{60_000}, "", "some note")
	r.Figure("hit ratio", "", []float64{0.98}, "≥ 0.99")
	path := filepath.Join(t.TempDir(), "some.txt")
	if err := r.Write(path); err != nil {
		t.Fatal(err)
	}
	want := "Benchmark/generate_/_`cp_-r` 1 1 s 4 other-s 0.25 ratio\n" +
		"Benchmark/generate_/_`cp_-r` 1 3 s 4 other-s 0.75 ratio\n" +
		"Benchmark/rate 1 60000 per-s\n" +
		"Benchmark/hit_ratio 1 0.98 count\n"
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	r.Compare("a / b", "s", []Pair{{1, 0}}, "")
	if r.Write(path) == nil {
		t.Error("division by zero: got no error")
	}
}
