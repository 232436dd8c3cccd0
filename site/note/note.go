// Package note is what a publisher signs of a site, and how readers check it: a signed note
// (golang.org/x/mod/sumdb/note, which docs call by its place in C2SP, signed-note) with Ed25519 signatures.
//
// The text of a note is five lines:
//
//	followpress site 1
//	follow.example
//	1795478400
//	2026-11-24T00:00:00Z
//	the SHA-256 of _site, in hexadecimal digits
//
// The second line is the origin: which site it is, so that the root of one site is not taken for that of another. It is
// the name of the key that signed it first. The third is a counter, which grows with each root that is published under
// the origin: the Unix time in seconds, or one more than the last. A reader refuses a smaller one than it has seen of the
// keys that it trusts, and one that is more than MaxAhead ahead of its clock: else who stole a key could use up all
// counters. The fourth is as_of of the root.
//
// The API may change in any release.
package note

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/followpress/followpress/site"
)

// Key is where a site keeps its note.
const Key = site.NoteKey

// MaxBytes bounds a signed note: its text, and a hundred signatures.
const MaxBytes = 16 << 10

// MaxAhead is how far a counter may be ahead of the clock of who reads or publishes it.
const MaxAhead = site.MaxAhead

// kind is the first line, which no other signed text begins with.
const kind = "followpress site 1"

// A Note says which root a site has.
type Note struct {
	Origin  string // of the site: the name of a key
	Counter uint64 // greater for each root under the origin, from 1
	AsOf    string // of the root, RFC 3339
	Root    site.SHA256
}

// Errors for callers to tell apart.
var (
	// ErrUnsigned says that no key that the reader knows has signed a note.
	ErrUnsigned = errors.New("no known key has signed it")
	// ErrForged says that a signature in the name of a known key is not one of that key.
	ErrForged = errors.New("a signature is not that of its key")
	// ErrOtherRoot says that a note is about another root.
	ErrOtherRoot = errors.New("the note is about another root")
	// ErrAhead says that a counter is more than MaxAhead ahead of the clock.
	ErrAhead = errors.New("its counter is more than a day ahead of the clock")
	// ErrOlder says that a site is older than one that was seen before.
	ErrOlder = errors.New("the site is older than one that was seen before")
)

// Text is what is signed.
func (n Note) Text() string {
	return fmt.Sprintf("%s\n%s\n%d\n%s\n%s\n", kind, n.Origin, n.Counter, n.AsOf, n.Root)
}

// parse is the inverse of Text.
func parse(text string) (n Note, err error) {
	lines := strings.Split(text, "\n")
	if len(lines) != 6 || lines[0] != kind {
		return n, fmt.Errorf("its text is not the five lines that begin with %q", kind)
	}
	n.Origin, n.AsOf = lines[1], lines[3]
	if n.Counter, err = strconv.ParseUint(lines[2], 10, 53); err != nil || n.Counter == 0 { // browsers count to 2^53
		return n, fmt.Errorf("its third line, %q, is no counter", lines[2])
	}
	if _, err := time.Parse(time.RFC3339, n.AsOf); err != nil {
		return n, fmt.Errorf("its fourth line: %w", err)
	}
	if err := n.Root.UnmarshalText([]byte(lines[4])); err != nil {
		return n, fmt.Errorf("its fifth line: %w", err)
	}
	if n.Text() != text {
		return n, errors.New("its text is not written as notes are")
	}
	return n, nil
}

// Of is the note of a root that follows one with that counter.
func Of(origin string, counter uint64, asOf string, root []byte) Note {
	return Note{Origin: origin, Counter: counter, AsOf: asOf, Root: site.Sum256(root)}
}

// Names reports an error that wraps ErrOtherRoot unless the note is about the root with those bytes.
func (n Note) Names(root []byte) error {
	if got := site.Sum256(root); got != n.Root {
		return fmt.Errorf("%s names the root %s, and %s is %s: %w", Key, n.Root, site.RootKey, got, ErrOtherRoot)
	}
	return nil
}

// Ahead reports an error that wraps ErrAhead if the counter is more than MaxAhead after now.
func (n Note) Ahead(now time.Time) error {
	if most := max(0, now.Unix()) + int64(MaxAhead/time.Second); n.Counter > uint64(most) {
		return fmt.Errorf("%w: it is %d, and the clock %d: set the clock, or make a new key if somebody else has this one", ErrAhead, n.Counter, now.Unix())
	}
	return nil
}

// After reports an error that wraps ErrOlder if the note is older than one that was seen before: by its counter, or by
// as_of. The zero Note is older than all.
func (n Note) After(seen Note) error {
	if seen.Counter == 0 || n.Root == seen.Root && n.Counter == seen.Counter {
		return nil
	}
	was, err := time.Parse(time.RFC3339, seen.AsOf)
	is, err2 := time.Parse(time.RFC3339, n.AsOf)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	if n.Counter <= seen.Counter || is.Before(was) {
		return fmt.Errorf("%s has the counter %d as of %s, and %d as of %s was seen: %w", Key, n.Counter, n.AsOf, seen.Counter, seen.AsOf, ErrOlder)
	}
	return nil
}

// NewKey makes a key: what signs, which is a secret, and what checks. The error says why CheckName refuses the name.
func NewKey(name string) (private, public string, err error) {
	if err := CheckName(name); err != nil {
		return "", "", err
	}
	if private, public, err = note.GenerateKey(rand.Reader, name); err != nil {
		return "", "", fmt.Errorf("make a key: %w", err)
	}
	return private, public, nil
}

// A Signer signs texts. That of ParsePrivate is one; others ask a program.
type Signer = note.Signer

// ParsePrivate reads the secret key of NewKey.
func ParsePrivate(text string) (Signer, error) {
	text = strings.TrimSpace(text)
	if key, ok := strings.CutPrefix(text, "PRIVATE+KEY+"); ok {
		if err := checkNameOf(key); err != nil {
			return nil, fmt.Errorf("read the key: %w", err)
		}
	}
	s, err := note.NewSigner(text)
	if err != nil { // which may hold the text
		return nil, errors.New("read the key: it is none that `followpress key` made: PRIVATE+KEY+NAME+…")
	}
	return s, nil
}

// Sign returns the signed note, with a signature of each signer.
func Sign(n Note, signers ...Signer) ([]byte, error) {
	signed, err := note.Sign(&note.Note{Text: n.Text()}, signers...)
	if err != nil {
		return nil, fmt.Errorf("sign %s: %w", Key, err)
	}
	return signed, nil
}

// Keys are the keys that a reader trusts, each alone.
type Keys struct {
	verifiers []note.Verifier
}

// ParseKeys reads public keys of NewKey.
func ParseKeys(texts ...string) (Keys, error) {
	var k Keys
	for _, text := range texts {
		if strings.Contains(text, "PRIVATE+KEY") {
			return Keys{}, errors.New("read a key: it is a secret key, where a public one is meant: use the public one, and make a new key if others could see this one")
		}
		v, err := newVerifier(strings.TrimSpace(text))
		if err != nil {
			return Keys{}, err
		}
		k.verifiers = append(k.verifiers, v)
	}
	return k, nil
}

// newVerifier reads one public key.
func newVerifier(text string) (note.Verifier, error) {
	if err := checkNameOf(text); err != nil {
		return nil, fmt.Errorf("read a key: %w", err)
	}
	v, err := note.NewVerifier(text)
	if err != nil {
		return nil, fmt.Errorf("read the key %s: %w: use what `followpress key` printed: NAME+…", site.Quoted(text), err)
	}
	return v, nil
}

// None reports whether there are no keys, so that nothing can be checked.
func (k Keys) None() bool { return len(k.verifiers) == 0 }

// Open checks a signed note, and returns what it says and the names of the known keys that have signed it. Signatures of
// unknown keys are ignored. The error wraps ErrUnsigned, ErrForged or ErrAhead, or says that it is no note of a site
// whose origin is the name of a known key.
func (k Keys) Open(signed []byte, now time.Time) (n Note, by []string, err error) {
	fail := func(err error) (Note, []string, error) {
		return Note{}, nil, fmt.Errorf("read %s: %w", Key, err)
	}
	if len(signed) > MaxBytes {
		return fail(fmt.Errorf("%d bytes, more than %d KiB", len(signed), MaxBytes>>10))
	}
	text, by, err := k.openText(signed)
	if err != nil {
		return fail(err)
	}
	if n, err = parse(text); err != nil {
		return fail(err)
	}
	if err := n.Ahead(now); err != nil {
		return fail(err)
	}
	if !slices.ContainsFunc(k.verifiers, func(v note.Verifier) bool { return v.Name() == n.Origin }) {
		return fail(fmt.Errorf("it is of the site %s, and no known key has that name: %w", site.Quoted(n.Origin), ErrUnsigned))
	}
	return n, by, nil
}

// openText checks the signatures of a note, and returns its text and the names of the known keys that have signed it.
func (k Keys) openText(signed []byte) (text string, by []string, err error) {
	opened, err := note.Open(signed, note.VerifierList(k.verifiers...))
	var unverified *note.UnverifiedNoteError
	var invalid *note.InvalidSignatureError
	switch {
	case errors.As(err, &unverified):
		return "", nil, ErrUnsigned
	case errors.As(err, &invalid):
		return "", nil, fmt.Errorf("%w: %s", ErrForged, invalid.Name)
	case err != nil:
		return "", nil, err
	}
	for _, s := range opened.Sigs {
		by = append(by, s.Name)
	}
	return opened.Text, by, nil
}

// Sole reports whether a signed note has a signature of each of the keys, and of no other.
func (k Keys) Sole(signed []byte) bool {
	if len(signed) > MaxBytes {
		return false
	}
	opened, err := note.Open(signed, note.VerifierList(k.verifiers...))
	return err == nil && len(opened.Sigs) == len(k.verifiers) && len(opened.UnverifiedSigs) == 0
}

// Public is the public key of a secret one, which NewKey made.
func Public(private string) (string, error) {
	signer, err := ParsePrivate(private)
	if err != nil {
		return "", err
	}
	_, key, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(private), "PRIVATE+KEY+"), "+")
	_, encoded, _ := strings.Cut(key, "+")
	seed, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(seed) != 1+ed25519.SeedSize { // ParsePrivate has checked it
		return "", errors.New("read the key: it is none of Ed25519")
	}
	return note.NewEd25519VerifierKey(signer.Name(), ed25519.NewKeyFromSeed(seed[1:]).Public().(ed25519.PublicKey))
}
