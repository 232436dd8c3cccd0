package note_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/internal/testenv/testkey"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
)

const entryKey site.Key = "_refresh/details/7"

func signedEntry(t testing.TB, k testkey.Key, at time.Time, entry string) string {
	t.Helper()
	signed, err := note.SignEntry(entryKey, at, []byte(entry), k.Signer)
	if err != nil {
		t.Fatal(err)
	}
	return string(signed)
}

// An entry is accepted only unchanged, under its own key, and signed by a known key.
func TestOpenEntry(t *testing.T) {
	now := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
	mine, other := testkey.New(t, "refresher"), testkey.New(t, "refresher")
	const entry = `{"name":"a,\"note\":\"<b>","writes":1}`
	signed := signedEntry(t, mine, now, entry)
	member := signed[strings.LastIndex(signed, `,"note":`):]
	ofSite, err := note.Sign(note.Of("refresher", 1, "2026-11-24T00:00:00Z", nil), mine.Signer)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		key  site.Key
		body string
		err  error
	}{
		"as it was signed":            {entryKey, signed, nil},
		"under another key":           {"_refresh/details/8", signed, note.ErrForged},
		"without a note":              {entryKey, entry, note.ErrUnsigned},
		"with a note of nobody":       {entryKey, `{"a":1,"note":` + strconv.Quote("followpress refresh 1\n\n— a AAAAAAAA\n") + `}`, note.ErrUnsigned},
		"with no body":                {entryKey, "", note.ErrUnsigned},
		"by another key of that name": {entryKey, signedEntry(t, other, now, entry), note.ErrUnsigned},
		"another body":                {entryKey, strings.Replace(signed, `"writes":1`, `"writes":2`, 1), note.ErrForged},
		"a member put in":             {entryKey, strings.Replace(signed, `{"name"`, `{"x":1,"name"`, 1), note.ErrForged},
		"a member after the note":     {entryKey, strings.TrimSuffix(signed, "}") + `,"name":"b"}`, note.ErrUnsigned},
		"a second note":               {entryKey, strings.TrimSuffix(signed, "}") + member, note.ErrForged},
		"a space after the note":      {entryKey, signed + " ", note.ErrUnsigned},
		"the note written otherwise":  {entryKey, strings.Replace(signed, `followpress refresh`, `followpress\u0020refresh`, 1), note.ErrUnsigned},
		"signed in two days":          {entryKey, signedEntry(t, mine, now.Add(48*time.Hour), entry), note.ErrAhead},
		"the note of a site":          {entryKey, `{"a":1,"note":` + strconv.Quote(string(ofSite)) + `}`, note.ErrForged},
	} {
		got, err := mine.Keys.OpenEntry(c.key, []byte(c.body), now)
		if !errors.Is(err, c.err) || c.err == nil && string(got) != entry || c.err != nil && got != nil {
			t.Errorf("%s: got %q, %v, want %v", name, got, err, c.err)
		}
	}
	if _, err := (note.Keys{}).OpenEntry(entryKey, []byte(signed), now); !errors.Is(err, note.ErrUnsigned) {
		t.Errorf("without keys: got %v, want %v", err, note.ErrUnsigned)
	}
	if _, _, err := mine.Keys.Open([]byte(signed), now); err == nil {
		t.Error("an entry was taken for the note of a site")
	}
}

// FuzzOpenEntry: every entry that opens was signed.
func FuzzOpenEntry(f *testing.F) {
	now := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
	k := testkey.New(f, "refresher")
	signed := signedEntry(f, k, now, `{"a":1}`)
	f.Add(signed)
	f.Add(`{"a":1,"note":"x"}`)
	f.Fuzz(func(t *testing.T, body string) {
		if entry, err := k.Keys.OpenEntry(entryKey, []byte(body), now); err == nil && string(entry) != `{"a":1}` {
			t.Errorf("got %q of %q, want only the signed part", entry, body)
		}
	})
}
