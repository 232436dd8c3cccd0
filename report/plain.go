package report

import (
	"fmt"

	rules "github.com/followpress/followpress/internal/plain"
)

// A Text is a text of a report, which anybody may have written. Reports and their pictures have no
// strings but these, so that templates get nothing else.
type Text string

// String is the text as it may be shown (internal/plain), which is what templates and fmt show of it.
func (t Text) String() string { return rules.Text(string(t)) }

// UnmarshalText reads a text of a saved report.
func (t *Text) UnmarshalText(text []byte) error {
	*t = plain(string(text))
	return nil
}

// plain returns a text as it is shown.
func plain(text string) Text { return Text(rules.Text(text)) }

// textf is fmt.Sprintf of texts and numbers.
func textf(format string, args ...any) Text { return plain(fmt.Sprintf(format, args...)) }
