package site

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// MaxNameBytes is the maximum size in bytes of a name that can be looked up. Common file systems allow file names of
// that length.
const MaxNameBytes = 255

// emojiPresentation is U+FE0F. Name services drop it, so that an emoji with and without it is the same name.
const emojiPresentation = "\uFE0F"

// normalizeName returns the form in which names are looked up: lower case, NFC, without U+FE0F. ok is false if the
// result is empty, longer than MaxNameBytes, unsafe as a path segment, or an address.
func normalizeName(text string) (name string, ok bool) {
	if !utf8.ValidString(text) {
		return "", false
	}
	name = fold(strings.ReplaceAll(text, emojiPresentation, ""))
	return name, safeName(name)
}

// LookupName reports whether an account whose profile has this name can be looked up by it. The name must be
// normalized.
func LookupName(text string) bool {
	name, ok := normalizeName(text)
	return ok && name == text
}

// fold returns the form in which texts are compared regardless of letter case and composition: lower case, NFC. It
// lowers each letter independently of its context.
func fold(text string) string {
	return norm.NFC.String(strings.ToLower(strings.ReplaceAll(norm.NFC.String(text), string(dottedI), lowerDottedI)))
}

// The only letter whose lower case has two characters (Unicode's SpecialCasing.txt, unconditional mappings).
// unicode.ToLower maps to one character only.
const (
	dottedI      = '\u0130'
	lowerDottedI = "i\u0307"
)

// AppendLower appends the lower case of a letter, as fold does.
func AppendLower(b []byte, letter rune) []byte {
	if letter == dottedI {
		return append(b, lowerDottedI...)
	}
	return utf8.AppendRune(b, unicode.ToLower(letter))
}

func safeName(name string) bool {
	if name == "" || len(name) > MaxNameBytes || name == "." || name == ".." {
		return false
	}
	for _, r := range name {
		if UnsafeInName(r) {
			return false
		}
	}
	_, err := ParseAddress(name)
	return err != nil
}

// UnsafeInName reports whether names must not contain a character.
func UnsafeInName(r rune) bool {
	switch r {
	case '/', '\\', '%', '?', '#':
		return true
	case '\uFFFE', '\uFFFF': // not allowed in XML, so a bucket would list another key
		return true
	}
	return unicode.IsSpace(r) || unicode.IsControl(r)
}
