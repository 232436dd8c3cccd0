package note

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	json "github.com/goccy/go-json"
	"golang.org/x/mod/sumdb/note"

	"github.com/followpress/followpress/site"
)

// entryKind is the first line of the signed text about an entry of a refresh.
const entryKind = "followpress refresh 1"

// entryMember is the start of the member that SignEntry adds, up to its value.
const entryMember = `,"note":`

// entryText returns the signed text about an entry: four lines.
func entryText(key site.Key, at string, entry []byte) string {
	return fmt.Sprintf("%s\n%s\n%s\n%s\n", entryKind, key, at, site.Sum256(entry))
}

// SignEntry signs an entry below site.RefreshPrefix, which is a JSON object, and appends the signed note as its
// member note. The text of the note has four lines:
//
//	followpress refresh 1
//	_refresh/details/7
//	2026-11-24T00:00:00Z
//	the SHA-256 of the entry without the member, in hexadecimal digits
func SignEntry(key site.Key, at time.Time, entry []byte, signer Signer) ([]byte, error) {
	signed, err := note.Sign(&note.Note{Text: entryText(key, at.UTC().Format(time.RFC3339), entry)}, signer)
	if err != nil {
		return nil, fmt.Errorf("sign %s: %w", key, err)
	}
	return withMember(entry, signed)
}

// withMember appends the member with the signed note to an entry.
func withMember(entry, signed []byte) ([]byte, error) {
	open, ok := bytes.CutSuffix(entry, []byte("}"))
	if !ok {
		return nil, errors.New("sign an entry: not a JSON object")
	}
	value, err := json.MarshalWithOption(string(signed), json.DisableHTMLEscape())
	if err != nil {
		return nil, fmt.Errorf("sign an entry: %w", err)
	}
	return append(slices.Concat(open, []byte(entryMember), value), '}'), nil
}

// OpenEntry checks a result of SignEntry for a key, and returns the entry as it was signed. The error wraps
// ErrUnsigned if none of the keys has signed it, and ErrForged or ErrAhead in the same cases as Open.
func (k Keys) OpenEntry(key site.Key, signed []byte, now time.Time) ([]byte, error) {
	fail := func(err error) ([]byte, error) { return nil, fmt.Errorf("read %s: %w", key, err) }
	at := bytes.LastIndex(signed, []byte(entryMember))
	if at < 0 || len(signed)-at > 2*MaxBytes {
		return fail(ErrUnsigned)
	}
	entry := append(bytes.Clone(signed[:at]), '}')
	var member struct {
		Note string `json:"note"`
	}
	if err := json.Unmarshal(append([]byte{'{'}, signed[at+1:]...), &member); err != nil {
		return fail(ErrUnsigned)
	}
	if encoded, err := withMember(entry, []byte(member.Note)); err != nil || !bytes.Equal(encoded, signed) {
		return fail(ErrUnsigned)
	}
	text, _, err := k.openText([]byte(member.Note))
	if err != nil {
		return fail(err)
	}
	lines := append(strings.Split(text, "\n"), "", "", "")
	when, err := time.Parse(time.RFC3339, lines[2])
	switch {
	case err != nil || text != entryText(key, lines[2], entry):
		return fail(fmt.Errorf("the note is about something else: %w", ErrForged))
	case when.After(now.Add(MaxAhead)):
		return fail(fmt.Errorf("signed at %s: %w", lines[2], ErrAhead))
	}
	return entry, nil
}
