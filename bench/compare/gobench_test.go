package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/followpress/followpress/bench/internal/measure"
)

const before = `goos: linux
goarch: amd64
pkg: github.com/followpress/followpress/generator
cpu: one
BenchmarkLoad-2   	       1	 100 ns/op	  18.54 MB/s	  74000 objects/op	148000304 B/op	 1507066 allocs/op
BenchmarkLoad-2   	       1	 102 ns/op	  18.54 MB/s	  74000 objects/op	148000304 B/op	 1507066 allocs/op
BenchmarkLoad-2   	       1	 101 ns/op	  18.54 MB/s	  74000 objects/op	148000304 B/op	 1507066 allocs/op
PASS
ok  	github.com/followpress/followpress/generator	5.473s
pkg: github.com/followpress/followpress/server
BenchmarkSearch/term=a-2         	       1	   12.5 ns/op
`

func TestParseGoBench(t *testing.T) {
	got, err := parseGoBench([]byte(before))
	if err != nil {
		t.Fatal(err)
	}
	want := []measure.Row{
		{Measure: "generator.BenchmarkLoad, ns/op", Unit: "ns/op", Ours: measure.Figure{Median: 101, Min: 100, Max: 102, Rounds: 3}},
		{Measure: "generator.BenchmarkLoad, B/op", Unit: "B/op", Ours: measure.FigureOf([]float64{148000304, 148000304, 148000304})},
		{Measure: "generator.BenchmarkLoad, allocs/op", Unit: "allocs/op", Ours: measure.FigureOf([]float64{1507066, 1507066, 1507066})},
		{Measure: "server.BenchmarkSearch/term=a, ns/op", Unit: "ns/op", Ours: measure.FigureOf([]float64{12.5})},
	}
	if !reflect.DeepEqual(got.Rows, want) {
		t.Errorf("got %+v, want %+v", got.Rows, want)
	}
	if want := (measure.Machine{CPU: "one", Cores: 2, System: "linux"}); got.Machine != want {
		t.Errorf("machine: got %+v, want %+v", got.Machine, want)
	}
	for _, text := range []string{"", "PASS\n", "BenchmarkLoad-2 1 many ns/op\n"} {
		if _, err := parseGoBench([]byte(text)); err == nil {
			t.Errorf("%q: got no error", text)
		}
	}
}

// With one core go test appends no number, and a number at the end belongs to the name.
func TestParseGoBenchOfOneCore(t *testing.T) {
	got, err := parseGoBench([]byte("BenchmarkX/n-100 1 5 ns/op\nBenchmarkX/n-1000 1 50 ns/op\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Rows) != 2 || got.Rows[0].Measure != ".BenchmarkX/n-100, ns/op" || got.Machine.Cores != 1 {
		t.Errorf("got %+v of %d cores, want two rows of one core", got.Rows, got.Machine.Cores)
	}
}

func TestCompareGoBench(t *testing.T) {
	old, new := t.TempDir(), t.TempDir()
	for dir, text := range map[string]string{old: before, new: strings.ReplaceAll(before, "10", "20")} {
		if err := os.WriteFile(filepath.Join(dir, goBench), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	check(t, true, "worse   generator.BenchmarkLoad, ns/op: 201 ns/op (200 to 202), before 101 ns/op (100 to 102): +99 %", old, new)
	check(t, false, "better", filepath.Join(new, goBench), filepath.Join(old, goBench))
}
