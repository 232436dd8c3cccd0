package generator_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/followpress/followpress/generator"
)

// loadEFP reads a snapshot for the API efp.
func loadEFP(t *testing.T, s snapshot) generator.Graph {
	t.Helper()
	g, err := generator.LoadEFP(t.Context(), s.fs(), 2)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestTimes(t *testing.T) {
	valid := validRows().without("records.ndjson")
	for text, want := range map[string]int64{
		`"1970-01-01T00:00:00Z"`:               0,
		`"2024-10-14T19:45:38.617Z"`:           1728935138617,
		`"2024-10-14T19:45:38Z"`:               1728935138000,
		`"2024-10-14T19:45:38.6179999999Z"`:    1728935138617, // truncated, not rounded
		`"2024-10-14T21:45:38.617+02:00"`:      1728935138617,
		`"1969-12-31T23:59:59.9999Z"`:          -1,
		`"9999-12-31T23:59:59.999Z"`:           253402300799999,
		`"2024-10-14\u005419:45:38.617\u005A"`: 1728935138617,
		`null`:                                 0,
	} {
		g := loadEFP(t, valid.with("records.ndjson", timed(text)))
		if got := g.TimedRecords()["1"]; len(got) != 1 || got[0].Added != want {
			t.Errorf("%s: got %+v, want %d", text, got, want)
		}
	}
}

// TestTimesStayWithTheirRecords mixes rows of several lists. Many repeat an earlier row, whose time
// counts even if it has none.
func TestTimesStayWithTheirRecords(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 0))
	s := emptySnapshot()
	for list := range 3 {
		s = s.adding("lists", fmt.Sprintf(`{"token_id":"%d","owner":"%s"}`, list, alice))
	}
	want := map[string][]generator.TimedRecord{}
	seen := map[[2]string]bool{}
	for range 2000 {
		token, data := fmt.Sprint(r.IntN(4)), fmt.Sprintf("0x%040x", r.IntN(400)) // list 3 does not exist
		if r.IntN(8) == 0 {
			data = fmt.Sprintf("0x%04x", r.IntN(100))
		}
		ms, added := int64(0), ""
		if r.IntN(3) > 0 {
			second := r.Int64N(3600)
			ms, added = second*1000, fmt.Sprintf(`,"added":"1970-01-01T00:%02d:%02dZ"`, second/60, second%60)
		}
		s = s.adding("records", fmt.Sprintf(`{"token_id":"%s","version":1,"record_type":"address","data":"%s","tags":["t%d"]%s}`, token, data, r.IntN(3), added))
		if id := [2]string{token, data}; !seen[id] && token != "3" {
			seen[id] = true
			want[token] = append(want[token], generator.TimedRecord{Data: data, Added: ms})
		}
	}
	if got := loadEFP(t, s).TimedRecords(); !reflect.DeepEqual(got, want) {
		t.Errorf("times of records: got %v\nwant %v", got, want)
	}
}

func TestRecommended(t *testing.T) {
	const carol = "0xcccccccccccccccccccccccccccccccccccccccc"
	s := validRows().adding("recommended",
		`{"address":"`+bob+`","class":"A"}`, "", // blank lines are skipped
		`{"class":null,"address":"`+carol+`"}`,
		`{"address":"0x`+strings.ToUpper(bob[2:])+`","class":"Z"}`,
		`{"address":"`+alice+`","class":"<&>","unknown":1}`)
	want := [][2]string{{bob, "A"}, {carol, ""}, {alice, "<&>"}}
	for _, s := range []snapshot{s, s.compressed(t, ".gz"), s.compressed(t, ".zst")} {
		g := loadEFP(t, s)
		if got := g.Recommended(); !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if _, known := g.BadgesOf(carol); known || g.Addresses() != 2 {
			t.Errorf("got %d addresses, want 2: a recommended one is none of the graph", g.Addresses())
		}
	}
	if got := loadEFP(t, validRows()).Recommended(); got != nil {
		t.Errorf("no table: got %v, want none", got)
	}
	_, report, err := generator.ToMemory(t.Context(), s.fs(), smallEFP)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"recommended        4 rows, 1 without effect (repeated address)\n", "lists              1 rows\n"} {
		if !strings.Contains(report.String(), line) {
			t.Errorf("report: got %s, want %q in it", report, line)
		}
	}
	_, err = generator.LoadEFP(t.Context(), s.with("recommended.ndjson.gz", "").fs(), 1)
	wantError(t, err, "table recommended exists twice; keep one of recommended.ndjson, recommended.ndjson.gz")
	packed := s.compressed(t, ".gz")
	packed = packed.with("recommended.ndjson.gz", packed["recommended.ndjson.gz"][:30])
	_, err = generator.LoadEFP(t.Context(), packed.fs(), 1)
	wantError(t, err, "recommended.ndjson.gz", "cut off")
}

func TestListOps(t *testing.T) {
	meta := func(member string) snapshot {
		return validRows().adding("records", timed("null"), timed("null")). // repeated
											with("meta.json", `{"format":1,"as_of":"2026-11-20T00:00:00Z"`+member+`}`)
	}
	for member, want := range map[string]uint64{
		"": 1, `,"list_ops":null`: 1, `,"list_ops":0`: 0, `,"list_ops":4321`: 4321, `,"list_ops":18446744073709551615`: 18446744073709551615,
	} {
		if got := loadEFP(t, meta(member)).ListOps(); got != want {
			t.Errorf("%q: got %d, want %d", member, got, want)
		}
	}
	for _, member := range []string{`,"list_ops":-1`, `,"list_ops":"1"`, `,"list_ops":1.5`, `,"list_ops":{}`, `,"list_ops":18446744073709551616`} {
		_, err := generator.LoadEFP(t.Context(), meta(member).fs(), 1)
		wantError(t, err, "meta.json: list_ops")
	}
}

// TestBadgesOfAnybody: an owner of badges needs no list, and does not count as an address.
func TestBadgesOfAnybody(t *testing.T) {
	const stranger, other = "0xcccccccccccccccccccccccccccccccccccccccc", "0xdddddddddddddddddddddddddddddddddddddddd"
	s := validRows().adding("events", event).adding("badges",
		`{"event_id":"1","token_id":"8","owner":"`+bob+`"}`,
		`{"event_id":"7","token_id":"9","owner":"`+stranger+`"}`, `{"event_id":"1","token_id":"12","owner":"`+stranger+`"}`,
		`{"event_id":"1","token_id":"11","owner":"`+stranger+`"}`, `{"event_id":"99","token_id":"9","owner":"`+other+`"}`)
	g := loadEFP(t, s)
	for address, want := range map[string][]string{alice: {"5"}, bob: {"8"}, stranger: {"11", "9"}} {
		if got, known := g.BadgesOf(address); !known || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %q (known: %t), want %q", address, got, known, want)
		}
	}
	if _, known := g.BadgesOf(other); known {
		t.Error("owner of a badge of an unknown event: got an account, want none")
	}
	if g.Addresses() != 2 {
		t.Errorf("got %d addresses, want 2", g.Addresses())
	}
	if err := g.Rank(t.Context(), 1); err != nil {
		t.Error(err)
	}
}

// TestAddresses counts rows of accounts, accounts of lists, and accounts in lists.
func TestAddresses(t *testing.T) {
	const row = `{"token_id":"%d","version":%d,"record_type":"%s","data":"0x%040x","tags":["%s"]}`
	s := emptySnapshot().adding("lists", `{"token_id":"1","owner":"`+alice+`"}`).
		adding("accounts", `{"address":"`+bob+`"}`).
		adding("records", fmt.Sprintf(row, 1, 1, "address", 1, "block"), fmt.Sprintf(row, 1, 1, "address", 1, "x"), fmt.Sprintf(row, 1, 1, "address", 2, ""),
			fmt.Sprintf(row, 1, 2, "address", 3, ""), fmt.Sprintf(row, 1, 1, "list", 4, ""), fmt.Sprintf(row, 9, 1, "address", 5, ""),
			strings.ReplaceAll(fmt.Sprintf(row, 1, 1, "address", 0, ""), "0x"+strings.Repeat("0", 40), bob))
	if got := loadEFP(t, s).Addresses(); got != 4 {
		t.Errorf("got %d addresses, want 4: alice, bob, 1 and 2", got)
	}
}

// TestSpecIgnoresTheRest: the API spec ignores fields that only the API efp shows, whatever they
// contain.
func TestSpecIgnoresTheRest(t *testing.T) {
	for seed := range uint64(4) {
		plain := randomSnapshot(seed, shape{accounts: 9, lists: 6, records: 60, events: 2, badges: 9})
		rest := plain.with("meta.json", strings.Replace(plain["meta.json"], "}", `,"list_ops":-1}`, 1)).
			with("recommended.ndjson", "no JSON").with("recommended.ndjson.gz", "no gzip")
		rows := ""
		for line := range strings.Lines(plain["records.ndjson"]) {
			end := strings.LastIndex(line, "}")
			rows += line[:end] + `,"added":` + []string{`"x"`, "7", "null", `{"a":[]}`, `"2024-10-14T19:45:38Z"`}[len(line)%5] + line[end:]
		}
		rest = rest.with("records.ndjson", rows)
		if err := inMemory(t, rest, small).Compare(inMemory(t, plain, small)); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		g, err := generator.Load(t.Context(), rest.fs(), 1)
		if err != nil || g.IsTimed() {
			t.Errorf("seed %d: got times in memory, or %v", seed, err)
		}
	}
}
