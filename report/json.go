package report

import (
	"fmt"
	"slices"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
)

// JSON encodes the report with indentation. Equal reports give equal bytes.
func (r *Report) JSON() ([]byte, error) {
	body, err := json.MarshalIndentWithOption(r, "", "  ", json.DisableHTMLEscape())
	if err != nil {
		return nil, fmt.Errorf("encode the report: %w", err)
	}
	return append(body, '\n'), nil
}

// Parse decodes the JSON of a report. It fails if a value that pages show unescaped or as a link, such as a time or
// an address, is invalid.
func Parse(body []byte) (*Report, error) {
	r := &Report{}
	if err := json.Unmarshal(body, r); err != nil {
		return nil, fmt.Errorf("read the report: %w", err)
	}
	switch {
	case r.Format > Format:
		return nil, fmt.Errorf("read the report: format %d, this version reads %d; update followpress", r.Format, Format)
	case r.Format != Format:
		return nil, fmt.Errorf("read the report: format %d, this version reads %d", r.Format, Format)
	case !validDate(string(r.Date)):
		return nil, fmt.Errorf("read the report: its date is %q", r.Date)
	}
	for _, s := range []SiteSummary{r.From, r.To} {
		if _, err := time.Parse(time.RFC3339, string(s.AsOf)); err != nil {
			return nil, fmt.Errorf("read the report: as_of: %w", err)
		}
	}
	if err := r.Brand.check(); err != nil {
		return nil, fmt.Errorf("read the report: brand: %w", err)
	}
	known := site.Config{API: site.APIEFP}.Boards()
	for _, b := range r.Boards {
		if !slices.Contains(known, b.Board) {
			return nil, fmt.Errorf("read the report: there is no leaderboard %q", b.Board)
		}
	}
	var invalid error
	r.eachShown(func(address string, _ *Text) {
		if _, err := site.ParseAddress(address); err != nil {
			invalid = fmt.Errorf("read the report: address %q: %w", address, err)
		}
	})
	if invalid != nil {
		return nil, invalid
	}
	return r, nil
}
