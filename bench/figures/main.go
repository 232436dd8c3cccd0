// Command figures writes the figures of the benchmarks into pages again, from their results: some into
// README.md, all tables into bench/performance.md. `make docs` runs it. Arguments are the folder of the
// results and the pages.
package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/followpress/followpress/bench/internal/measure"
)

//go:generate go run . ../results ../../README.md ../performance.md

// network is the snapshot of a real network, which README says its figures are of.
const network = "epinions"

// A line is a figure that README shows.
type line struct {
	text           string
	bench, measure string // the row that has it
}

var lines = []line{
	{"generate 359,474 objects into a folder", "generate", "generate to a fresh folder / `cp -r` of it"},
	{"generate them again, nothing changed", "generate", "generate over an unchanged site / first run"},
	{"publish after 1 % of the lists changed", "publish", "1 % of the lists with another tag / `rclone sync --checksum`"},
	{"details of 1,000 lists from the fallback, 50 connections", "fallback", "details of 1000 lists, warm, 50 connections / nginx serving the files"},
}

// What a page has around that which is made.
const (
	someFigures = "<!-- Figures of bench/results. `make docs` makes them: do not edit. -->\n"
	allTables   = "<!-- Tables of bench/results. `make docs` makes them: do not edit. -->\n"
	end         = "<!-- End of what is made. -->\n"
)

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: figures RESULTS PAGE…")
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		log.Fatal(err)
	}
}

func run(dir string, pages []string) error {
	results, err := read(dir)
	if err != nil {
		return err
	}
	for _, name := range pages {
		page, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		updated, err := update(string(page), results)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(name, []byte(updated), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// read reads all results of a folder, in the order of their names.
func read(dir string) ([]measure.Result, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	results := make([]measure.Result, len(paths))
	for i, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if results[i], err = measure.ParseResult(text); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return results, nil
}

// update returns a page with the figures of the results.
func update(page string, results []measure.Result) (string, error) {
	for begin, made := range map[string]func([]measure.Result) (string, error){someFigures: figures, allTables: tables} {
		before, rest, ok := strings.Cut(page, begin)
		if !ok {
			continue
		}
		_, after, ok := strings.Cut(rest, end)
		if !ok {
			return "", fmt.Errorf("no %q after %q", end, begin)
		}
		text, err := made(results)
		return before + begin + "\n" + text + "\n" + end + after, err
	}
	return "", fmt.Errorf("neither %q nor %q is in it", someFigures, allTables)
}

// figures is the table in README. It has medians; bench/performance.md has their spreads.
func figures(results []measure.Result) (string, error) {
	var table strings.Builder
	table.WriteString("| | |\n|---|---|\n")
	for _, l := range lines {
		i := slices.IndexFunc(results, func(r measure.Result) bool { return r.Bench == l.bench })
		if i < 0 {
			return "", fmt.Errorf("there is no result of the benchmark %s", l.bench)
		}
		result := results[i]
		if result.Snapshot != network {
			return "", fmt.Errorf("%s: the snapshot is %q, but README tells of %s", l.bench, result.Snapshot, network)
		}
		i = slices.IndexFunc(result.Rows, func(row measure.Row) bool { return row.Measure == l.measure })
		if i < 0 {
			return "", fmt.Errorf("%s has no row %q", l.bench, l.measure)
		}
		row := result.Rows[i]
		fmt.Fprintf(&table, "| %s | %s |\n", l.text, measure.Text(row.Ours.Median, row.Unit))
	}
	return table.String(), nil
}

// tables are those of all results, each with a heading.
func tables(results []measure.Result) (string, error) {
	var text []string
	for _, r := range results {
		target, with := "bench-"+r.Bench, "with the snapshot of "+r.Snapshot
		switch {
		case r.Bench == "generate":
			target = "bench"
		case r.Snapshot == "":
			with = "with what it makes itself"
		}
		table := measure.Table{Rows: r.Rows}
		text = append(text, fmt.Sprintf("### make %s\n\n%s, commit %s, %s.\n%s with %d cores and %d GiB, %s.\n\n%s", target, r.Date, r.Commit, with,
			r.Machine.CPU, r.Machine.Cores, r.Machine.Memory, r.Machine.System, &table))
	}
	return strings.Join(text, "\n"), nil
}
