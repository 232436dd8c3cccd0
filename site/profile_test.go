package site_test

import (
	"reflect"
	"strings"
	"testing"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
)

// TestWithoutLongTexts: a text of exactly as many bytes as allowed stays, one more does not.
func TestWithoutLongTexts(t *testing.T) {
	const most = 300
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
			`{"records":{"b":"<&>","a":"` + long + `"},"chains":{"60":"` + long + `"},"errors":{"c":"` + long + `","d":1.50}}`,
			`{"records":{"b":"<&>"},"errors":{"d":1.50}}`,
			[]site.LongText{{"records.a", 301}, {"chains.60", 301}, {"errors.c", 301}},
		},
		"the name of an entry":       {`{"records":{"` + long + `":"x","y":1}}`, `{"records":{"y":1}}`, []site.LongText{{"records." + long[:80] + "…", 301}}},
		"a value that is no text":    {`{"records":{"a":["` + long + `"],"b":[1, 2]}}`, `{"records":{"b":[1,2]}}`, []site.LongText{{"records.a", 305}}},
		"many texts, none too long":  {`{"records":{"a":"` + fits + `","b":"` + fits + `"}}`, `{"records":{"a":"` + fits + `","b":"` + fits + `"}}`, nil},
		"deep in a value":            {`{"records":{"a":{"b":{"c":"` + long + `"}}}}`, `{}`, []site.LongText{{"records.a", 315}}},
		"a name cut in a character":  {`{"records":{"a` + fits + `":""}}`, `{}`, []site.LongText{{"records.a" + strings.Repeat("é", 39) + "…", 301}}},
		"members that are not there": {`{"records":null,"chains":{}}`, `{}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, left := profileOf(t, tc.in).WithoutLongTexts(most)
			if want := profileOf(t, tc.want); !reflect.DeepEqual(got, want) {
				t.Errorf("got  %s\nwant %s", encode(t, got), encode(t, want))
			}
			if !reflect.DeepEqual(left, tc.long) {
				t.Errorf("left out: got %v, want %v", left, tc.long)
			}
			if again, left := got.WithoutLongTexts(most); !reflect.DeepEqual(again, got) || left != nil {
				t.Errorf("the second time: got %s without %v, want no change", encode(t, again), left)
			}
		})
	}
}

// profileOf is an ens object, normalised.
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
