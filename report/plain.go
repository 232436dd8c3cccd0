package report

import (
	"fmt"

	rules "github.com/followpress/followpress/internal/plain"
)

// A Text is an untrusted text of a report. Reports and pictures have no other strings, so templates receive nothing
// else.
type Text string

// String returns the text as it may be shown (internal/plain). Templates and fmt use it.
func (t Text) String() string { return rules.Text(string(t)) }

// UnmarshalText decodes a text of a saved report.
func (t *Text) UnmarshalText(text []byte) error {
	*t = plain(string(text))
	return nil
}

// plain returns a text as it may be shown.
func plain(text string) Text { return Text(rules.Text(text)) }

// textf is fmt.Sprintf for texts and numbers.
func textf(format string, args ...any) Text { return plain(fmt.Sprintf(format, args...)) }
