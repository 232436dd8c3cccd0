package site_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
)

// TestWithinLongTexts: a text of exactly the maximum size stays, and one with a byte more is
// omitted.
func TestWithinLongTexts(t *testing.T) {
	const most = 300
	limits := site.ProfileLimits{Text: most, Whole: 1 << 20}
	fits, long := strings.Repeat("é", most/2), strings.Repeat("x", most+1)
	escaped := strings.Repeat("\n", most) // twice as long as JSON
	for name, tc := range map[string]struct {
		in, want string // an ens object
		long     []site.LongText
	}{
		"nothing":     {`{}`, `{}`, nil},
		"short texts": {`{"name":"a","records":{"b":"c"}}`, `{"name":"a","records":{"b":"c"}}`, nil},
		"texts that just fit": {
			`{"name":"` + fits + `","avatar":` + quoted(t, escaped) + `,"records":{"` + fits + `":` + quoted(t, escaped) + `}}`,
			`{"name":"` + fits + `","avatar":` + quoted(t, escaped) + `,"records":{"` + fits + `":` + quoted(t, escaped) + `}}`, nil,
		},
		"members": {
			`{"name":"` + long + `","avatar":"` + long + `","header":"` + long + `","display":"` + long + `","resolver":"` + long + `","fresh":7}`, `{"fresh":7}`,
			[]site.LongText{{"name", 301}, {"avatar", 301}, {"header", 301}, {"display", 301}, {"resolver", 301}},
		},
		"entries": {
			`{"records":{"b":"<&>","a":"` + long + `"},"chains":{"60":"` + long + `"},"errors":{"c":"` + long + `","d":"1.50"}}`,
			`{"records":{"b":"<&>"},"errors":{"d":"1.50"}}`,
			[]site.LongText{{"records.a", 301}, {"chains.60", 301}, {"errors.c", 301}},
		},
		"the name of an entry":       {`{"records":{"` + long + `":"x","y":""}}`, `{"records":{"y":""}}`, []site.LongText{{"records." + long[:80] + "…", 301}}},
		"many texts, none too long":  {`{"records":{"a":"` + fits + `","b":"` + fits + `"}}`, `{"records":{"a":"` + fits + `","b":"` + fits + `"}}`, nil},
		"a name cut in a character":  {`{"records":{"a` + fits + `":""}}`, `{}`, []site.LongText{{"records.a" + strings.Repeat("é", 39) + "…", 301}}},
		"members that are not there": {`{"records":null,"chains":{}}`, `{}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, left := profileOf(t, tc.in).Within(limits)
			if want := profileOf(t, tc.want); !reflect.DeepEqual(got, want) {
				t.Errorf("got  %s\nwant %s", encode(t, got), encode(t, want))
			}
			if !reflect.DeepEqual(left, tc.long) {
				t.Errorf("left out: got %v, want %v", left, tc.long)
			}
			if again, left := got.Within(limits); !reflect.DeepEqual(again, got) || left != nil {
				t.Errorf("the second time: got %s without %v, want no change", encode(t, again), left)
			}
		})
	}
}

// profileOf returns an ens object, normalised.
func profileOf(t testing.TB, ens string) site.Profile {
	t.Helper()
	var p site.Profile
	if err := json.Unmarshal([]byte(ens), &p); err != nil {
		t.Fatal(err)
	}
	p, err := p.Normalize()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func quoted(t testing.TB, text string) string {
	t.Helper()
	return encode(t, text)
}

// TestWithin: a profile within the limit stays; a larger one loses its largest parts.
func TestWithin(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	whole := `{"name":"n","avatar":"` + x(300) + `","records":{"a":"` + x(300) + `","b":"` + x(500) + `"},"errors":{"` + x(200) + `":""}}`
	size := len(encode(t, profileOf(t, whole)))
	for _, c := range []struct {
		most int
		want string
		left []site.LongText
	}{
		{size, whole, nil},
		{size - 1, strings.Replace(whole, `,"b":"`+x(500)+`"`, "", 1), []site.LongText{{"records.b", 500}}},
		// The entry is larger as JSON than the avatar, by its name; then they are in order.
		{size - 520, `{"name":"n","avatar":"` + x(300) + `","errors":{"` + x(200) + `":""}}`, []site.LongText{{"records.b", 500}, {"records.a", 300}}},
		{size - 900, `{"name":"n","errors":{"` + x(200) + `":""}}`, []site.LongText{{"records.b", 500}, {"records.a", 300}, {"avatar", 300}}},
	} {
		limits := site.ProfileLimits{Text: 1000, Whole: c.most}
		in := profileOf(t, whole)
		got, left := in.Within(limits)
		if want := profileOf(t, c.want); !reflect.DeepEqual(got, want) || !reflect.DeepEqual(left, c.left) {
			t.Errorf("%d: got  %s without %v\nwant %s without %v", c.most, encode(t, got), left, encode(t, want), c.left)
		}
		if again, left := got.Within(limits); !reflect.DeepEqual(again, got) || left != nil {
			t.Errorf("%d, the second time: got %s without %v, want no change", c.most, encode(t, again), left)
		}
		if !reflect.DeepEqual(in, profileOf(t, whole)) {
			t.Errorf("%d: the original has changed", c.most)
		}
	}
	// Whatever a profile consists of, it fits in the end.
	hostile := profileOf(t, `{"name":"`+strings.Repeat(`\u0001`, 900)+`","resolver":"`+strings.Repeat(`\u2028`, 900)+`","chains":{"`+x(900)+`":""},"fresh":-9223372036854775808}`)
	if got, _ := hostile.Within(site.ProfileLimits{Text: 1 << 20, Whole: 1 << 10}); len(encode(t, got)) > 1<<10 {
		t.Errorf("got %d bytes, want at most 1024", len(encode(t, got)))
	}
}

// TestMapsOfTexts: records, chains and errors contain texts only (2.5). Null is dropped; other values are dropped and
// counted.
func TestMapsOfTexts(t *testing.T) {
	for in, want := range map[string]struct {
		object  string
		noTexts int
	}{
		`{"b":null,"a":"1","c":null}`: {`{"a":"1"}`, 0},
		`{"a":null}`:                  {`{}`, 0},
		`{"a":"1","a":null}`:          {`{}`, 0},
		`{"a":null,"a":"1"}`:          {`{"a":"1"}`, 0},
		`{"d":[1,"x"],"c":{"x":"y"},"b":-1.5e400,"a":true,"e":"\u00e9"}`:           {`{"e":"é"}`, 4},
		`{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `,"b":""}`: {`{"b":""}`, 1},
	} {
		for _, member := range []string{"records", "chains", "errors"} {
			p := profileOf(t, `{"`+member+`":`+in+`}`)
			got := map[string]json.RawMessage{"records": p.Records, "chains": p.Chains, "errors": p.Errors}
			if string(got[member]) != want.object || p.NoTexts != want.noTexts {
				t.Errorf("%s of %s: got %s and %d that are no texts, want %+v", member, in, got[member], p.NoTexts, want)
			}
		}
	}
	if p := profileOf(t, `{"records":{"a":1},"chains":{"b":[]},"errors":{"c":false,"d":null}}`); p.NoTexts != 3 {
		t.Errorf("got %d entries that are not texts, want those of all three", p.NoTexts)
	}
	if _, err := (site.Profile{Records: json.RawMessage(`{"a":nope}`)}).Normalize(); err == nil {
		t.Error("got no error, want one for invalid JSON")
	}
}

// TestDatesOfEvents: ISO 8601 dates and times are converted to the format of the specification (2.6), with the day in
// their own zone. Others stay, and are counted.
func TestDatesOfEvents(t *testing.T) {
	for _, c := range []struct {
		in, want string
		other    int
	}{
		{"2026-09-24", "24-Sep-2026", 0},
		{"20260924", "24-Sep-2026", 0},
		{"2026-01-02T23:59", "02-Jan-2026", 0},
		{"2026-01-02T23:59:59Z", "02-Jan-2026", 0},
		{"2026-01-02T23:59:59.123456789Z", "02-Jan-2026", 0},
		{"2026-01-02T23:59:59-12:00", "02-Jan-2026", 0},
		{"2026-01-02T00:30:00.000+0530", "02-Jan-2026", 0},
		{"2026-01-02 00:30:00", "02-Jan-2026", 0},
		{"2026-01-02 00:30:00.5+00", "02-Jan-2026", 0},
		{"20260102T003000Z", "02-Jan-2026", 0},
		{"24-Sep-2026", "24-Sep-2026", 0},
		{"24-SEP-2026", "24-SEP-2026", 1},
		{"4-Sep-2026", "4-Sep-2026", 1},
		{"30-Feb-2026", "30-Feb-2026", 1},
		{"2026-02-30", "2026-02-30", 1},
		{"2026-13-01T00:00:00Z", "2026-13-01T00:00:00Z", 1},
		{"2026-01-02T25:00:00Z", "2026-01-02T25:00:00Z", 1},
		{"09/24/2026", "09/24/2026", 1},
		{"2026", "2026", 1},
		{" 2026-09-24", " 2026-09-24", 1},
		{"soon", "soon", 1},
		{"", "", 1},
	} {
		for at, member := range []string{"start_date", "end_date", "expiry_date"} {
			dates := [3]string{"01-Jan-2026", "01-Jan-2026", "01-Jan-2026"}
			dates[at] = c.in
			e, err := site.DecodeEvent(fmt.Appendf(nil, `{"id":1,"fancy_id":"","name":"2026-09-24","event_url":"","image_url":"","country":"","city":"",
				"description":"","year":2026,"start_date":%q,"end_date":%q,"expiry_date":%q}`, dates[0], dates[1], dates[2]))
			if err != nil {
				t.Fatal(err)
			}
			if got := [3]string{e.StartDate, e.EndDate, e.ExpiryDate}; got[at] != c.want || e.OtherDates() != c.other || e.Name != "2026-09-24" {
				t.Errorf("%s %q: got %q and %d others, want %q and %d", member, c.in, got[at], e.OtherDates(), c.want, c.other)
			}
		}
	}
}

// TestDecodeAddress: documents have 0x, requests may have 0X (site.ParseAddress).
func TestDecodeAddress(t *testing.T) {
	if got, err := site.DecodeAddress("owner", "0x"+strings.ToUpper(alice[2:])); err != nil || got.String() != alice {
		t.Errorf("got %v and the error %v, want %s", got, err, alice)
	}
	want := `owner: "0X` + alice[2:] + `" begins with 0X, where 0x belongs`
	if _, err := site.DecodeAddress("owner", "0X"+alice[2:]); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
