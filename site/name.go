package site

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// MaxNameBytes is the longest name that can be looked up: the longest file name
// of the usual file systems.
const MaxNameBytes = 255

// emojiPresentation is U+FE0F. Name services drop it, so that an emoji typed
// with and without it is one name.
const emojiPresentation = "\uFE0F"

// NormalizeName is the form in which names are looked up: lower case, NFC,
// without U+FE0F. ok is false where the result cannot be a name: empty, longer
// than MaxNameBytes, unsafe as a path segment, or looking like an address.
func NormalizeName(text string) (name string, ok bool) {
	if !utf8.ValidString(text) {
		return "", false
	}
	name = Fold(strings.ReplaceAll(text, emojiPresentation, ""))
	return name, safeName(name)
}

// LookupName reports whether an account with this name in its profile is found
// by it: the name must be in its normal form already.
func LookupName(text string) bool {
	name, ok := NormalizeName(text)
	return ok && name == text
}

// Fold is the form in which two texts are compared without regard to letter
// case and composition: lower case, NFC. It is NFC before too, so that equal texts
// in another composition are equal still (U+0130 has a lower case of its own, its
// parts have another).
func Fold(text string) string {
	return norm.NFC.String(strings.ToLower(norm.NFC.String(text)))
}

func safeName(name string) bool {
	if name == "" || len(name) > MaxNameBytes || name == "." || name == ".." {
		return false
	}
	for _, r := range name {
		if unsafeInName(r) {
			return false
		}
	}
	_, err := ParseAddress(name)
	return err != nil
}

func unsafeInName(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune(`/\%?#`, r) ||
		r == '\uFFFE' || r == '\uFFFF' // XML has no way to write them: a bucket would list another key
}
