package note

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/followpress/followpress/site"
)

// NextKey has the notes of the announced sites: the site being published, and the sites of
// interrupted publishes. Their other announced objects are below site.NextKey.
const NextKey = site.NextPrefix + Key

// Limits of announcements.
const (
	MaxAnnounced      = 8 // number of sites; the newest stay
	MaxAnnouncedBytes = MaxAnnounced * MaxBytes
)

// An Announced is the note of a site whose publish is in progress or was interrupted.
type Announced struct {
	Note
	Signed []byte   // the signed note
	By     []string // names of the known keys that signed it
}

// Join joins signed notes to the body of NextKey.
func Join(signed ...[]byte) []byte { return bytes.Join(signed, []byte("\n")) }

// OpenAnnounced checks a result of Join, and returns the notes that Open accepts, the greatest counter first.
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
