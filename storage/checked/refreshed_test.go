package checked_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/internal/testenv/testkey"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/site/refresh"
	"github.com/followpress/followpress/storage/checked"
)

// A refreshed object is accepted only if a signed entry states that this body replaced the
// manifest's.
func TestRefreshedObjects(t *testing.T) {
	publisher, refresher, thief := testkey.New(t, origin), testkey.New(t, "refresher"), testkey.New(t, "refresher")
	s := publisher.Sign(t, siteOf(t, 1, 50, 1), 1)
	key, other := detailsOf(7), detailsOf(8)
	const body = `{"refreshed":true}`
	entry := func(put, from string) string {
		kept, err := refresh.KeepCopy([]byte(from), []byte(put), nil)
		if err != nil {
			t.Fatal(err)
		}
		return string(kept)
	}
	signed := func(k testkey.Key, key site.Key, entry string) string {
		made, err := note.SignEntry(key, time.Now(), []byte(entry), k.Signer)
		if err != nil {
			t.Fatal(err)
		}
		return string(made)
	}
	const at, elsewhere = site.Key("_refresh/details/7"), site.Key("_refresh/details/8")
	right := entry(body, s[key])
	for name, c := range map[string]struct {
		put  memsite.Site
		keys note.Keys
		good bool
	}{
		"signed":                                 {memsite.Site{key: body, at: signed(refresher, at, right)}, refresher.Keys, true},
		"signed, of a reader without that key":   {memsite.Site{key: body, at: signed(refresher, at, right)}, note.Keys{}, false},
		"signed by the key of the site":          {memsite.Site{key: body, at: signed(publisher, at, right)}, refresher.Keys, false},
		"signed by another key of that name":     {memsite.Site{key: body, at: signed(thief, at, right)}, refresher.Keys, false},
		"not signed":                             {memsite.Site{key: body, at: right}, refresher.Keys, false},
		"signed of another object":               {memsite.Site{key: body, at: signed(refresher, elsewhere, right)}, refresher.Keys, false},
		"another body":                           {memsite.Site{key: body + " ", at: signed(refresher, at, right)}, refresher.Keys, false},
		"in place of what another site had":      {memsite.Site{key: body, at: signed(refresher, at, entry(body, "older"))}, refresher.Keys, false},
		"put under another key":                  {memsite.Site{other: body, at: signed(refresher, at, right)}, refresher.Keys, false},
		"with the same MD5, as the entry says":   {memsite.Site{key: body, at: signed(refresher, at, strings.Replace(right, site.Sum256([]byte(body)).String(), site.Sum256(nil).String(), 1))}, refresher.Keys, false},
		"as it was, and an entry that is broken": {memsite.Site{key: s[key], at: "{"}, refresher.Keys, true},
	} {
		b := newBucket(t, s)
		b.put(c.put)
		r, err := checked.Open(t.Context(), b.store(), publisher.Keys, checked.Options{Refreshers: c.keys})
		if err != nil {
			t.Fatal(err)
		}
		for read := range c.put {
			if strings.HasPrefix(string(read), "_refresh/") {
				continue
			}
			got, err := r.Get(t.Context(), read)
			if c.good && (err != nil || string(got) != c.put[read]) || !c.good && !errors.Is(err, checked.ErrAltered) {
				t.Errorf("%s: got %q, %v, want it accepted: %v", name, got, err, c.good)
			}
		}
	}
}
