package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/followpress/followpress/fixtures"
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

// TestLimits: changes beyond the limits are counted; those within stay exact.
func TestLimits(t *testing.T) {
	t.Parallel()
	accounts := newCounter[site.Address](2)
	for i := range 10 {
		accounts.add(site.Address{byte(i % 5)}, 1, 0)
	}
	accounts.add(site.Address{9}, 0, 3)
	if got := accountsOf(&accounts); got.Changed != 2 || got.NotCounted != 9 || len(got.Gained) != 2 || got.Gained[0].Follows != 2 {
		t.Errorf("accounts: got %+v", got)
	}

	tags := newCounter[string](2)
	long := `"` + strings.Repeat("x", maxTag) + `"`
	for _, change := range [][2]string{{``, `["a","b"]`}, {`["a","c"]`, `["b"]`}, {``, `[` + long + `]`}, {`["a"]`, `["a"]`}} {
		countTags(&tags, []byte(change[0]), []byte(change[1]))
	}
	got := tagsOf(&tags)
	if got.Changed != 2 || got.NotCounted != 2 || len(got.More) != 1 || got.More[0] != (TagChange{"b", 2, 0}) || len(got.Less) != 0 {
		t.Errorf("tags: got %+v", got)
	}

	profiles := newProfileCounter(2)
	for i := range 4 {
		profiles.add(site.Address{byte(i)}, shownBy{changed: []Text{"name"}}, ProfileChange{Address: Text(rune('a' + i))})
	}
	profiles.add(site.Address{0}, shownBy{primary: true, changed: []Text{"avatar"}}, ProfileChange{Address: "a", AvatarTo: "x"})
	if got := profiles.result(); got.Changed != 2 || got.NotCounted != 2 || got.Names != 1 || got.Avatars != 1 || got.Examples[0].AvatarTo != "x" {
		t.Errorf("profiles: got %+v", got)
	}
}

// TestShorten: texts are cut between characters.
func TestShorten(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]Text{
		"": "", "a": "a", "\xff": "\uFFFD", strings.Repeat("é", 100): Text(strings.Repeat("é", 100)), "x" + strings.Repeat("é", 100): Text("x" + strings.Repeat("é", 99) + "…"),
	} {
		if got := shorten(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// FuzzMarkdown: no text becomes markup of Markdown.
func FuzzMarkdown(f *testing.F) {
	for _, seed := range []string{"", "a|b", "<b>", "`x`", "www.x.y", "\u202e", "\u2069]("} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := markdown(plain(text))
		if strings.ContainsAny(got, "|<>`*_[]()!\\~^$@/:\"'\r\n\u202e\u202d\u2066\u2067") || strings.Contains(strings.ToLower(got), "www.") {
			t.Errorf("%q: got %q", text, got)
		}
		if strings.Count(got, "\u2068") > 1 || strings.Count(got, "\u2068") != strings.Count(got, "\u2069") {
			t.Errorf("%q: got unbalanced isolates in %q", text, got)
		}
	})
}

// TestHugeObject: an object that claims to be larger than any of ours is refused before it is read.
func TestHugeObject(t *testing.T) {
	t.Parallel()
	s := &source{name: "new"} // reading its site would panic
	_, err := s.read(t.Context(), site.Entry{Key: "api/v1/lists/1/records", Size: 1 << 40})
	if err == nil || !strings.HasPrefix(err.Error(), "new: api/v1/lists/1/records: 1099511627776 bytes, expected at most 268435456: ") {
		t.Errorf("got %v", err)
	}
}

// TestPlain: texts are shown as in the shared cases, which the explorer also follows.
func TestPlain(t *testing.T) {
	t.Parallel()
	var cases []struct{ In, Prose, Name string }
	if err := json.Unmarshal(fixtures.Texts(), &cases); err != nil || len(cases) < 40 {
		t.Fatalf("got %d cases: %v", len(cases), err)
	}
	for _, c := range cases {
		if got := plain(c.In); string(got) != c.Name || got.String() != c.Name || Text(c.In).String() != c.Name {
			t.Errorf("%q: got %q, want %q", c.In, got, c.Name)
		}
	}
}

// TestTemplatesGetTexts: all texts that templates receive are Texts; other strings are our own constants.
func TestTemplatesGetTexts(t *testing.T) {
	t.Parallel()
	own := []reflect.Type{
		reflect.TypeFor[Text](), reflect.TypeFor[id](), reflect.TypeFor[class](), reflect.TypeFor[site.Board](),
	}
	seen := map[reflect.Type]bool{}
	texts := 0
	var walk func(path string, of reflect.Type)
	walk = func(path string, of reflect.Type) {
		switch of.Kind() {
		case reflect.String:
			if texts++; !slices.Contains(own, of) {
				t.Errorf("%s is a %s, want a Text", path, of)
			}
		case reflect.Pointer, reflect.Slice, reflect.Array:
			walk(path, of.Elem())
		case reflect.Map, reflect.Interface:
			t.Errorf("%s is a %s, whose texts this test cannot check", path, of)
		case reflect.Struct:
			if seen[of] {
				return
			}
			seen[of] = true
			for f := range of.Fields() {
				walk(path+"."+f.Name, f.Type)
			}
		}
	}
	walk("report", reflect.TypeFor[view]())
	walk("change", reflect.TypeFor[fromTo]())
	if texts < 30 {
		t.Errorf("found %d texts", texts)
	}
}
