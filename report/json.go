package report

import (
	"fmt"

	json "github.com/goccy/go-json"
)

// JSON encodes the report, indented. Equal reports give equal bytes.
func (r *Report) JSON() ([]byte, error) {
	body, err := json.MarshalIndentWithOption(r, "", "  ", json.DisableHTMLEscape())
	if err != nil {
		return nil, fmt.Errorf("encode the report: %w", err)
	}
	return append(body, '\n'), nil
}
