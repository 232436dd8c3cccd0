// Package note signs sites and checks their signatures. It uses signed notes (golang.org/x/mod/sumdb/note, specified
// by C2SP as signed-note) with Ed25519 signatures.
//
// The text of a note has five lines:
//
//	followpress site 1
//	follow.example
//	1795478400
//	2026-11-24T00:00:00Z
//	the SHA-256 of _site, in hexadecimal digits
//
// The second line is the origin, the name of the key that first signed the site. It prevents that the root of one
// site passes for that of another. The third line is a counter, which grows with each root published under the
// origin: the Unix time in seconds, or the last counter plus one. A reader refuses a smaller counter than it has seen
// before, and one that is more than MaxAhead ahead of its clock. Otherwise the thief of a key could use up all
// counters. The fourth line is as_of of the root.
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

// Key is the key of a site's note.
const Key = site.NoteKey

// MaxBytes is the maximum size of a signed note: its text and a hundred signatures.
const MaxBytes = 16 << 10

// MaxAhead is how far a counter may be ahead of the clock of a reader or publisher.
const MaxAhead = site.MaxAhead

// kind is the first line of a note. No other signed text begins with it.
const kind = "followpress site 1"

// A Note names the root of a site.
type Note struct {
	Origin  string // origin of the site: the name of a key
	Counter uint64 // increases with each root under the origin, from 1
	AsOf    string // as_of of the root, RFC 3339
	Root    site.SHA256
}

// Errors that callers distinguish.
var (
	// ErrUnsigned means that none of the known keys has signed a note.
	ErrUnsigned = errors.New("no known key has signed it")
	// ErrForged means that a signature in the name of a known key is invalid.
	ErrForged = errors.New("a signature is not that of its key")
	// ErrOtherRoot means that a note names another root.
	ErrOtherRoot = errors.New("the note is about another root")
	// ErrAhead means that a counter is more than MaxAhead ahead of the clock.
	ErrAhead = errors.New("its counter is more than a day ahead of the clock")
	// ErrOlder means that a site is older than one that was seen before.
	ErrOlder = errors.New("the site is older than one that was seen before")
)

// Text returns the signed text.
func (n Note) Text() string {
	return fmt.Sprintf("%s\n%s\n%d\n%s\n%s\n", kind, n.Origin, n.Counter, n.AsOf, n.Root)
}

// parse returns the inverse of Text.
func parse(text string) (n Note, err error) {
	lines := strings.Split(text, "\n")
	if len(lines) != 6 || lines[0] != kind {
		return n, fmt.Errorf("its text does not have five lines that begin with %q", kind)
	}
	n.Origin, n.AsOf = lines[1], lines[3]
	if n.Counter, err = strconv.ParseUint(lines[2], 10, 53); err != nil || n.Counter == 0 { // browsers count to 2^53
		return n, fmt.Errorf("its third line, %q, is not a counter", lines[2])
	}
	if _, err := time.Parse(time.RFC3339, n.AsOf); err != nil {
		return n, fmt.Errorf("its fourth line: %w", err)
	}
	if err := n.Root.UnmarshalText([]byte(lines[4])); err != nil {
		return n, fmt.Errorf("its fifth line: %w", err)
	}
	if n.Text() != text {
		return n, errors.New("its text is not in canonical form")
	}
	return n, nil
}

// Of returns the note of a root with that counter.
func Of(origin string, counter uint64, asOf string, root []byte) Note {
	return Note{Origin: origin, Counter: counter, AsOf: asOf, Root: site.Sum256(root)}
}

// Names returns an error that wraps ErrOtherRoot unless the note names the given root.
func (n Note) Names(root []byte) error {
	if got := site.Sum256(root); got != n.Root {
		return fmt.Errorf("%s names the root %s, and %s is %s: %w", Key, n.Root, site.RootKey, got, ErrOtherRoot)
	}
	return nil
}

// Ahead returns an error that wraps ErrAhead if the counter is more than MaxAhead after now.
func (n Note) Ahead(now time.Time) error {
	if most := max(0, now.Unix()) + int64(MaxAhead/time.Second); n.Counter > uint64(most) {
		return fmt.Errorf("%w: counter %d, clock %d; set the clock, or make a new key if somebody else has this one", ErrAhead, n.Counter, now.Unix())
	}
	return nil
}

// After returns an error that wraps ErrOlder if the note has a smaller counter or an earlier as_of than the one seen
// before. The zero Note is older than all.
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

// NewKey generates a key pair: the private key signs, the public one verifies. It fails if CheckName rejects the
// name.
func NewKey(name string) (private, public string, err error) {
	if err := CheckName(name); err != nil {
		return "", "", err
	}
	if private, public, err = note.GenerateKey(rand.Reader, name); err != nil {
		return "", "", fmt.Errorf("make a key: %w", err)
	}
	return private, public, nil
}

// A Signer signs texts, with a key from ParsePrivate or External.
type Signer = note.Signer

// ParsePrivate parses the private key of NewKey.
func ParsePrivate(text string) (Signer, error) {
	text = strings.TrimSpace(text)
	if key, ok := strings.CutPrefix(text, "PRIVATE+KEY+"); ok {
		if err := checkNameOf(key); err != nil {
			return nil, fmt.Errorf("read the key: %w", err)
		}
	}
	s, err := note.NewSigner(text)
	if err != nil { // err may contain the key
		return nil, errors.New("read the key: not a private key from `followpress key` (PRIVATE+KEY+NAME+…)")
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

// Keys are public keys. A reader trusts each of them.
type Keys struct {
	verifiers []note.Verifier
}

// ParseKeys parses public keys of NewKey.
func ParseKeys(texts ...string) (Keys, error) {
	var k Keys
	for _, text := range texts {
		if strings.Contains(text, "PRIVATE+KEY") {
			return Keys{}, errors.New("read a key: got a secret key, expected a public one; make a new key if others may have seen this one")
		}
		v, err := newVerifier(strings.TrimSpace(text))
		if err != nil {
			return Keys{}, err
		}
		k.verifiers = append(k.verifiers, v)
	}
	return k, nil
}

// newVerifier parses a public key.
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

// None reports whether there are no keys.
func (k Keys) None() bool { return len(k.verifiers) == 0 }

// Open checks a signed note, and returns it and the names of the known keys that signed it. It
// ignores signatures of unknown keys. The error wraps ErrUnsigned, ErrForged or ErrAhead, or
// describes why the note is malformed. The origin must be the name of a known key; otherwise the
// error is ErrUnsigned.
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

// openText checks the signatures of a note, and returns its text and the names of the known keys that signed it.
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

// Sole reports whether a signed note has a signature of each of the keys, and no other.
func (k Keys) Sole(signed []byte) bool {
	if len(signed) > MaxBytes {
		return false
	}
	opened, err := note.Open(signed, note.VerifierList(k.verifiers...))
	return err == nil && len(opened.Sigs) == len(k.verifiers) && len(opened.UnverifiedSigs) == 0
}

// Public returns the public key of a private key of NewKey.
func Public(private string) (string, error) {
	signer, err := ParsePrivate(private)
	if err != nil {
		return "", err
	}
	_, key, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(private), "PRIVATE+KEY+"), "+")
	_, encoded, _ := strings.Cut(key, "+")
	seed, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(seed) != 1+ed25519.SeedSize { // ParsePrivate would have failed
		return "", errors.New("read the key: not an Ed25519 key")
	}
	return note.NewEd25519VerifierKey(signer.Name(), ed25519.NewKeyFromSeed(seed[1:]).Public().(ed25519.PublicKey))
}
