package refresh_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/refresh"
)

const (
	someAddress  = "0x00000000000000000000000000000000000000aa"
	otherAddress = "0x00000000000000000000000000000000000000bb"
	someEvent    = `{"id":7,"fancy_id":"f","name":"n","event_url":"u","image_url":"i","country":"","city":"","description":"d","year":2024,"start_date":"s","end_date":"e","expiry_date":"x"}`
)

// An upstream's answer is converted to the form of the API, or refused.
func TestDecodeProfile(t *testing.T) {
	account, err := site.ParseAddress(someAddress)
	if err != nil {
		t.Fatal(err)
	}
	fetched := time.UnixMilli(5000)
	empty := `"header":"","display":"","records":{},"chains":{},"fresh":`
	for name, c := range map[string]struct{ in, want, reason string }{
		"whole": {
			in: ` {"name":"a.eth","avatar":"v","header":"h","display":"A","records":{"b":"2", "a":"<1>"},"chains":{"eth":"0x"},"fresh":9,"resolver":"r","errors":{},"more":1} `,
			want: `{"address":"` + someAddress + `","name":"a.eth","avatar":"v","header":"h","display":"A","records":{"a":"<1>","b":"2"},` +
				`"chains":{"eth":"0x"},"fresh":9,"resolver":"r","errors":{}}`,
		},
		"its own address": {in: `{"address":"0x00000000000000000000000000000000000000AA","fresh":1}`,
			want: `{"address":"` + someAddress + `","name":"","avatar":"",` + empty + `1,"resolver":"","errors":{}}`},
		"hardly anything in it": {in: `{"name":"","errors":{}}`, want: `{"address":"` + someAddress + `","name":"","avatar":"",` + empty + `5000,"resolver":"","errors":{}}`},
		"nulls": {in: `{"name":null,"records":null,"chains":{},"fresh":null}`,
			want: `{"address":"` + someAddress + `","name":"","avatar":"",` + empty + `5000,"resolver":"","errors":{}}`},
		"somebody else's":   {in: `{"address":"` + otherAddress + `"}`, reason: "not " + someAddress},
		"no address":        {in: `{"address":"x"}`, reason: `address: "x" is not an address`},
		"nothing in it":     {in: `{}`, reason: "without any member of a profile"},
		"a report":          {in: `{"error":"rate limited","address":"` + someAddress + `"}`, reason: "without any member of a profile"},
		"no JSON":           {in: `<html>`, reason: "not a JSON object"},
		"cut off":           {in: `{"name":"a`, reason: "bad JSON"},
		"array":             {in: `[]`, reason: "not a JSON object"},
		"wrong type":        {in: `{"name":7}`, reason: "name"},
		"records no object": {in: `{"records":["a"]}`, reason: "ens.records"},
		"half a character":  {in: `{"name":"\ud800"}`, reason: "surrogate"},
		"not UTF-8":         {in: "{\"name\":\"\xff\"}", reason: "UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := refresh.DecodeProfile([]byte(strings.TrimSpace(c.in)), account, fetched)
			if c.reason != "" {
				if err == nil || !strings.Contains(err.Error(), c.reason) {
					t.Errorf("got error %v, want one that says %q", err, c.reason)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			body := encode(t, p)
			if body != c.want {
				t.Errorf("got  %s\nwant %s", body, c.want)
			}
			// What a refresh has kept is read like what an upstream sent.
			again, err := refresh.DecodeProfile([]byte(body), account, time.Time{})
			if text := encode(t, again); err != nil || text != c.want {
				t.Errorf("read again: got %s, %v, want %s", text, err, c.want)
			}
		})
	}
}

// TestUpdate: a member omitted by an upstream keeps its stored value; null and empty values clear
// it.
func TestUpdate(t *testing.T) {
	account, err := site.ParseAddress(someAddress)
	if err != nil {
		t.Fatal(err)
	}
	fetched := time.UnixMilli(5000)
	const stored = `"name":"a.eth","avatar":"v","header":"h","display":"A","records":{"a":"1"},"chains":{"eth":"0x"},"fresh":9,"resolver":"r","errors":{"e":"f"}}`
	was, err := refresh.DecodeProfile([]byte("{"+stored), account, fetched)
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		`{"fresh":7}`:      strings.Replace(stored, `:9,`, `:7,`, 1),
		`{"name":"b.eth"}`: strings.NewReplacer(`a.eth`, `b.eth`, `:9,`, `:5000,`).Replace(stored),
		`{"name":null,"Avatar":"","HEADER":null,"display":"","records":null,"chains":{},"resolver":null,"errors":{}}`: `"name":"","avatar":"","header":"","display":"","records":{},"chains":{},"fresh":5000,"resolver":"","errors":{}}`,
		`{"records":{"b":null,"c":2,"d":"3"},"errors":null}`:                                                          strings.NewReplacer(`{"a":"1"}`, `{"d":"3"}`, `{"e":"f"}`, `{}`, `:9,`, `:5000,`).Replace(stored),
		`{"header":null}`: strings.NewReplacer(`"h"`, `""`, `:9,`, `:5000,`).Replace(stored),
	} {
		u, err := refresh.DecodeUpdate([]byte(in), account, fetched)
		if err != nil {
			t.Fatalf("%s: %v", in, err)
		}
		if got := encode(t, u.Over(was.Profile)); got != `{"address":"`+someAddress+`",`+want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
		if got := encode(t, u.Over(site.Profile{})); !strings.Contains(got, `"records":{`) {
			t.Errorf("%s, nothing stored: got %s, want objects", in, got)
		}
	}
}

func TestDecodeCollection(t *testing.T) {
	account, err := site.ParseAddress(someAddress)
	if err != nil {
		t.Fatal(err)
	}
	good := `{"event":` + someEvent + `,"tokenId":"12","owner":"0x00000000000000000000000000000000000000AA","more":null}`
	collection, err := refresh.DecodeCollection([]byte(good), account, "7")
	if err != nil || collection.TokenID != "12" || collection.Owner != someAddress || collection.Event.Description != "d" {
		t.Errorf("got %+v, %v, want the collection of the account", collection, err)
	}
	for name, c := range map[string]struct{ in, reason string }{
		"another event":  {strings.Replace(good, `"id":7`, `"id":8`, 1), "event is 8"},
		"another owner":  {strings.Replace(good, "AA", "bb", 1), "not " + someAddress},
		"token":          {strings.Replace(good, `"12"`, `"012"`, 1), "tokenId"},
		"token number":   {strings.Replace(good, `"12"`, `12`, 1), "tokenId"},
		"no event":       {`{"tokenId":"12","owner":"` + someAddress + `"}`, "event"},
		"half an event":  {strings.Replace(good, `"city":"",`, "", 1), "city: missing"},
		"not even close": {`"x"`, "not a JSON object"},
	} {
		if _, err := refresh.DecodeCollection([]byte(c.in), account, "7"); err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: got error %v, want one that says %q", name, err, c.reason)
		}
	}
}

func TestDecodeKeptBadges(t *testing.T) {
	good := `{"address":"` + someAddress + `","fetched":1,"badges":[{"eventId":"7","participated":true,"collection":{"event":` + someEvent +
		`,"tokenId":"1","owner":"` + someAddress + `"}},{"eventId":"8","participated":false,"collection":null}]}`
	kept, account, err := refresh.DecodeKeptBadges([]byte(good))
	if err != nil || account.String() != someAddress || len(kept.Badges) != 2 {
		t.Fatalf("got %+v, %v, want 2 badges of %s", kept, err, someAddress)
	}
	if body := encode(t, kept); body != good {
		t.Errorf("got  %s\nwant %s", body, good)
	}
	for _, change := range [][2]string{
		{`"fetched":1`, `"fetched":0`}, {`"address":"0x`, `"address":"1x`}, {`"eventId":"7"`, `"eventId":"07"`},
		{`"participated":true`, `"participated":false`}, {`"tokenId":"1"`, `"tokenId":""`}, {`"owner":"0x00`, `"owner":"0xff`}, {`{"address"`, `["address"`},
	} {
		if _, _, err := refresh.DecodeKeptBadges([]byte(strings.Replace(good, change[0], change[1], 1))); err == nil {
			t.Errorf("with %s: got no error, want one", change[1])
		}
	}
}

// Of the names of replaced profiles, the site's own name stays, under which it has objects, and the newest others.
// Only the profile of another site replaces it.
func TestKeepNames(t *testing.T) {
	var kept []byte
	replace := func(name string, replaced, by []byte) {
		t.Helper()
		var err error
		if kept, err = (refresh.KeptProfile{Address: someAddress, Names: []string{name}}).Keep(replaced, by, kept); err != nil {
			t.Fatal(err)
		}
	}
	rename := func(from, to string) {
		t.Helper()
		replace(from, []byte(from), []byte(to))
	}
	listed := func(when string, want ...string) {
		t.Helper()
		if got := refresh.Names(kept); !slices.Equal(got, want) {
			t.Errorf("%s: got the names %q, want %q", when, got, want)
		}
	}
	names := []string{"site", "b", "c", "site", "b", "d", "e", "f"}
	for i, name := range names[1:] {
		rename(names[i], name)
	}
	listed("after seven renames", "e", "d", "b", "site")
	for range 10 { // more refreshes than one keeps the bodies of
		rename("f", "f")
	}
	listed("once the profile keeps its name", "f", "e", "d", "site")

	rename("next", "g") // name in a site published in between
	listed("after the first rename of another site", "f", "e", "d", "next")
	names = []string{"g", "h", "i", "j", "k"}
	for i, name := range names[1:] {
		rename(names[i], name)
	}
	listed("after four more", "j", "i", "h", "next")
	replace("k", nil, nil)
	listed("after a refresh that stores nothing", "k", "j", "i", "next")
}

// TestKeepOfAnotherAccount: the profile of the list's previous account does not affect the new one.
func TestKeepOfAnotherAccount(t *testing.T) {
	const other = "0x00000000000000000000000000000000000000ff"
	type keeper interface {
		Keep(replaced, by, kept []byte) ([]byte, error)
	}
	for name, c := range map[string]struct {
		kept, next keeper
		has        string
	}{
		"badges": {refresh.KeptBadges{Address: other, Fetched: 9, Badges: []refresh.Badge{{EventID: "1"}}},
			refresh.KeptBadges{Address: someAddress, Fetched: 2, Badges: []refresh.Badge{{EventID: "2"}}}, `"eventId":"2"`},
		"profiles": {refresh.KeptProfile{Address: other, Profile: site.Profile{Name: "other", Fresh: 9}},
			refresh.KeptProfile{Address: someAddress, Profile: site.Profile{Name: "mine", Fresh: 2}}, `"name":"mine"`},
	} {
		kept, err := c.kept.Keep(nil, nil, nil)
		if err == nil {
			kept, err = c.next.Keep(nil, nil, kept)
		}
		if err != nil || !strings.Contains(string(kept), c.has) || !strings.Contains(string(kept), someAddress) {
			t.Errorf("%s: got %s, %v, want %s of %s", name, kept, err, c.has, someAddress)
		}
	}
}

// A note is kept about a copy.
type note struct{}

func (note) Keep(replaced, by, kept []byte) ([]byte, error) {
	return refresh.KeepCopy(replaced, by, kept)
}

// replacement returns the entry about a text that replaced another.
func replacement(text, from string) refresh.Replacement {
	return refresh.Replacement{
		MD5: site.Sum([]byte(text)), SHA256: site.Sum256([]byte(text)), From: site.Sum([]byte(from)), FromSHA256: site.Sum256([]byte(from)),
	}
}

// Stored replacements are unique, newest first, limited to the number of concurrent refreshes, and keep the site's
// own object as From. The fresher profile wins.
func TestKeep(t *testing.T) {
	profile := refresh.KeptProfile{Address: someAddress, Profile: site.Profile{Name: "new", Fresh: 2}}
	older := refresh.KeptProfile{Address: someAddress, Profile: site.Profile{Name: "old", Fresh: 1}}
	badges := refresh.KeptBadges{Address: someAddress, Fetched: 2, Badges: []refresh.Badge{{EventID: "2"}}}
	earlier := refresh.KeptBadges{Address: someAddress, Fetched: 1, Badges: []refresh.Badge{{EventID: "1"}}}
	type keeper interface {
		Keep(replaced, by, kept []byte) ([]byte, error)
	}
	for name, c := range map[string]struct {
		first, second keeper
		has           string
	}{
		"profiles":            {older, profile, `"name":"new"`},
		"profiles, the other": {profile, older, `"name":"new"`},
		"badges":              {earlier, badges, `"eventId":"2"`},
		"badges, the other":   {badges, earlier, `"eventId":"2"`},
		"copies":              {note{}, note{}, `"writes":2`},
	} {
		t.Run(name, func(t *testing.T) {
			check := func(kept []byte, err error, want ...string) {
				t.Helper()
				stored, readErr := refresh.Replacements(kept)
				var got []string
				for _, r := range stored {
					for _, text := range strings.Split("a b c d e f g h i j", " ") {
						if r == replacement(text, "of the site") {
							got = append(got, text)
						}
					}
				}
				if err != nil || readErr != nil || !slices.Equal(got, want) || len(stored) != len(want) {
					t.Fatalf("stored: got %v of %d (%v, %v), want %v", got, len(stored), err, readErr, want)
				}
			}
			kept, err := c.first.Keep([]byte("of the site"), []byte("a"), nil)
			check(kept, err, "a")
			kept, err = c.second.Keep([]byte("a"), []byte("b"), kept)
			if check(kept, err, "b", "a"); !strings.Contains(string(kept), c.has) {
				t.Errorf("kept: got %s, want %s", kept, c.has)
			}
			for _, text := range []string{"c", "d", "e", "f", "g", "h", "i", "j"} { // none of these is put
				if kept, err = c.first.Keep([]byte("b"), []byte(text), kept); err != nil {
					t.Fatal(err)
				}
			}
			check(kept, err, "j", "b", "i", "h", "g", "f", "e", "d")
			kept, err = c.first.Keep([]byte("j"), []byte("j"), kept)
			check(kept, err, "j", "b", "i", "h", "g", "f", "e", "d")
		})
	}
	if kept, err := profile.Keep([]byte(""), []byte("a"), []byte("damaged")); err != nil || !strings.Contains(string(kept), "new") {
		t.Errorf("over an unreadable entry: got %s, %v, want the new profile", kept, err)
	}
}

func encode(t testing.TB, value any) string {
	t.Helper()
	body, err := json.MarshalWithOption(value, json.DisableHTMLEscape())
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
