package site_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/internal/twin/answers"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/scan"
)

func TestShardHeader(t *testing.T) {
	h := scan.ShardHeader{List: largestTokenID, Total: 2345, Shard: 2, Shards: 3, ShardSize: 1000}
	start := string(h.Append([]byte("x")))[1:]
	equal(t, "header", start,
		`{"list":"`+largestTokenID+`","total":2345,"shard":2,"shards":3,"shard_size":1000,"entries":[`)
	random := newRandom()
	for range 200 {
		entries := randomEntries(random)
		h := scan.ShardHeader{List: fmt.Sprint(random.Uint64()), Total: random.IntN(5000), Shard: random.IntN(5), Shards: 5, ShardSize: 1000}
		shard := encodeShard(t, h, entries)
		again, err := scan.ParseShardHeader([]byte(shard))
		if err != nil || again != h {
			t.Fatalf("ParseShardHeader(%s): got %+v, %v, want the encoded header", shard, again, err)
		}
		checkEntries(t, shard, entries)
	}
}

func TestParseShardHeaderRefuses(t *testing.T) {
	for _, shard := range []string{
		"", "null", "{}", "<html>", `{"following":[]}`, `{"records":[]}`, `,"entries":[]}`,
		`{"list":"1","total":20,"shard":0,"shards":1,"shard_size":1000`,
		`{"list":"1","total":20,"shard":0,"shards":1,"shard_size":1000,`,
		`{"list":1,"total":20,"shard":0,"shards":1,"shard_size":1000,"entries":[]}`,
		`{"list":"1","total":"20","shard":0,"shards":1,"shard_size":1000,"entries":[]}`,
		`{"list":"1","total":20,"shard":-1,"shards":1,"shard_size":1000,"entries":[]}`,
		`{"list":"1","total":20,"shard":1,"shards":1,"shard_size":1000,"entries":[]}`,
		`{"list":"1","total":20,"shard":0,"shards":0,"shard_size":1000,"entries":[]}`,
		`{"list":"1","total":20,"shard":0,"shards":1,"shard_size":0,"entries":[]}`,
		`{"list":"1","total":0,"shard":0,"shards":1,"shard_size":0,"entries":[]}`,
		`{"list":"1","total":1001,"shard":0,"shards":1,"shard_size":1000,"entries":[]}`,
		`{"bucket":"0","users":{"alice.eth":"1"}}`,
	} {
		if h, err := scan.ParseShardHeader([]byte(shard)); !errors.Is(err, site.ErrMalformed) || h != (scan.ShardHeader{}) {
			t.Errorf("ParseShardHeader(%s): got %+v, %v, want ErrMalformed", shard, h, err)
		}
	}
}

// Entries have the bytes that the endpoint returns, regardless of their texts.
func TestEntries(t *testing.T) {
	random := newRandom()
	for range 500 {
		entries, records := randomEntries(random), randomRecords(random)
		checkEntries(t, encode(t, answers.FollowingPage{Following: entries}), entries)
		checkEntries(t, encode(t, answers.ListRecords{Records: records}), records)
	}
	for _, none := range []string{"", "{}", "[]", "null", site.EmptySearch, `{"records":[]}`, "]}", `]}[{"version":`} {
		for range scan.Entries([]byte(none)) {
			t.Errorf("%s: got an entry, want none", none)
		}
	}
}

func checkEntries[E any](t testing.TB, object string, want []E) {
	t.Helper()
	var got, texts []string
	for entry := range scan.Entries([]byte(object)) {
		got = append(got, string(entry))
	}
	for _, e := range want {
		texts = append(texts, encode(t, e))
	}
	equalSlices(t, "entries of "+object, got, texts)
}

func TestAppendWithoutTags(t *testing.T) {
	equal(t, "no records", string(scan.AppendWithoutTags(nil, []byte(`{"records":[]}`))), `{"records":[]}`)
	random := newRandom()
	for range 500 {
		checkWithoutTags(t, randomRecords(random))
	}
}

func checkWithoutTags(t testing.TB, records []answers.Record) {
	t.Helper()
	type untagged struct {
		Version    uint32 `json:"version"`
		RecordType string `json:"record_type"`
		Data       string `json:"data"`
	}
	want := []untagged{}
	for _, r := range records {
		want = append(want, untagged{r.Version, r.RecordType, r.Data})
	}
	got := scan.AppendWithoutTags([]byte("x"), []byte(encode(t, answers.ListRecords{Records: records})))
	equal(t, "without tags", string(got), "x"+encode(t, map[string]any{"records": want}))
}

func TestMatcher(t *testing.T) {
	entry := answers.SearchEntry{
		Record: answers.Record{Version: 1, RecordType: "address", Data: alice, Tags: []string{"top8", `"ens":{"name":"tag`}},
		ENS:    answers.SearchProfile{Name: `Été "Fox".ETH`, Avatar: "https://example.org/avatar.png"},
	}
	for term, want := range map[string]bool{
		"":                   true,
		"0xabc":              true,
		"efabcd":             true,
		alice:                true,
		"fox":                true,
		`"fox"`:              true,
		"été":                true,
		"eth":                true,
		`été "fox".eth`:      true,
		"0xb":                false,
		alice + `"`:          false,
		`"0xabc`:             false,
		`\"fox`:              false,
		"ete":                false,
		"_":                  false, // letters of a pattern mean themselves
		"f%x":                false,
		"%":                  false,
		"top8":               false, // tags, avatars and the JSON itself are not searched
		"tag":                false,
		"example.org":        false,
		"version":            false,
		"address":            false,
		alice[2:] + "été":    false, // no match across fields
		"fox\"._th":          false,
		"été \"fox\".eth\",": false,
	} {
		if got := scan.NewMatcher(term).Match([]byte(encode(t, entry))); got != want {
			t.Errorf("Match(%q): got %v, want %v", term, got, want)
		}
	}
	nameless := answers.SearchEntry{Record: answers.Record{Version: 1, RecordType: "address", Data: alice, Tags: []string{}}}
	equal(t, "match of no name", scan.NewMatcher("a.eth").Match([]byte(encode(t, nameless))), false)
	equal(t, "match of no term", scan.NewMatcher("").Match([]byte(encode(t, nameless))), true)
	equal(t, "match of an address", scan.NewMatcher("0xab").Match([]byte(encode(t, nameless))), true)
}

// A search in the bytes finds the same as a search in the decoded names.
func TestMatcherAgainstDecoder(t *testing.T) {
	random := newRandom()
	found := 0
	for range 500 {
		entries := randomEntries(random)
		for range 8 {
			found += checkMatcher(t, randomTerm(random, entries), entries)
		}
	}
	if found < 1000 {
		t.Errorf("entries found: got %d, want at least 1000, or the terms do not test much", found)
	}
}

// randomTerm returns a term as Resolve makes it, mostly a part of an entry.
func randomTerm(random *rand.Rand, entries []answers.SearchEntry) string {
	term := randomText(random, 3)
	if len(entries) > 0 && random.IntN(4) > 0 {
		e := pick(random, entries)
		text := []rune(pick(random, []string{e.ENS.Name, e.Data, strings.ToUpper(e.ENS.Name)}))
		from := random.IntN(len(text) + 1)
		term = string(text[from : from+random.IntN(len(text)-from+1)])
	}
	return site.Fold(strings.TrimSpace(term))
}

// checkMatcher compares one matcher's answers with those of decoded entries, and
// counts the matches.
func checkMatcher(t testing.TB, term string, entries []answers.SearchEntry) (found int) {
	t.Helper()
	m := scan.NewMatcher(term)
	for _, e := range entries {
		body := encode(t, e)
		var back answers.SearchEntry
		if err := json.Unmarshal([]byte(body), &back); err != nil {
			t.Fatal(err)
		}
		want := strings.Contains(back.Data, term) || strings.Contains(site.Fold(back.ENS.Name), term)
		if got := m.Match([]byte(body)); got != want {
			t.Errorf("Match(%q) of %s: got %v, want %v", term, body, got, want)
		}
		if want {
			found++
		}
	}
	return found
}

// Truncated shards are searched without a panic, and without their missing entries.
func TestMatchTruncated(t *testing.T) {
	entry := encode(t, answers.SearchEntry{
		Record: answers.Record{Version: 1, RecordType: "address", Data: alice, Tags: []string{`"`}}, ENS: answers.SearchProfile{Name: `fox "eth" \`},
	})
	const name = `fox \"eth\" \\"`
	whole := strings.Index(entry, name) + len(name)
	for n := range len(entry) {
		equal(t, "match in "+entry[:n], scan.NewMatcher("fox").Match([]byte(entry[:n])), n >= whole)
	}
}

// A search visits millions of entries, so it must not allocate.
func TestMatchDoesNotAllocate(t *testing.T) {
	for _, name := range []string{"alice.eth", "ALICE.eth", "été.eth", "日本語.eth", ""} {
		entry := []byte(encode(t, answers.SearchEntry{
			Record: answers.Record{Version: 1, RecordType: "address", Data: alice, Tags: []string{"top8"}}, ENS: answers.SearchProfile{Name: name},
		}))
		m := scan.NewMatcher("nobody")
		if n := testing.AllocsPerRun(100, func() { m.Match(entry) }); n != 0 {
			t.Errorf("a search of the name %q: got %v allocations, want none", name, n)
		}
	}
}

func TestFindUser(t *testing.T) {
	users := map[string]string{
		alice: "12", "alice.eth": "7", "nolist.eth": "", `"`: "1", `a"b`: "2", `b`: "", `x,"b`: "4", `{"y`: "5", ",": "6", ":": "8", `":"`: "9",
		"été.eth": "10", "🦊": largestTokenID, "users": "11", "a,": "13", "{": "14", "bucket": "15",
	}
	bucket := encodeBucket("0", users)
	equal(t, "bucket", bucket, encode(t, map[string]any{"bucket": "0", "users": users}))
	for user, want := range users {
		got, known := scan.FindUser([]byte(bucket), user)
		if !known || got != want {
			t.Errorf("FindUser(%q): got %q, %v, want %q", user, got, known, want)
		}
	}
	for _, user := range []string{"", "nobody", "lice.eth", "alice", "ALICE.eth", `y`, `a\"b`, "12", "7", "0", `"b`, "eth", `","`, `{"bucket`} {
		if got, known := scan.FindUser([]byte(bucket), user); known {
			t.Errorf("FindUser(%q): got %q, want nobody", user, got)
		}
	}
	if got, known := scan.FindUser([]byte(`{"bucket":"12","users":{"alice.eth":"7"}}`), "bucket"); known {
		t.Errorf("the head of the object: got the user %q, want nobody", got)
	}
	for _, bucket := range []string{"", "{}", "null", `{"bucket":"0","users":{}}`, `{"bucket":"0","users":{"alice.eth":"`} {
		if got, known := scan.FindUser([]byte(bucket), "alice.eth"); known {
			t.Errorf("FindUser in %s: got %q, want nobody", bucket, got)
		}
	}
}

func TestFindUserAgainstMaps(t *testing.T) {
	random := newRandom()
	for range 500 {
		users := map[string]string{}
		for range random.IntN(6) {
			users[randomText(random, 3)] = pick(random, []string{"", "0", "7", largestTokenID})
		}
		bucket := encodeBucket("0a", users)
		equal(t, "bucket", bucket, encode(t, map[string]any{"bucket": "0a", "users": users}))
		for range 20 {
			user := randomText(random, 3)
			want, known := users[user]
			if got, ok := scan.FindUser([]byte(bucket), user); got != want || ok != known {
				t.Errorf("FindUser(%q) in %s: got %q, %v, want %q, %v", user, bucket, got, ok, want, known)
			}
		}
	}
}

func encodeBucket(bucket string, users map[string]string) string {
	var names []string
	for user := range users {
		names = append(names, user)
	}
	slices.Sort(names)
	return string(render.AppendUserBucket(nil, bucket, names, func(user string) string { return users[user] }))
}

func encodeShard(t testing.TB, h scan.ShardHeader, entries []answers.SearchEntry) string {
	body := h.Append(nil)
	for i, e := range entries {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, encode(t, e)...)
	}
	return string(body) + "]}"
}

// An index finds the same entries as a scan of the shard, regardless of the texts and terms.
func TestShardIndex(t *testing.T) {
	random := newRandom()
	for range 300 {
		entries := randomEntriesOf(random, 1+random.IntN(8))
		h := scan.ShardHeader{List: fmt.Sprint(random.Uint64()), Total: len(entries), Shards: 1, ShardSize: 1000}
		shard := []byte(encodeShard(t, h, entries))
		terms := []string{"", "0x", "\xff", "\xff\xfe", "e", "ab", "nobody", entries[0].Data[:9], entries[0].Data + "a"}
		for _, e := range entries {
			terms = append(terms, site.Fold(randomText(random, 2)), site.Fold(e.ENS.Name))
		}
		checkIndex(t, shard, terms)
		x, ok := scan.IndexShard(shard)
		if !ok || x.Header != h || x.Len() != len(entries) {
			t.Fatalf("%s: got %v, %+v, want an index of %d entries", shard, ok, x, len(entries))
		}
	}
}

func TestShardIndexRefuses(t *testing.T) {
	const header = `{"list":"1","total":2,"shard":0,"shards":1,"shard_size":1000,"entries":[`
	const follow = `{"version":1,"record_type":"address","data":"0x00000000000000000000000000000000000000a1","tags":[],"ens":{"name":"","avatar":""}}`
	for _, shard := range []string{
		"", "{}", header + "]}", header + follow, `{"entries":[` + follow + "]}",
		header + follow + `,{"version":2,"record_type":"address"}]}`,
		header + `{"version":1,"record_type":"address","data":"` + "\xfe\xfe0000000000000000000000000000000000000001" + `","tags":[]}]}`,
	} {
		if _, ok := scan.IndexShard([]byte(shard)); ok {
			t.Errorf("%q: got an index, want none", shard)
		}
	}
}

// checkIndex compares an index with a scan, if the shard has one.
func checkIndex(t testing.TB, shard []byte, terms []string) {
	t.Helper()
	x, ok := scan.IndexShard(shard)
	if !ok {
		return
	}
	for _, term := range terms {
		next := x.Next(0, []byte(term))
		i := 0
		for entry := range scan.Entries(shard) {
			if got := string(x.Entry(shard, i)); got != string(entry) {
				t.Fatalf("entry %d of %q: got %q, want %q", i, shard, got, entry)
			}
			if want := scan.NewMatcher(term).Match(entry); want != (next == i) {
				t.Fatalf("term %q, entry %d of %q: got next %d, want a match: %v", term, i, shard, next, want)
			}
			if next == i {
				next = x.Next(i+1, []byte(term))
			}
			i++
		}
		if next != i || x.Len() != i {
			t.Fatalf("term %q in %q: got %d of %d entries at the end, want %d", term, shard, next, x.Len(), i)
		}
	}
}

func address(n int) string { return fmt.Sprintf("0x%040x", n) }

func encodeJSON(t testing.TB, value any) []byte {
	t.Helper()
	body, err := json.MarshalWithOption(value, json.DisableHTMLEscape())
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// The tests of package server compare the content of rows, shards and buckets with answers of
// package naive. Rows of other versions of records are in no site yet.
func TestRowsOfOtherVersions(t *testing.T) {
	for _, version := range []int{0, 2, math.MaxUint32} {
		row := encodeJSON(t, []any{address(1), []string{"block"}, 7, "a", "b", version})
		if held, err := scan.ParseHeldRow(row); err != nil || int(held.Version) != version {
			t.Errorf("%s: got the version %d, %v", row, held.Version, err)
		}
	}
}

func TestMalformedRows(t *testing.T) {
	const a = `["0x0000000000000000000000000000000000000001",`
	for _, bad := range []string{"", "[", "[]", `["x",[],1,"",""]`, a + `1,1,"",""]`, a + `[],-1,"",""]`, a + `[],1,"",""`,
		a + `[],1,"","",-1]`, a + `[],1,"","",4294967296]`, a + `[],1,"","",1,1]`, `{"a":1}`, a + `[],1,"]`} {
		_, held := scan.ParseHeldRow([]byte(bad))
		_, follower := scan.ParseFollowerRow([]byte(bad))
		if !errors.Is(held, site.ErrMalformed) || !errors.Is(follower, site.ErrMalformed) {
			t.Errorf("%s: got %v, %v, want ErrMalformed", bad, held, follower)
		}
	}
	for _, bad := range []string{"", "{}", "[]", `{"total":1`, `{"total":-1,"shard":0,"shards":1,"shard_size":1000,"entries":[]}`,
		`{"total":2000,"shard":0,"shards":1,"shard_size":1000,"entries":[]}`, `{"total":1,"shard":1,"shards":1,"shard_size":1000,"entries":[]}`,
		`{"total":1,"shard":0,"shards":1,"shard_size":0,"entries":[]}`, `{"total":1,"shard":0,"shards":1,"shard_size":1000}`} {
		if _, err := scan.ParseShard([]byte(bad)); !errors.Is(err, site.ErrMalformed) {
			t.Errorf("%s: got %v, want ErrMalformed", bad, err)
		}
	}
	for _, bad := range []string{`{"lists":{"1":["0x",true,1,1,[]]}}`, `{"lists":{"1":[`, `{"lists":{"1":[]}}`, `{"lists":{"1":` + a + `true,-1,1,[]]}}`} {
		if _, _, err := scan.FindListNode([]byte(bad), "1"); !errors.Is(err, site.ErrMalformed) {
			t.Errorf("%s: got %v, want ErrMalformed", bad, err)
		}
	}
	if _, err := scan.ParseAccount([]byte(`{"address":"0x01"}`)); !errors.Is(err, site.ErrMalformed) {
		t.Errorf("an account without a profile: got %v, want ErrMalformed", err)
	}
}

// FuzzRows: whatever an object is, reading it ends without a panic.
func FuzzRows(f *testing.F) {
	f.Add([]byte(`{"list":"7","total":1,"shard":0,"shards":1,"shard_size":1000,"entries":[["a",[],1,"",""]]}`), "7")
	f.Add([]byte(`{"bucket":"0","names":{"a":["0x",[1]]},"accounts":{"7":["7",1,1,[]]}}`), "a")
	f.Fuzz(func(_ *testing.T, object []byte, user string) {
		if shard, err := scan.ParseShard(object); err == nil {
			for row := range shard.Rows() {
				_, _ = scan.ParseHeldRow(row)
				_, _ = scan.ParseFollowerRow(row)
				_, _ = scan.ParseRankedRow(row)
				_, _ = scan.ParseRecommendedRow(row)
			}
		}
		_, _, _ = scan.FindUserNode(object, user)
		_, _, _ = scan.FindListNode(object, user)
		_, _ = scan.ParseAccount(object)
		_ = scan.StateOf(object)
		for range scan.HeldRecords(object) {
			continue
		}
	})
}

// TestTagFilterOfManyTags: a query of many tags must not take longer for each tag of each row.
func TestTagFilterOfManyTags(t *testing.T) {
	many := func(prefix string) string {
		var b strings.Builder
		for i := range 8000 {
			fmt.Fprintf(&b, ",%s%d", prefix, i)
		}
		return b.String()
	}
	row, err := json.Marshal(strings.Split(many("a")[1:], ","))
	if err != nil {
		t.Fatal(err)
	}
	took := func(f scan.TagFilter) time.Duration { // the least of some, since a busy machine interrupts
		least := time.Hour
		for range 5 {
			begun := time.Now()
			if f.Match(row) {
				t.Error("got a match, want none")
			}
			least = min(least, time.Since(begun))
		}
		return least
	}
	few, lots := scan.NewTagFilter("b"), scan.NewTagFilter(many("b"))
	if one, all := took(few), took(lots); all > 50*one+50*time.Millisecond {
		t.Errorf("8,000 tags of a row against a filter of 8,000: %s, against one: %s", all, one)
	}
}
