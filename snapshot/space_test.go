package snapshot_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"

	"github.com/followpress/followpress/snapshot"
)

// linesOf reads the table lists, and returns the lines of its rows, the invalid lines, and the
// error.
func linesOf(t *testing.T, name, body string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, dir, name, body)
	var lines []string
	err := snapshot.Reader[snapshot.List]{Snapshot: files(dir), Workers: 1, Done: func(b snapshot.Block[snapshot.List]) error {
		return b.Each(func(r snapshot.Row[snapshot.List]) error { lines = append(lines, fmt.Sprint(r.Line)); return nil },
			func(e *snapshot.RowError) error { lines = append(lines, e.Error()); return nil })
	}}.Table(t.Context(), snapshot.TableLists, snapshot.ParseList)
	return strings.Join(lines, ", "), err
}

// Around a row there may be the white space of JSON, and before the first one of a file a byte order mark; nothing else.
func TestSpaceAroundRows(t *testing.T) {
	const mark = "\ufeff"
	row := func(n int) string { return strings.TrimSuffix(partRows(n, 1), "\n") }
	for name, c := range map[string]struct{ body, want string }{
		"white space":                  {" \t" + row(1) + " \r\n\n\r\n" + row(2), "1, 4"},
		"a byte order mark":            {mark + row(1) + "\n" + row(2), "1, 2"},
		"a byte order mark, alone":     {mark, ""},
		"two byte order marks":         {mark + mark + row(1), "lists.ndjson:1: not a JSON object"},
		"a byte order mark further on": {row(1) + "\n" + mark + row(2), "1, lists.ndjson:2: not a JSON object"},
		"UTF-16":                       {"\xff\xfe{\x00}\x00", "lists.ndjson:1: not valid UTF-8"},
		"a space that is no space":     {"\u00a0" + row(1), "lists.ndjson:1: not a JSON object"},
		"a line of no spaces":          {"\u00a0\n" + row(1), "lists.ndjson:1: not a JSON object, 2"},
		"a form feed":                  {"\f" + row(1), "lists.ndjson:1: not a JSON object"},
	} {
		if got, err := linesOf(t, "lists.ndjson", c.body); got != c.want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, c.want)
		}
	}
	for _, after := range []string{"\u00a0", "\v", "x"} {
		if got, err := linesOf(t, "lists.ndjson", row(1)+after); err != nil || !strings.HasPrefix(got, "lists.ndjson:1: ") {
			t.Errorf("%q after a row: got %q, %v, want an error", after, got, err)
		}
	}
}

// Zero bytes may follow the last member of a gzip file; gzip -t accepts them.
func TestZerosAfterGzip(t *testing.T) {
	member := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	one, two, zeros := member(partRows(1, 2)), member(partRows(3, 1)), strings.Repeat("\x00", 10_000)
	for name, c := range map[string]struct {
		body, want string
		good       bool
	}{
		"none":                  {one, "1, 2", true},
		"two members":           {one + two, "1, 2, 3", true},
		"an empty member":       {one + member("") + two, "1, 2, 3", true},
		"zeros":                 {one + two + zeros, "1, 2, 3", true},
		"zeros between members": {one + zeros + two, "", false},
		"something else":        {one + "x", "", false},
		"zeros alone":           {zeros, "", false},
		"cut off":               {one + two[:len(two)-3], "", false},
	} {
		if got, err := linesOf(t, "lists.ndjson.gz", c.body); (err == nil) != c.good || c.good && got != c.want {
			t.Errorf("%s: got %q, %v, want %q, good: %v", name, got, err, c.want, c.good)
		}
	}
}
