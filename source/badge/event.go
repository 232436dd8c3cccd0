package badge

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/followpress/followpress/site"
)

// decodeEvent decodes the description of an event. The API may omit strings or send null. Dates are
// converted to the form of scans.
func decodeEvent(body []byte, id string) (site.Event, error) {
	var e site.Event
	if err := site.DecodeObject(body, &e); err != nil {
		return e, err
	}
	if got := strconv.FormatUint(e.ID, 10); got != id {
		return e, fmt.Errorf("got event %s", got)
	}
	for _, date := range []*string{&e.StartDate, &e.EndDate, &e.ExpiryDate} {
		*date = normalDate(*date)
	}
	if at, err := time.Parse(scanDate, e.StartDate); err == nil && e.Year == 0 {
		e.Year = at.Year()
	}
	return e, nil
}

// scanDate is the date form in scans.
const scanDate = "02-Jan-2006"

// dateForms are the other accepted date forms. With the year last, numbers are month and day, as in
// the API.
var dateForms = []string{
	"2-Jan-2006", "2-January-2006", "2006-1-2", "2006/1/2", "1-2-2006", "1/2/2006",
	"Jan 2, 2006", "January 2, 2006", "2 Jan 2006", "2 January 2006",
}

// normalDate returns a date like 12-Nov-2024, without a time such as in 2024-11-12T10:00:00.000Z
// and 2024-11-12 10:00:00. It returns unknown forms unchanged.
func normalDate(text string) string {
	date := strings.TrimSpace(text)
	e := site.Event{StartDate: date}
	if e.Normalize(); e.StartDate != date {
		return e.StartDate
	}
	for _, form := range dateForms {
		if at, err := time.Parse(form, date); err == nil {
			return at.Format(scanDate)
		}
	}
	return text
}
