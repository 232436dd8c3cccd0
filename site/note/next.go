package note

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/followpress/followpress/site"
)

// NextKey has the notes of the sites that are announced: of the one that is being published, and before it of those whose
// publishes were cut off. What a site announces beside its note is below site.NextKey.
const NextKey = site.NextPrefix + Key

// Bounds of what is announced.
const (
	MaxAnnounced      = 8 // sites, the newest ones
	MaxAnnouncedBytes = MaxAnnounced * MaxBytes
)

// An Announced site is one that is being published, or was.
type Announced struct {
	Note
	Signed []byte   // the note
	By     []string // names of the known keys that signed it
}

// Join is what NextKey has of signed notes.
func Join(signed ...[]byte) []byte { return bytes.Join(signed, []byte("\n")) }

// OpenAnnounced checks what Join has made, and returns the notes that Open accepts, the greatest counter first.
func (k Keys) OpenAnnounced(joined []byte, now time.Time) []Announced {
	var all []Announced
	const between = "\n\n" + kind
	for rest := joined; len(rest) > 0 && len(all) < MaxAnnounced; {
		signed := rest
		if end := bytes.Index(rest, []byte(between)); end >= 0 {
			signed = rest[:end+1]
		}
		rest = bytes.TrimPrefix(rest[len(signed):], []byte("\n"))
		if n, by, err := k.Open(signed, now); err == nil {
			all = append(all, Announced{n, signed, by})
		}
	}
	slices.SortStableFunc(all, func(a, b Announced) int { return cmp.Compare(b.Counter, a.Counter) })
	return all
}
