package publish

import (
	"errors"
	"strings"
	"testing"

	"github.com/followpress/followpress/internal/plain"
)

// TestSummaryIsCode: no text of a report leaves the code of the summary.
func TestSummaryIsCode(t *testing.T) {
	const strange = "a\nb\n\nc\rd\r\ne\u2028f\u2029g\n```\n# h\n"
	summary := plain.Text(forJob("s3://b", strange, errors.New(strange))) // as in command.WriteSummary
	code, ok := strings.CutPrefix(summary, "### s3://b\n\n")
	if !ok {
		t.Fatalf("got %q", summary)
	}
	for line := range strings.Lines(code) {
		if line != "\n" && !strings.HasPrefix(line, "    ") {
			t.Errorf("got the line %q outside the code of %q", line, summary)
		}
	}
}
