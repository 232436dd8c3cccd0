// Package testkey provides keys for tests, and signs sites with them.
//
// Functions that take a testing.TB end its test on failure.
package testkey

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
)

// A Key signs sites, as a publisher does.
type Key struct {
	Signer          note.Signer
	Private, Public string
	Keys            note.Keys // keys of a reader that trusts only this key
}

// New makes a key with a name.
func New(t testing.TB, name string) Key {
	t.Helper()
	var k Key
	var err error
	if k.Private, k.Public, err = note.NewKey(name); err != nil {
		t.Fatal(err)
	}
	if k.Signer, err = note.ParsePrivate(k.Private); err != nil {
		t.Fatal(err)
	}
	if k.Keys, err = note.ParseKeys(k.Public); err != nil {
		t.Fatal(err)
	}
	return k
}

// Note returns the note of a site, signed with this key and with others of the same name.
func (k Key) Note(t testing.TB, s memsite.Site, counter uint64, others ...Key) string {
	t.Helper()
	signers := []note.Signer{k.Signer}
	for _, other := range others {
		signers = append(signers, other.Signer)
	}
	signed, err := note.Sign(note.Of(k.Signer.Name(), counter, s.Root(t).AsOf, []byte(s[site.RootKey])), signers...)
	if err != nil {
		t.Fatal(err)
	}
	return string(signed)
}

// Sign returns the site with its note.
func (k Key) Sign(t testing.TB, s memsite.Site, counter uint64, others ...Key) memsite.Site {
	t.Helper()
	signed := maps.Clone(s)
	signed[note.Key] = k.Note(t, s, counter, others...)
	return signed
}

// File returns a new file with the secret key, as followpress key writes it.
func (k Key) File(t testing.TB) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(name, []byte(k.Private+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
