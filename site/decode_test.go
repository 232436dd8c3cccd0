package site_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/followpress/followpress/site"
)

// TestDatesOfEvents: ISO 8601 dates and times are converted to the format of the specification (2.6), with the day in
// their own zone. Others stay, and are counted.
func TestDatesOfEvents(t *testing.T) {
	for _, c := range []struct {
		in, want string
		other    int
	}{
		{"2026-09-24", "24-Sep-2026", 0},
		{"20260924", "24-Sep-2026", 0},
		{"2026-01-02T23:59", "02-Jan-2026", 0},
		{"2026-01-02T23:59:59Z", "02-Jan-2026", 0},
		{"2026-01-02T23:59:59.123456789Z", "02-Jan-2026", 0},
		{"2026-01-02T23:59:59-12:00", "02-Jan-2026", 0},
		{"2026-01-02T00:30:00.000+0530", "02-Jan-2026", 0},
		{"2026-01-02 00:30:00", "02-Jan-2026", 0},
		{"2026-01-02 00:30:00.5+00", "02-Jan-2026", 0},
		{"20260102T003000Z", "02-Jan-2026", 0},
		{"24-Sep-2026", "24-Sep-2026", 0},
		{"24-SEP-2026", "24-SEP-2026", 1},
		{"4-Sep-2026", "4-Sep-2026", 1},
		{"30-Feb-2026", "30-Feb-2026", 1},
		{"2026-02-30", "2026-02-30", 1},
		{"2026-13-01T00:00:00Z", "2026-13-01T00:00:00Z", 1},
		{"2026-01-02T25:00:00Z", "2026-01-02T25:00:00Z", 1},
		{"09/24/2026", "09/24/2026", 1},
		{"2026", "2026", 1},
		{" 2026-09-24", " 2026-09-24", 1},
		{"soon", "soon", 1},
		{"", "", 1},
	} {
		for at, member := range []string{"start_date", "end_date", "expiry_date"} {
			dates := [3]string{"01-Jan-2026", "01-Jan-2026", "01-Jan-2026"}
			dates[at] = c.in
			e, err := site.DecodeEvent(fmt.Appendf(nil, `{"id":1,"fancy_id":"","name":"2026-09-24","event_url":"","image_url":"","country":"","city":"",
				"description":"","year":2026,"start_date":%q,"end_date":%q,"expiry_date":%q}`, dates[0], dates[1], dates[2]))
			if err != nil {
				t.Fatal(err)
			}
			if got := [3]string{e.StartDate, e.EndDate, e.ExpiryDate}; got[at] != c.want || e.OtherDates() != c.other || e.Name != "2026-09-24" {
				t.Errorf("%s %q: got %q and %d others, want %q and %d", member, c.in, got[at], e.OtherDates(), c.want, c.other)
			}
		}
	}
}

// TestDecodeAddress: documents have 0x, requests may have 0X (site.ParseAddress).
func TestDecodeAddress(t *testing.T) {
	if got, err := site.DecodeAddress("owner", "0x"+strings.ToUpper(alice[2:])); err != nil || got.String() != alice {
		t.Errorf("got %v and the error %v, want %s", got, err, alice)
	}
	want := `owner: "0X` + alice[2:] + `" begins with 0X, where 0x belongs`
	if _, err := site.DecodeAddress("owner", "0X"+alice[2:]); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
