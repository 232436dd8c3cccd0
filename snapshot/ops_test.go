package snapshot_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures/worst"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/op"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/snapshot/memory"
)

func follow(a site.Address) []byte { return op.Append(nil, op.Follow, a, "") }

// manyOps are rows of ops in their order, with everything that one may have.
func manyOps(g *rand.Rand, n int) (ops []snapshot.Op) {
	for range n {
		code := op.Code(1 + g.IntN(4))
		tag := ""
		if code == op.Tag || code == op.Untag {
			tag = []string{"top8", "block", "é \u2028 \"\\\n", strings.Repeat("x", 255)}[g.IntN(4)]
		}
		o := snapshot.Op{
			TokenID: []string{"0", "9", "10", "1" + strings.Repeat("0", 77)}[g.IntN(4)], Time: int64(g.IntN(3)) * 999,
			Chain: []uint64{1, 10, math.MaxUint64}[g.IntN(3)], Block: g.Uint64() >> (63 * g.IntN(2)), LogIndex: g.Uint32N(3),
			Op: op.Append(nil, code, site.Address{byte(g.IntN(5))}, tag),
		}
		if g.IntN(10) == 0 {
			o.Op = append([]byte{1, 1, 9, 9}, make([]byte, 1+g.IntN(100))...)
		}
		ops = append(ops, o)
	}
	slices.SortFunc(ops, func(a, b snapshot.Op) int { return a.Compare(&b) })
	return slices.CompactFunc(ops, func(a, b snapshot.Op) bool { return a.Compare(&b) == 0 })
}

// TestOps: rows are the same from one file, from parts, and from memory, and in the form that is documented.
func TestOps(t *testing.T) {
	want := manyOps(rand.New(rand.NewPCG(1, 1)), 20_000)
	dir := filepath.Join(t.TempDir(), "snapshot")
	from := time.UnixMilli(1_770_249_600_000)
	w := create(t, dir, snapshot.WriteOptions{Compression: "none", NoSync: true})
	if err := errors.Join(each(want, w.WriteOp), w.Commit(snapshot.Meta{AsOf: memoryTime, OpsFrom: &from})); err != nil {
		t.Fatal(err)
	}
	got, err := readOps(t, files(dir), "")
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got other rows and the error %v", err)
	}
	if at, err := snapshot.ReadOpsFrom(files(dir)); err != nil || at != "2026-02-05T00:00:00Z" {
		t.Errorf("ops_from: got %q and the error %v", at, err)
	}

	rows, err := memory.OpRows(want)
	if err != nil {
		t.Fatal(err)
	}
	held, err := snapshot.NewMemory(asOf, map[snapshot.Table][]memory.Piece{snapshot.TableOps: {rows.Piece()}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := readOps(t, held, ""); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("in memory: got other rows and the error %v", err)
	}

	parts := t.TempDir()
	for i, some := range slices.Collect(slices.Chunk(want, 9000)) {
		rows, err := memory.OpRows(some)
		if err != nil {
			t.Fatal(err)
		}
		part, err := snapshot.NewMemory(asOf, map[snapshot.Table][]memory.Piece{snapshot.TableOps: {rows.Piece()}})
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, parts, fmt.Sprintf("ops-%d.ndjson", i), contentOf(t, part, "ops.ndjson"))
	}
	if got, err := readOps(t, files(parts), ""); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("in parts: got other rows and the error %v", err)
	}
	if got, err := readOps(t, files(parts), "ops-1.ndjson"); err != nil || !reflect.DeepEqual(got, want[9000:min(18000, len(want))]) {
		t.Errorf("one part: got other rows and the error %v", err)
	}
	swap(t, filepath.Join(parts, "ops-0.ndjson"), filepath.Join(parts, "ops-1.ndjson"))
	var refused *snapshot.RowError
	if _, err := readOps(t, files(parts), ""); !errors.As(err, &refused) || refused.File != "ops-1.ndjson" || refused.Line != 1 {
		t.Errorf("parts in the wrong order: got %v, want an error that names the first row of the second", err)
	}

	line, err := memory.OpRows([]snapshot.Op{{TokenID: "7", Time: 1_793_445_753_000, Chain: 8453, Block: 23456789, LogIndex: 12, Op: op.Append(nil, op.Tag, site.Address{0xab}, "top8")}})
	if err != nil {
		t.Fatal(err)
	}
	one, err := snapshot.NewMemory(asOf, map[snapshot.Table][]memory.Piece{snapshot.TableOps: {line.Piece()}})
	if err != nil {
		t.Fatal(err)
	}
	const documented = `{"token_id":"7","time":"2026-10-31T11:22:33Z","chain_id":8453,"block":23456789,"log_index":12,"op":"0x01030101ab00000000000000000000000000000000000000746f7038"}` + "\n"
	if got := contentOf(t, one, "ops.ndjson"); got != documented {
		t.Errorf("got %s, want %s", got, documented)
	}
}

func contentOf(t *testing.T, snap interface {
	Open(string) (afero.File, error)
}, name string) string {
	t.Helper()
	file, err := snap.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func swap(t *testing.T, a, b string) {
	t.Helper()
	if err := errors.Join(os.Rename(a, a+"x"), os.Rename(b, a), os.Rename(a+"x", b)); err != nil {
		t.Fatal(err)
	}
}

// TestOpsMayBeMissing: the table is there if it has rows, or if it was begun.
func TestOpsMayBeMissing(t *testing.T) {
	for _, begun := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "snapshot")
		w, held := create(t, dir, fast), snapshot.InMemory()
		if begun {
			if err := errors.Join(w.Begin(snapshot.TableOps), held.Begin(snapshot.TableOps)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Commit(asOf); err != nil {
			t.Fatal(err)
		}
		err := snapshot.CheckTable(files(dir), snapshot.TableOps)
		if begun && err != nil || !begun && !errors.Is(err, snapshot.ErrNoTable) {
			t.Errorf("begun %v: got %v", begun, err)
		}
		if _, ok, err := held.Rows(snapshot.TableOps); err != nil || ok != begun {
			t.Errorf("begun %v, in memory: got %v, %v", begun, ok, err)
		}
	}
	if err := snapshot.InMemory().Begin("follows"); err == nil {
		t.Error("a table that does not exist: got no error")
	}
}

const goodOp = `{"token_id":"7","time":"2026-10-31T11:22:33Z","chain_id":1,"block":2,"log_index":3,"op":"0x01010101` + `00000000000000000000000000000000000000aa"}`

// TestHostileOps: the reader, the copier and the writer reject invalid, unsorted and repeated rows with file and row.
// The others are read.
func TestHostileOps(t *testing.T) {
	with := func(from, to string) string {
		if !strings.Contains(goodOp, from) {
			t.Fatal(from)
		}
		return strings.Replace(goodOp, from, to, 1)
	}
	tagged := func(tag string) string {
		return with(`"0x0101`, `"0x0103`)[:len(goodOp)-2] + fmt.Sprintf(`%x"}`, tag)
	}
	for name, c := range map[string]struct{ row, want string }{
		"no object":               {"7", "not a JSON object"},
		"no token":                {with(`"token_id":"7"`, `"x":0`), "token_id"},
		"token":                   {with(`"7"`, `"07"`), `token_id: "07" is not a canonical decimal`},
		"no time":                 {with(`"time"`, `"at"`), "time: missing"},
		"time":                    {with(`2026-10-31T11`, `2026-10-31T25`), "time: "},
		"time null":               {with(`"2026-10-31T11:22:33Z"`, `null`), "time: missing"},
		"no chain":                {with(`"chain_id"`, `"chain"`), "chain_id: missing"},
		"chain":                   {with(`"chain_id":1`, `"chain_id":18446744073709551616`), "chain_id"},
		"negative block":          {with(`"block":2`, `"block":-2`), "block"},
		"no block":                {with(`"block"`, `"b"`), "block: missing"},
		"log":                     {with(`"log_index":3`, `"log_index":4294967296`), "log_index"},
		"no log":                  {with(`"log_index"`, `"log"`), "log_index: missing"},
		"no op":                   {with(`"op"`, `"operation"`), "op: missing"},
		"not hexadecimal":         {with(`"0x01`, `"0xzz`), "op: "},
		"no bytes":                {with(`"0x01010101`+strings.Repeat("0", 38)+`aa"`, `"0x"`), "op: operation without data"},
		"another version":         {with(`"0x01`, `"0x02`), "op: operation of another version"},
		"an unknown code":         {with(`"0x0101`, `"0x0105`), "op: operation with an unknown code"},
		"a short address":         {with(`aa"}`, `"}`), "op: address record that does not have 22 bytes"},
		"an empty tag":            {tagged(""), "op: empty tag"},
		"a tag that is not UTF-8": {tagged("a\xff"), "op: tag that is not UTF-8"},
		"a tag with NUL":          {tagged("a\x00"), "op: tag with a NUL"},
		"a long tag":              {tagged(strings.Repeat("x", 256)), "op: tag of more than 255 bytes"},
		"a long operation":        {with(`0101`, `0109`+strings.Repeat("00", op.MaxBytes)), "op: more than 65536 bytes"},
		"earlier":                 {with(`11:22:33`, `11:22:31`), "list 7 comes after 2026-10-31T11:22:32Z, chain 1, block 2, log 3, list 7: sort the rows"},
		"twice":                   {with(`11:22:33`, `11:22:32`), "a second row of 2026-10-31T11:22:32Z, chain 1, block 2, log 3, list 7"},
	} {
		before, after := with(`11:22:33`, `11:22:32`), with(`11:22:33`, `11:22:34`)
		dir := t.TempDir()
		writeFile(t, dir, "ops.ndjson", before+"\n\n"+c.row+"\n"+after+"\n")
		var refused []string
		rows := 0
		err := snapshot.Reader[int]{Snapshot: files(dir), Workers: 2, Done: func(b snapshot.Block[int]) error {
			rows += len(b.Rows)
			for _, e := range b.Invalid {
				refused = append(refused, e.Error())
			}
			return nil
		}}.Ops(t.Context(), func(*snapshot.Op) (int, error) { return 0, nil })
		if err != nil || rows != 2 || len(refused) != 1 || !strings.HasPrefix(refused[0], "ops.ndjson:3: ") || !strings.Contains(refused[0], c.want) {
			t.Errorf("%s: got %d rows, %q and the error %v, want 2 rows, and %q", name, rows, refused, err, c.want)
		}
		w := create(t, filepath.Join(t.TempDir(), "snapshot"), fast)
		if err := w.CopyTable("ops", filepath.Join(dir, "ops.ndjson")); err == nil || !strings.Contains(err.Error(), "ops.ndjson:3: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, copied: got %v, want %q", name, err, c.want)
		}
	}
	w := create(t, filepath.Join(t.TempDir(), "snapshot"), fast)
	good := snapshot.Op{TokenID: "9", Time: 5, Op: follow(site.Address{})}
	if err := w.WriteOp(good); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*snapshot.Op)
		want   string
	}{
		"token":            {func(o *snapshot.Op) { o.TokenID = "" }, "token_id"},
		"time":             {func(o *snapshot.Op) { o.Time = math.MaxInt64 }, "RFC 3339"},
		"no bytes":         {func(o *snapshot.Op) { o.Op = nil }, "operation without data"},
		"a long operation": {func(o *snapshot.Op) { o.Op = append([]byte{1, 1, 9, 9}, make([]byte, op.MaxBytes)...) }, "op: 65540 bytes, more than 65536"},
		"earlier":          {func(o *snapshot.Op) { o.Time-- }, "comes after"},
		"a lower token":    {func(o *snapshot.Op) { o.TokenID = "8" }, "comes after"},
		"twice":            {func(o *snapshot.Op) {}, "a second row"},
	} {
		o := good
		c.change(&o)
		if err := w.WriteOp(o); err == nil || !strings.Contains(err.Error(), "ops.ndjson.zst:2: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, written: got %v, want %q", name, err, c.want)
		}
		if _, err := memory.OpRows([]snapshot.Op{good, o}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, in memory: got %v, want %q", name, err, c.want)
		}
	}
	good.TokenID = "10" // after 9
	if err := w.WriteOp(good); err != nil {
		t.Error(err)
	}
}

// TestOpsOutOfOrder: for files in any order, the rows read are in order, even across blocks.
func TestOpsOutOfOrder(t *testing.T) {
	g := rand.New(rand.NewPCG(2, 2))
	var text strings.Builder
	var want []int64
	last, lines := int64(-1), 20_000 // enough rows for several blocks
	for i := range lines {
		at := int64(i)
		if g.IntN(5) == 0 {
			at = g.Int64N(int64(lines))
		}
		rows, err := memory.OpRows([]snapshot.Op{{TokenID: "1", Time: at * 1000, Op: follow(site.Address{})}})
		if err != nil {
			t.Fatal(err)
		}
		one, err := snapshot.NewMemory(asOf, map[snapshot.Table][]memory.Piece{snapshot.TableOps: {rows.Piece()}})
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString(contentOf(t, one, "ops.ndjson"))
		if at > last {
			want, last = append(want, at), at
		}
	}
	dir := t.TempDir()
	writeFile(t, dir, "ops.ndjson", text.String())
	var got []int64
	refused, blocks, completed := 0, 0, 0
	err := snapshot.Reader[int64]{Snapshot: files(dir), Workers: 2, Complete: func(rows []snapshot.Row[int64]) func() error {
		return func() error {
			completed += len(rows)
			return nil
		}
	},
		Done: func(b snapshot.Block[int64]) error {
			blocks++
			for _, r := range b.Rows {
				got = append(got, r.Value)
			}
			return b.Take(func(*snapshot.RowError) error { refused++; return nil })
		}}.Ops(t.Context(), func(o *snapshot.Op) (int64, error) { return o.Time / 1000, nil })
	if err != nil || !slices.Equal(got, want) || len(got)+refused != lines || completed != len(got) || blocks < 2 {
		t.Errorf("got %d rows and %d invalid ones of %d in %d blocks, and the error %v; want %d rows", len(got), refused, lines, blocks, err, len(want))
	}
}

// TestHostileOpsOfParquet: the same holds for Parquet, and unusual rows are read as from JSON.
func TestHostileOpsOfParquet(t *testing.T) {
	type row struct {
		TokenID  string  `parquet:"token_id"`
		Time     *string `parquet:"time,optional"`
		Chain    *int64  `parquet:"chain_id,optional"`
		Block    uint64  `parquet:"block"`
		LogIndex int64   `parquet:"log_index"`
		Op       []byte  `parquet:"op"`
	}
	at, chain, minus := "2026-10-31T11:22:33+00:00", int64(1), int64(-1)
	good := row{"7", &at, &chain, math.MaxUint64, 3, []byte("0x0101010100000000000000000000000000000000000000aa")}
	for name, c := range map[string]struct {
		change func(*row)
		want   string
	}{
		"good":             {func(*row) {}, ""},
		"no time":          {func(r *row) { r.Time = nil }, "time: missing"},
		"time":             {func(r *row) { r.Time = &good.TokenID }, "time: "},
		"no chain":         {func(r *row) { r.Chain = nil }, "chain_id: missing"},
		"negative chain":   {func(r *row) { r.Chain = &minus }, "chain_id"},
		"log":              {func(r *row) { r.LogIndex = 1 << 32 }, "log_index"},
		"bytes":            {func(r *row) { r.Op = []byte{1, 1, 9, 9, 9} }, "op: "},
		"a long operation": {func(r *row) { r.Op = fmt.Appendf(nil, "0x01010909%x", make([]byte, 10<<20)) }, "more than"},
	} {
		dir := t.TempDir()
		r := good
		c.change(&r)
		writeFile(t, dir, "ops.parquet", string(parquetOf(t, []row{r}, 1)))
		got, err := readOps(t, files(dir), "")
		if c.want == "" {
			if err != nil || len(got) != 1 || got[0].Block != math.MaxUint64 || got[0].Time != 1_793_445_753_000 {
				t.Errorf("%s: got %+v and the error %v", name, got, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), "ops.parquet:1: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	dir := t.TempDir()
	writeFile(t, dir, "ops.parquet", string(parquetOf(t, []parquetRecommended{{}}, 1, parquet.Compression(&parquet.Snappy))))
	if err := snapshot.CheckTable(files(dir), snapshot.TableOps); err == nil || !strings.Contains(err.Error(), "column token_id: missing") {
		t.Errorf("a table of other columns: got %v", err)
	}
}

// TestWorstOps: a row of hostile size takes memory in proportion to the limit of rows.
func TestWorstOps(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "ops.ndjson", strings.TrimSuffix(goodOp, `"}`)+strings.Repeat("00", 7<<20)+`"}`)
	worst.Check(t, "a long operation", 96<<20, func() {
		if _, err := readOps(t, files(dir), ""); err == nil || !strings.Contains(err.Error(), "ops.ndjson:1: op: more than 65536 bytes") {
			t.Errorf("got %v, want that the operation is too long", err)
		}
	})
}
