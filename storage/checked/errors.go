package checked

import (
	"errors"
	"fmt"
	"strings"

	"github.com/followpress/followpress/site"
)

// Errors that callers distinguish. Errors of package note concern the note and the root: Open
// returns them, and an AlteredError wraps them. Other errors come from the store.
var (
	// ErrAltered means that an object is not what the manifest lists. The error is an *AlteredError.
	ErrAltered = errors.New("it was altered")
	// ErrBetween means that one site is replacing another, so that the result is not known yet.
	ErrBetween = errors.New("a publish is replacing the site; try again")
)

// An AlteredError describes an object that does not match the manifest.
type AlteredError struct {
	Key      site.Key
	Expected string // what the manifest lists, for messages
	Got      string // what the store holds, for messages
	Cause    error  // why a newer site that might list the object was rejected; nil if there is none

	instead error // returned instead if one of the versions does not list the object; nil if all do
}

// Error describes the difference, and what to do.
func (e *AlteredError) Error() string {
	text := fmt.Sprintf("read %s: %v: expected %s, got %s", e.Key, ErrAltered, e.Expected, e.Got)
	if e.Cause != nil {
		text += fmt.Sprintf(" (%v)", e.Cause)
	}
	return text + "; publish the site again"
}

// Unwrap returns ErrAltered and the cause.
func (e *AlteredError) Unwrap() []error { return []error{ErrAltered, e.Cause} }

// Texts in messages.
const (
	absent      = "no such object"
	namedByRoot = "what " + string(site.RootKey) + " names"
)

// describe returns an entry's text in messages.
func (i item) describe() string { return fmt.Sprintf("%d bytes with SHA-256 %s", i.size, i.sha256) }

func describeAll(items []item) string {
	texts := make([]string, len(items))
	for n, i := range items {
		texts[n] = i.describe()
	}
	return strings.Join(texts, " or ")
}
