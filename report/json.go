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

// Parse decodes the JSON of a report.
func Parse(body []byte) (*Report, error) {
	r := &Report{}
	if err := json.Unmarshal(body, r); err != nil {
		return nil, fmt.Errorf("read the report: %w", err)
	}
	switch {
	case r.Format != Format:
		return nil, fmt.Errorf("read the report: format %d, this version reads %d", r.Format, Format)
	case !validDate(r.Date):
		return nil, fmt.Errorf("read the report: its date is %q", r.Date)
	}
	return r, nil
}
