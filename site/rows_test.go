package site_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/twin/answers"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/site/scan"
)

// oddTexts are texts whose JSON resembles its surroundings.
var oddTexts = []string{
	"", "a", `"`, `\`, `\"`, `],["`, `"]`, `{"x":[1]}`, `,"0x0000000000000000000000000000000000000001":["`, "\u2028\n\x00", "日本語.eth", "<&>",
	`"names":{`, "block", "mute", `block"`, "Block", "top8",
}

func oddText(r *rand.Rand) string { return oddTexts[r.IntN(len(oddTexts))] }

func oddTags(r *rand.Rand) []string {
	tags := []string{}
	for range r.IntN(4) {
		tags = append(tags, oddText(r))
	}
	slices.Sort(tags)
	return slices.Compact(tags)
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

func decodeText(t testing.TB, text []byte) (value string) {
	t.Helper()
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

type array = []any

func TestRows(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 0))
	for i := range 2000 {
		a, tags, name, avatar, header := address(i), oddTags(r), oddText(r), oddText(r), oddText(r)
		text := func(text []byte) string { return decodeText(t, text) }
		tagsOf := func(encoded []byte) (tags []string) {
			if err := json.Unmarshal(encoded, &tags); err != nil {
				t.Fatal(err)
			}
			return tags
		}

		held, err := scan.ParseHeldRow(encodeJSON(t, array{a, tags, i, name, avatar}))
		if got := (array{string(held.Address), tagsOf(held.Tags), held.Followers, text(held.Name), text(held.Avatar)}); err != nil ||
			!reflect.DeepEqual(got, array{a, tags, i, name, avatar}) || held.Version != rules.UsualVersion {
			t.Fatalf("held: got %q of version %d, %v", got, held.Version, err)
		}
		if held, err := scan.ParseHeldRow(encodeJSON(t, array{a, tags, i, name, avatar, i})); err != nil || int(held.Version) != i {
			t.Fatalf("held by a record of version %d: got %d, %v", i, held.Version, err)
		}
		row := array{"77", a, tags, i % 8, int64(-i), i, name, avatar, header, i / 2}
		f, err := scan.ParseFollowerRow(encodeJSON(t, row))
		if got := (array{string(f.List), string(f.Address), tagsOf(f.Tags), int(f.State), f.Time, f.Followers, text(f.Name), text(f.Avatar), text(f.Header), f.MutualsRank}); err != nil ||
			!reflect.DeepEqual(got, row) {
			t.Fatalf("follower: got %q, %v, want %q", got, err, row)
		}
		ranked, err := scan.ParseRankedRow(encodeJSON(t, array{a, name, avatar, header, []int{1, 2, 3, 4, 5}, []int{6, 7, 8, 9, i}}))
		if got := fmt.Sprintf("%s %s %s", ranked.Address, ranked.Ranks, ranked.Counts); err != nil || got != fmt.Sprintf("%s [1 2 3 4 5] [6 7 8 9 %d]", a, i) ||
			text(ranked.Name)+text(ranked.Avatar)+text(ranked.Header) != name+avatar+header {
			t.Fatalf("ranked: got %s, %v", got, err)
		}
		records := map[string]string{name: avatar, "x": header}
		rec, err := scan.ParseRecommendedRow(encodeJSON(t, array{a, name, avatar, header, nil, records, 1, i, []int{1, 2, 3, 4, 5}}))
		if err != nil || string(rec.Class) != "null" || !bytes.Equal(rec.Records, encodeJSON(t, records)) || string(rec.Following) != fmt.Sprint(i) {
			t.Fatalf("recommended: got %+v, %v", rec, err)
		}

		var state rules.State
		if slices.Contains(tags, "block") {
			state |= rules.Block
		}
		if slices.Contains(tags, "mute") {
			state |= rules.Mute
		}
		if state == 0 {
			state = rules.Follow
		}
		if got := scan.StateOf(encodeJSON(t, tags)); got != state {
			t.Fatalf("state of %q: got %d, want %d", tags, got, state)
		}
		wanted := []string{oddText(r), "top8"}
		wantMatch := slices.ContainsFunc(wanted, func(tag string) bool { return slices.Contains(tags, tag) && !strings.Contains(tag, ",") && tag != "" }) ||
			slices.ContainsFunc(strings.Split(wanted[0], ","), func(tag string) bool { return tag != "" && slices.Contains(tags, tag) })
		if got := scan.NewTagFilter(strings.Join(wanted, ",")).Match(encodeJSON(t, tags)); got != wantMatch {
			t.Fatalf("%q in %q: got %t", wanted, tags, got)
		}
	}
	for _, bad := range []string{"", "[", "[]", `["x",[],1,"",""]`, `["0x0000000000000000000000000000000000000001",1,1,"",""]`,
		`["0x0000000000000000000000000000000000000001",[],-1,"",""]`, `["0x0000000000000000000000000000000000000001",[],1,"",""`,
		`["0x0000000000000000000000000000000000000001",[],1,"","",-1]`, `["0x0000000000000000000000000000000000000001",[],1,"","",4294967296]`,
		`["0x0000000000000000000000000000000000000001",[],1,"","",1,1]`, `{"a":1}`, `["0x0000000000000000000000000000000000000001",[],1,"]`} {
		if _, err := scan.ParseHeldRow([]byte(bad)); !errors.Is(err, site.ErrMalformed) {
			t.Errorf("%s: got %v, want ErrMalformed", bad, err)
		}
		if _, err := scan.ParseFollowerRow([]byte(bad)); !errors.Is(err, site.ErrMalformed) {
			t.Errorf("%s: got %v, want ErrMalformed", bad, err)
		}
	}
}

func TestStateJSON(t *testing.T) {
	for state, want := range map[rules.State]string{
		0:                        `{"follow":false,"block":false,"mute":false}`,
		rules.Follow:             `{"follow":true,"block":false,"mute":false}`,
		rules.Block | rules.Mute: `{"follow":false,"block":true,"mute":true}`,
	} {
		if got := string(scan.AppendState(nil, state)); got != want {
			t.Errorf("%d: got %s, want %s", state, got, want)
		}
	}
}

func TestShards(t *testing.T) {
	shard, err := scan.ParseShard([]byte(`{"list":"7","follows":1200,"before":990,"total":1234,"shard":1,"shards":2,"shard_size":1000,"entries":[["a",[]],["b",["],"]]]}`))
	if err != nil || shard.Owner != "7" || shard.Total != 1234 || shard.Follows != 1200 || shard.Before != 990 || shard.First() != 1000 {
		t.Errorf("got %+v, %v", shard, err)
	}
	if got := fmt.Sprintf("%s", slices.Collect(shard.Rows())); got != `[["a",[]] ["b",["],"]]]` {
		t.Errorf("rows: got %s", got)
	}
	head, err := scan.ParseShard([]byte(`{"address":"0x01","total":1234,"places":[0,99,1233],"entries":[[1],[2],[3]]}`))
	if err != nil || head.Owner != "0x01" || head.Total != 1234 || len(slices.Collect(head.Rows())) != 3 {
		t.Errorf("head: got %+v, %v", head, err)
	}
	empty, err := scan.ParseShard([]byte(`{"total":0,"shard":0,"shards":1,"shard_size":1000,"entries":[]}`))
	if err != nil || len(slices.Collect(empty.Rows())) != 0 {
		t.Errorf("empty: got %+v, %v", empty, err)
	}
	for _, bad := range []string{"", "{}", "[]", `{"total":1`, `{"total":-1,"shard":0,"shards":1,"shard_size":1000,"entries":[]}`,
		`{"total":2000,"shard":0,"shards":1,"shard_size":1000,"entries":[]}`, `{"total":1,"shard":1,"shards":1,"shard_size":1000,"entries":[]}`,
		`{"total":1,"shard":0,"shards":1,"shard_size":0,"entries":[]}`, `{"total":1,"shard":0,"shards":1,"shard_size":1000}`} {
		if _, err := scan.ParseShard([]byte(bad)); !errors.Is(err, site.ErrMalformed) {
			t.Errorf("%s: got %v, want ErrMalformed", bad, err)
		}
	}
}

func TestBuckets(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 1))
	names, accounts, lists := map[string]array{}, map[string]array{}, map[string]array{}
	for i := range 50 {
		rows := []array{}
		for range r.IntN(3) {
			rows = append(rows, array{"9", address(i), oddTags(r), 0, 0, 1, oddText(r), oddText(r), oddText(r), 0})
		}
		accounts[address(i)] = array{"5", i, i + 1, rows}
		names[oddText(r)+fmt.Sprint(i)] = array{address(i), "", 0, i}
		lists[fmt.Sprint(i)] = array{address(i), i%2 == 0, i, 1, []array{}}
	}
	users := encodeJSON(t, struct {
		Bucket   string           `json:"bucket"`
		Names    map[string]array `json:"names"`
		Accounts map[string]array `json:"accounts"`
	}{"0", names, accounts})
	for name, want := range names {
		if got, known, err := scan.FindUserNode(users, name); err != nil || !known || got.Address != want[0] || got.Followers != want[3] || got.List != "" {
			t.Errorf("%q: got %+v, %t, %v, want %v", name, got, known, err, want)
		}
	}
	for account, want := range accounts {
		got, known, err := scan.FindUserNode(users, account)
		if err != nil || !known || got.Address != account || got.Held != want[1] || got.Followers != want[2] || !bytes.Equal(got.Rows, encodeJSON(t, want[3])) {
			t.Errorf("%s: got %+v, %t, %v, want %v", account, got, known, err, want)
		}
	}
	for _, name := range append(slices.Clone(oddTexts), "0", address(99), "1") {
		if _, known, err := scan.FindUserNode(users, name); known || err != nil {
			t.Errorf("%q: got a user, %v, want none", name, err)
		}
	}
	tokens := encodeJSON(t, map[string]any{"bucket": "0", "lists": lists})
	for token, want := range lists {
		if got, known, err := scan.FindListNode(tokens, token); err != nil || !known || got.Account != want[0] || got.Primary != want[1] || got.Held != want[2] || string(got.Rows) != "[]" {
			t.Errorf("%s: got %+v, %t, %v, want %v", token, got, known, err, want)
		}
	}
	if _, known, err := scan.FindListNode(tokens, "50"); known || err != nil {
		t.Errorf("50: got a list, %v, want none", err)
	}
	for _, bad := range []string{`{"lists":{"1":["0x",true,1,1,[]]}}`, `{"lists":{"1":[`, `{"lists":{"1":[]}}`, `{"lists":{"1":["` + address(1) + `",true,-1,1,[]]}}`} {
		if _, _, err := scan.FindListNode([]byte(bad), "1"); !errors.Is(err, site.ErrMalformed) {
			t.Errorf("%s: got %v, want ErrMalformed", bad, err)
		}
	}
}

func TestHeldRecords(t *testing.T) {
	body := encodeJSON(t, answers.ListRecords{Records: []answers.Record{
		{Version: 1, RecordType: "address", Data: address(1), Tags: []string{`],"`, "block"}},
		{Version: 2, RecordType: "address", Data: address(2), Tags: []string{}},
		{Version: 1, RecordType: "list", Data: address(3), Tags: []string{}},
		{Version: 1, RecordType: "address", Data: "0x12", Tags: []string{}},
		{Version: 1, RecordType: "address", Data: address(4) + "00", Tags: []string{}},
		{Version: 1, RecordType: "address", Data: address(5), Tags: []string{}},
	}})
	var got []string
	for r := range scan.HeldRecords(body) {
		got = append(got, fmt.Sprint(r.Version)+string(r.Address)+string(r.Tags))
	}
	if want := []string{"1" + address(1) + `["],\"","block"]`, "1" + address(5) + "[]"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAccountFile(t *testing.T) {
	const account = `{"address":"0x01","ens":{"name":"a\"b","avatar":"","header":"h","display":"","records":{"name":"x"},"chains":{},"fresh":1,"resolver":"","errors":{},"updated_at":"2024-01-01T00:00:00.000Z"}}`
	a, err := scan.ParseAccount([]byte(account))
	if got, want := string(a.AppendEntry(nil)), `{"name":"a\"b","address":"0x01","avatar":"","records":{"name":"x"},"updated_at":"2024-01-01T00:00:00.000Z"}`; err != nil || got != want || !a.HasName() {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	if _, err := scan.ParseAccount([]byte(`{"address":"0x01"}`)); !errors.Is(err, site.ErrMalformed) {
		t.Errorf("got %v, want ErrMalformed", err)
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
