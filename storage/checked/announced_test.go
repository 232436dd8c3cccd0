package checked_test

import (
	"errors"
	"testing"

	"github.com/followpress/followpress/internal/testenv/testkey"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/storage/checked"
)

// During an announcement, a note covers only its own root, not one that somebody else has put.
func TestARootBesideAnAnnouncement(t *testing.T) {
	p := testkey.New(t, origin)
	yesterday, today := p.Sign(t, siteOf(t, 23, 50, 1), 1), p.Sign(t, siteOf(t, 24, 50, 1), 2)
	for _, hasNote := range []bool{true, false} {
		b := newBucket(t, yesterday)
		b.put(announced(t, today))
		b.put(siteOf(t, 25, 0, 1)) // an unsigned site
		if !hasNote {
			b.remove(note.Key)
		}
		if s, err := checked.Open(t.Context(), b.store(), p.Keys, checked.Options{}); !errors.Is(err, checked.ErrBetween) {
			t.Errorf("with the note of another root (%t): got %v and %v, want ErrBetween", hasNote, s, err)
		}
		b.put(only(today, site.RootKey))
		if s, err := checked.Open(t.Context(), b.store(), p.Keys, checked.Options{}); err != nil || string(s.RootBody()) != today[site.RootKey] {
			t.Errorf("with the announced root (%t): got %v, want it", hasNote, err)
		}
	}
}

// A reader that allows a rollback accepts an older site, but no objects of the site before it, even if that one is
// announced again.
func TestAnOldSiteIsNotAnnounced(t *testing.T) {
	p := testkey.New(t, origin)
	yesterday, today := p.Sign(t, siteOf(t, 23, 50, 1), 1), p.Sign(t, siteOf(t, 24, 50, 1), 2)
	b := newBucket(t, today)
	b.put(announced(t, yesterday))
	b.put(only(yesterday, detailsOf(60)))
	s, err := checked.Open(t.Context(), b.store(), p.Keys, checked.Options{AllowRollback: true})
	if err != nil {
		t.Fatal(err)
	}
	if body, err := s.Get(t.Context(), detailsOf(60)); !errors.Is(err, checked.ErrAltered) {
		t.Errorf("got %q and %v, want ErrAltered", body, err)
	}
}
