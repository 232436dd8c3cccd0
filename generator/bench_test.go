package generator_test

import (
	"bytes"
	"sync"
	"testing"

	"github.com/followpress/followpress/fixtures/graph"
	"github.com/followpress/followpress/generator"
)

var bench struct {
	once     sync.Once
	snapshot snapshot
}

// benchSnapshot returns a graph of a hundred thousand records, made once.
func benchSnapshot(b *testing.B) snapshot {
	b.Helper()
	bench.once.Do(func() {
		bench.snapshot = syntheticSnapshot(b, graph.Options{Accounts: 15_000, Lists: 12_000, Records: 100_000, Seed: 1})
	})
	return bench.snapshot
}

func loadBench(b *testing.B) generator.Graph {
	b.Helper()
	g, err := generator.Load(b.Context(), benchSnapshot(b).fs(), 2)
	if err != nil {
		b.Fatal(err)
	}
	return g
}

// BenchmarkParseRecord parses the rows of the table records one by one.
func BenchmarkParseRecord(b *testing.B) {
	table := []byte(benchSnapshot(b)["records.ndjson"])
	b.SetBytes(int64(len(table)))
	for b.Loop() {
		rows := 0
		for line := range bytes.Lines(table) {
			if _, _, _, err := generator.ParseRecord(bytes.TrimSuffix(line, []byte("\n")), false); err != nil {
				b.Fatal(err)
			}
			rows++
		}
		b.ReportMetric(float64(rows), "rows/op")
	}
}

// BenchmarkLoad reads a whole snapshot into a graph.
func BenchmarkLoad(b *testing.B) {
	s := benchSnapshot(b)
	size := 0
	for _, text := range s {
		size += len(text)
	}
	b.SetBytes(int64(size))
	files := s.fs()
	for b.Loop() {
		if _, err := generator.Load(b.Context(), files, 2); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRank counts and ranks all accounts of a graph.
func BenchmarkRank(b *testing.B) {
	g := loadBench(b)
	for b.Loop() {
		if err := g.Rank(b.Context(), 2); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRenderList renders the records, details, badges, first page and search
// shards of the longest list.
func BenchmarkRenderList(b *testing.B) {
	g := loadBench(b)
	render, err := g.ListRenderer(b.Context(), g.LongestList())
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(render()))
	for b.Loop() {
		render()
	}
}

// BenchmarkToMemory makes a whole site in memory.
func BenchmarkToMemory(b *testing.B) {
	files := benchSnapshot(b).fs()
	for b.Loop() {
		_, report, err := generator.ToMemory(b.Context(), files, generator.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(report.Counts.Bytes)
		b.ReportMetric(float64(report.Counts.Objects), "objects/op")
	}
}

// BenchmarkTarPiece formats and writes a piece of a tar file, of objects of the usual size.
func BenchmarkTarPiece(b *testing.B) {
	const n = 1000
	body := bytes.Repeat([]byte("x"), 600)
	write, err := generator.NewTarPieces(n, "api/v1/lists/12345/details", body)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(n * int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if err := write(); err != nil {
			b.Fatal(err)
		}
	}
}
