package site_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

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

func TestEntriesStop(t *testing.T) {
	entries := randomEntriesOf(newRandom(), 5)
	n := 0
	for range scan.Entries([]byte(encode(t, answers.FollowingPage{Following: entries}))) {
		if n++; n == 3 {
			break
		}
	}
	equal(t, "entries before the break", n, 3)
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
