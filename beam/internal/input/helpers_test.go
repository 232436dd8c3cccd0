package input_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/transforms/stats"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"github.com/followpress/followpress/beam/internal/dofn"
	"github.com/followpress/followpress/beam/internal/input"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/snapshot"
)

func TestMain(m *testing.M) {
	flag.Parse()
	beam.Init()
	if !testing.Verbose() {
		slog.SetDefault(slog.New(slog.DiscardHandler)) // the runner logs much, and each error several times
	}
	os.Exit(m.Run())
}

func init() {
	dofn.Register2x0(&collectRows{})
	dofn.Register2x0(&collectCounts{})
}

// A pair is an element.
type pair struct {
	key   string
	value []byte
}

// A result is the output of a pipeline, whose workers are in this process.
type result struct {
	mu     sync.Mutex
	rows   map[string][]pair // by the name of the reader
	counts map[string]int64
	report summary.Report
}

var (
	results     sync.Map // by number
	lastOfThese atomic.Int64
)

func resultOf(number int64) *result {
	r, _ := results.Load(number)
	return r.(*result)
}

type collectRows struct {
	Result int64
	Name   string
}

func (c *collectRows) ProcessElement(key string, value []byte) {
	r := resultOf(c.Result)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows[c.Name] = append(r.rows[c.Name], pair{key, bytes.Clone(value)})
}

type collectCounts struct{ Result int64 }

func (c *collectCounts) ProcessElement(name string, n int64) {
	r := resultOf(c.Result)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[name] += n
}

// read reads a snapshot as the pipeline does. It calls meanwhile before the pipeline runs.
func read(t *testing.T, source input.Source, o input.Options, refreshed string, meanwhile func()) (*result, error) {
	t.Helper()
	tables, err := input.Open(t.Context(), source, o)
	if err != nil {
		return nil, err
	}
	events, eventsResult, err := tables.Events(t.Context())
	if err != nil {
		return nil, err
	}
	_, recommended, err := tables.Recommended(t.Context())
	if err != nil {
		return nil, err
	}
	number := lastOfThese.Add(1)
	r := &result{rows: map[string][]pair{}, counts: map[string]int64{}}
	results.Store(number, r)
	t.Cleanup(func() { results.Delete(number) })

	p, s := beam.NewPipelineWithRoot()
	readers := map[string]input.Rows{
		"lists": tables.Lists(s), "accounts": tables.Accounts(s), "records": tables.Records(s), "badges": tables.Badges(s, events),
	}
	if refreshed != "" {
		r.report.Refreshed = &summary.RefreshedReport{}
		readers["refreshed"] = tables.Refreshed(s, input.Source{Location: refreshed, Endpoint: source.Endpoint, Region: source.Region})
	}
	if tables.HasOps {
		_, opsAfter := tables.Digests(s)
		readers["ops"] = tables.Ops(s, opsAfter)
	}
	var counts, notes []beam.PCollection
	for name, reader := range readers {
		beam.ParDo0(s, &collectRows{number, name}, reader.Rows)
		counts, notes = append(counts, reader.Counts), append(notes, reader.Notes)
	}
	beam.ParDo0(s, &collectCounts{number}, stats.SumPerKey(s, beam.Flatten(s, counts...)))
	beam.ParDo0(s, &collectRows{number, "notes"}, input.First(s, notes...))
	meanwhile()
	if _, err := beam.Run(t.Context(), "prism", p); err != nil {
		return nil, err
	}
	first := map[string][][]byte{}
	for _, note := range r.rows["notes"] {
		first[note.key] = append(first[note.key], note.value)
	}
	tables.Fill(&r.report, eventsResult, recommended, r.counts, first)
	return r, nil
}

func nothing() {}

// mustRead is read for valid snapshots.
func mustRead(t *testing.T, source input.Source, o input.Options) *result {
	t.Helper()
	r, err := read(t, source, o, "", nothing)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func writeFile(t *testing.T, dir, name string, body []byte) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, body, 0o644); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// cut copies a snapshot of plain files, each cut at random into several files of random formats.
func cut(t *testing.T, from string, random *rand.Rand) (dir string) {
	t.Helper()
	dir = t.TempDir()
	writeFile(t, dir, "meta.json", readFile(t, filepath.Join(from, "meta.json")))
	for _, table := range append(snapshot.Tables(), snapshot.TableRecommended, snapshot.TableOps) {
		body, err := os.ReadFile(filepath.Join(from, string(table)+".ndjson"))
		if err != nil {
			continue
		}
		lines := bytes.SplitAfter(body, []byte("\n"))
		files := 1 + random.IntN(5)
		for i := range files {
			n := len(lines)
			if i < files-1 {
				n = random.IntN(n + 1)
			}
			ending, packed := pack(t, table, bytes.Join(lines[:n], nil), random)
			writeFile(t, dir, fmt.Sprintf("%s-%03d.%s", table, i, ending), packed)
			lines = lines[n:]
		}
	}
	return dir
}

// pack packs lines in a random format.
func pack(t *testing.T, table snapshot.Table, lines []byte, random *rand.Rand) (ending string, packed []byte) {
	t.Helper()
	var b bytes.Buffer
	switch random.IntN(4) {
	case 0:
		w := gzip.NewWriter(&b)
		if _, err := w.Write(lines); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return "ndjson.gz", b.Bytes()
	case 1:
		encoder, err := zstd.NewWriter(nil)
		if err != nil {
			t.Fatal(err)
		}
		return "ndjson.zst", encoder.EncodeAll(lines, nil)
	case 2:
		ok := false
		switch table {
		case snapshot.TableLists:
			ok = toParquet[parquetList](t, &b, lines)
		case snapshot.TableAccounts:
			ok = toParquet[parquetAccount](t, &b, lines)
		case snapshot.TableRecords:
			ok = toParquet[parquetRecord](t, &b, lines)
		case snapshot.TableBadges:
			ok = toParquet[parquetBadge](t, &b, lines)
		case snapshot.TableOps:
			ok = toParquet[parquetOp](t, &b, lines)
		}
		if ok {
			return "parquet", b.Bytes()
		}
	}
	return "ndjson", lines
}

type parquetList struct {
	TokenID string  `json:"token_id" parquet:"token_id"`
	Owner   string  `json:"owner" parquet:"owner"`
	User    *string `json:"user" parquet:"user,optional"`
}

type parquetAccount struct {
	Address string    `json:"address" parquet:"address"`
	Primary *string   `json:"primary_list" parquet:"primary_list,optional"`
	ENS     *jsonText `json:"ens" parquet:"ens,optional"`
}

// A jsonText is the text of a value.
type jsonText string

// UnmarshalJSON takes any value.
func (j *jsonText) UnmarshalJSON(b []byte) error {
	*j = jsonText(b)
	return nil
}

type parquetRecord struct {
	TokenID    string   `json:"token_id" parquet:"token_id"`
	Version    int32    `json:"version" parquet:"version"`
	RecordType string   `json:"record_type" parquet:"record_type"`
	Data       string   `json:"data" parquet:"data"`
	Tags       []string `json:"tags" parquet:"tags,list"`
	Added      *string  `json:"added" parquet:"added,optional"`
}

type parquetBadge struct {
	EventID string `json:"event_id" parquet:"event_id"`
	TokenID string `json:"token_id" parquet:"token_id"`
	Owner   string `json:"owner" parquet:"owner"`
}

type parquetOp struct {
	TokenID  string `json:"token_id" parquet:"token_id"`
	Time     string `json:"time" parquet:"time"`
	ChainID  int64  `json:"chain_id" parquet:"chain_id"`
	Block    int64  `json:"block" parquet:"block"`
	LogIndex int32  `json:"log_index" parquet:"log_index"`
	Op       string `json:"op" parquet:"op"`
}

// toParquet returns false for lines that are not rows.
func toParquet[T any](t *testing.T, b *bytes.Buffer, lines []byte) bool {
	t.Helper()
	var rows []T
	for line := range strings.Lines(string(lines)) {
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.DisallowUnknownFields()
		var row T
		if decoder.Decode(&row) != nil {
			return false
		}
		rows = append(rows, row)
	}
	w := parquet.NewGenericWriter[T](b)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return true
}
