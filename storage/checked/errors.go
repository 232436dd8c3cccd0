package checked

import (
	"errors"
	"fmt"
	"strings"

	"github.com/followpress/followpress/site"
)

// Errors for callers to tell apart. Those of package note concern the note and the root: Open returns them, and an
// AlteredError wraps them. Others are those of the store.
var (
	// ErrAltered says that an object is not what the manifest lists. The error is an *AlteredError.
	ErrAltered = errors.New("it was altered")
	// ErrBetween says that one site is being replaced by another, so that nobody can tell yet.
	ErrBetween = errors.New("between two sites: try again")
)

// An AlteredError says what is wrong with an object.
type AlteredError struct {
	Key      site.Key
	Expected string // what the manifest lists, for people
	Got      string // what the store has, for people
	Cause    error  // why no newer site is believed that might list it; nil if there is none

	instead error // that it is absent, since one of the versions does not list it; nil if all do
}

// Error says what is wrong, and what to do.
func (e *AlteredError) Error() string {
	text := fmt.Sprintf("read %s: %v: expected %s, got %s", e.Key, ErrAltered, e.Expected, e.Got)
	if e.Cause != nil {
		text += fmt.Sprintf(" (%v)", e.Cause)
	}
	return text + ": publish the site again"
}

// Unwrap returns ErrAltered and the cause.
func (e *AlteredError) Unwrap() []error { return []error{ErrAltered, e.Cause} }

// Texts for people.
const (
	absent      = "no such object"
	namedByRoot = "what " + string(site.RootKey) + " names"
)

// describe is an entry for people.
func (i item) describe() string { return fmt.Sprintf("%d bytes with SHA-256 %s", i.size, i.sha256) }

func describeAll(items []item) string {
	texts := make([]string, len(items))
	for n, i := range items {
		texts[n] = i.describe()
	}
	return strings.Join(texts, " or ")
}
