package input

import (
	"encoding/base64"
	"regexp"
	"strings"
)

// Runners bury the error of a worker in logs, stack traces and quotation marks, so it carries its
// text in a form that survives all of them.
const (
	faultBegin = "followpress-error."
	maxFault   = 4 << 10 // bytes of a text
)

var faultPattern = regexp.MustCompile(regexp.QuoteMeta(faultBegin) + `([A-Za-z0-9_-]+)\.`)

// A fault is an error of a worker that FindError recognizes.
type fault struct{ err error }

// Fault marks an error of a worker, so that the launcher can report the reason.
func Fault(err error) error { return &fault{err} }

// Error returns the text twice, for people and for FindError.
func (f *fault) Error() string {
	text := f.err.Error()
	text = strings.ToValidUTF8(text[:min(len(text), maxFault)], "")
	return text + " [" + faultBegin + base64.RawURLEncoding.EncodeToString([]byte(text)) + ".]"
}

func (f *fault) Unwrap() error { return f.err }

// FindError returns the text of the first marked error in a runner's error.
func FindError(err error) (text string, found bool) {
	for _, match := range faultPattern.FindAllStringSubmatch(err.Error(), -1) {
		if text, err := base64.RawURLEncoding.DecodeString(match[1]); err == nil {
			return string(text), true
		}
	}
	return "", false
}
