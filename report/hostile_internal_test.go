package report

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/shards"
	"github.com/followpress/followpress/storage"
)

// allocated returns the number of bytes that f allocates, including freed ones. It runs alone.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// one is a site with one object.
type one []byte

func (o one) GetAdmitted(ctx context.Context, _ site.Key, admit func(context.Context, int64) error) ([]byte, error) {
	return o, admit(ctx, int64(len(o)))
}

// TestHostileMemory: JSON that is small but expands when decoded is rejected, or only counted.
func TestHostileMemory(t *testing.T) {
	shard := []byte(`{"shard":"0","objects":[{}` + strings.Repeat(",{}", 1<<20) + `]}`)
	s := &source{site: storage.Retrying{From: one(shards.Pack(shard))}, name: "new", root: site.Root{Format: site.Format, ShardDigits: 1, Manifest: map[string]site.SHA256{"0": site.Sum256(shard)}}}
	if err := s.openManifest(t.Context()); err != nil {
		t.Fatal(err)
	}
	board := []byte(`[{}` + strings.Repeat(",{}", 1<<20) + `]`)
	row := []byte(`[{"a":0` + strings.Repeat(`,"a":0`, 1<<20) + `}]`)
	var tags bytes.Buffer
	for i := range 1 << 18 {
		fmt.Fprintf(&tags, `,"%x"`, i)
	}
	tags.Bytes()[0] = '['
	tags.WriteByte(']')
	counter := newCounter[string](10)
	for name, test := range map[string]struct {
		read func() error
		size int
	}{
		"shard": {func() error { _, err := s.shard(t.Context(), "0"); return err }, len(shard)},
		"board": {func() error { _, err := decodeBoard(board, 100); return err }, len(board)},
		"row":   {func() error { _, err := decodeBoard(row, 100); return err }, len(row)},
		"tags":  {func() error { countTags(&counter, nil, tags.Bytes()); return nil }, tags.Len()},
	} {
		var err error
		if n := allocated(func() { err = test.read() }); n > int64(test.size)+1<<20 { // a shard has to be unpacked
			t.Errorf("%s of %d bytes: reading it took %d", name, test.size, n)
		}
		if name != "tags" && !errors.Is(err, site.ErrMalformed) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if got := tagsOf(&counter); got.NotCounted != 1 || got.Changed != 0 {
		t.Errorf("tags: got %+v", got)
	}
}

// TestBoardIsWhole: a leaderboard is rejected unless it was read completely.
func TestBoardIsWhole(t *testing.T) {
	t.Parallel()
	row := func(n byte) string {
		return fmt.Sprintf(`{"rank":%d,"address":"%s","followers_count":"7"}`, n, site.Address{n})
	}
	for body, want := range map[string]int{
		`[]`: 0, `[` + row(1) + `]`: 1, `[` + row(1) + `,` + row(2) + `]`: 2,
		`[` + row(1) + `,` + row(2) + `,` + row(3) + `]`: -1, `[` + row(1) + `,` + row(1) + `]`: -1, `[` + row(1) + `,`: -1,
		``: -1, `{}`: -1, `[` + row(1) + `]]`: -1, `[` + row(1) + ` ]`: -1, `[7]`: -1, `[]` + row(1): -1, `[` + row(0) + `]`: -1,
	} {
		places, err := decodeBoard([]byte(body), 2)
		if want < 0 && !errors.Is(err, site.ErrMalformed) || want >= 0 && (err != nil || len(places) != want) {
			t.Errorf("%s: got %v (%v)", body, places, err)
		}
	}
}

// TestTokenIsCopied: a retained token ID does not keep the text of its shard alive.
func TestTokenIsCopied(t *testing.T) {
	t.Parallel()
	c := &comparison{config: site.Config{BasePath: "api/v1"}}
	key := "api/v1/lists/17/details"
	at := strings.Index(key, "17")
	if got := c.tokenOf(site.Key(key)); got != "17" || unsafe.StringData(got) == unsafe.StringData(key[at:]) {
		t.Errorf("got %q, which aliases the key", got)
	}
}

// TestParse: a saved report has only values that are safe to show.
func TestParse(t *testing.T) {
	t.Parallel()
	const good = `{"format":1,"date":"2026-11-22","brand":{"colour":"#0b5cad","home":"https://a.example/"},"from":{"as_of":"2026-11-21T00:00:00Z"},"to":{"as_of":"2026-11-22T00:00:00Z"},` +
		`"accounts":{"gained":[{"address":"0x0100000000000000000000000000000000000000"}]},"boards":[{"board":"followers"}]}`
	if _, err := Parse([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"format":1`, `"format":2`}, {`2026-11-22"`, `2026-11-32"`}, {`2026-11-21T00:00:00Z`, "2026\\n# x"}, {`2026-11-22T00:00:00Z`, ""},
		{`0x01000000`, `[x](http:)`}, {`"followers"`, `"<img>"`}, {`#0b5cad`, `red;}*{`}, {`https:`, `javascript:`}, {good, `null`}, {good, good + "x"},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if _, err := Parse([]byte(bad)); err == nil || !strings.HasPrefix(err.Error(), "read the report: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v", bad, err)
		}
	}
}
