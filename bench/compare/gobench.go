package main

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/followpress/followpress/bench/internal/measure"
)

// goBench is the file of what the Go benchmarks print, in the format of golang.org/design/14313-benchmark-format,
// which benchstat reads too.
const goBench = "go.txt"

// lowerIsBetter are the units that are compared. Others follow from them, or do not change.
var lowerIsBetter = []string{"ns/op", "B/op", "allocs/op"}

// procs ends the names of all benchmarks of a run: how many cores they may use.
var procs = regexp.MustCompile(`(?m)^Benchmark\S*?(-\d+)?\s`)

// procsOf returns how the names of benchmarks end; "" if they use one core. Then a name may end in a number
// of its own.
func procsOf(text []byte) (suffix string) {
	for i, match := range procs.FindAllSubmatch(text, -1) {
		if i > 0 && suffix != string(match[1]) {
			return ""
		}
		suffix = string(match[1])
	}
	return suffix
}

// parseGoBench reads the output of go test -bench -count N: a row for each unit of each benchmark.
func parseGoBench(text []byte) (measure.Result, error) {
	r := measure.Result{Bench: "go"}
	var names, units []string // of the rows
	values := map[string][]float64{}
	pkg, suffix := "", procsOf(text)
	r.Machine.Cores = 1
	if suffix != "" {
		r.Machine.Cores, _ = strconv.Atoi(suffix[1:]) // the pattern has digits
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch key, value, _ := strings.Cut(line, ": "); key {
		case "pkg":
			pkg = path.Base(value)
		case "cpu":
			r.Machine.CPU = value
		case "goos":
			r.Machine.System = value
		}
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		for pair := range slices.Chunk(fields[2:], 2) {
			if len(pair) < 2 || !slices.Contains(lowerIsBetter, pair[1]) {
				continue
			}
			value, err := strconv.ParseFloat(pair[0], 64)
			if err != nil {
				return r, fmt.Errorf("%q: %w", line, err)
			}
			name := fmt.Sprintf("%s.%s, %s", pkg, strings.TrimSuffix(fields[0], suffix), pair[1])
			if values[name] == nil {
				names, units = append(names, name), append(units, pair[1])
			}
			values[name] = append(values[name], value)
		}
	}
	for i, name := range names {
		r.Rows = append(r.Rows, measure.Row{Measure: name, Unit: units[i], Ours: measure.FigureOf(values[name])})
	}
	if len(r.Rows) == 0 {
		return r, errors.New("no benchmark in it")
	}
	return r, nil
}
