package site

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	json "github.com/goccy/go-json"
)

// This file decodes and checks data from outside: rows of snapshots, responses of upstreams, and objects.

// ErrNotFound means that a site or store has no object with the key. It is the only error with this meaning: packages
// return or wrap it.
var ErrNotFound = errors.New("no such object")

// ErrMalformed means that an object's body does not have the format that its key demands.
var ErrMalformed = errors.New("malformed object")

// DecodeObject decodes a JSON object in valid UTF-8 and Unicode. Errors name the member and the expected JSON type,
// not Go types.
func DecodeObject(data []byte, into any) error {
	switch {
	case !utf8.Valid(data):
		return errors.New("not valid UTF-8")
	case hasLoneSurrogate(data):
		return errors.New("not valid Unicode: half of a surrogate pair")
	case !bytes.HasPrefix(data, []byte{'{'}):
		return errors.New("not a JSON object")
	}
	if err := json.Unmarshal(data, into); err != nil {
		return errors.New(JSONReason(err))
	}
	return nil
}

// eventMembers lists the members of an Event.
var eventMembers = []string{"id", "fancy_id", "name", "event_url", "image_url", "country", "city", "description", "year",
	"start_date", "end_date", "expiry_date"}

// DecodeEvent decodes and normalizes an event. Errors name the missing or malformed member.
func DecodeEvent(data []byte) (Event, error) {
	var e Event
	var members map[string]json.RawMessage
	if err := cmp.Or(DecodeObject(data, &e), DecodeObject(data, &members)); err != nil {
		return Event{}, err
	}
	present := map[string]bool{}
	for name, value := range members {
		if string(value) != "null" {
			present[strings.ToLower(name)] = true // the decoder accepts names in any case
		}
	}
	for _, name := range eventMembers {
		if !present[name] {
			return Event{}, fmt.Errorf("%s: missing", name)
		}
	}
	e.Normalize()
	return e, nil
}

// Normalize converts ISO 8601 dates of the event to the format of answers, 31-Jan-2026.
func (e *Event) Normalize() {
	for _, date := range e.dates() {
		*date = shownDate(*date)
	}
}

// eventDate is the date format of events in answers (2.6).
const eventDate = "02-Jan-2006"

// isoDates are the accepted ISO 8601 formats of dates and times. Seconds may have decimals.
var isoDates = func() (forms []string) {
	for _, date := range []string{"2006-01-02", "20060102"} {
		forms = append(forms, date)
		for _, time := range []string{"T15:04", "T15:04:05", " 15:04", " 15:04:05", "T1504", "T150405"} {
			for _, zone := range []string{"", "Z07:00", "Z0700", "Z07"} {
				forms = append(forms, date+time+zone)
			}
		}
	}
	return forms
}()

// shownDate converts an ISO 8601 date or time to the format of answers, 31-Jan-2026. It keeps the date in the text,
// whatever the zone. It returns any other text unchanged.
func shownDate(text string) string {
	for _, form := range isoDates {
		if at, err := time.Parse(form, text); err == nil {
			return at.Format(eventDate)
		}
	}
	return text
}

func (e *Event) dates() []*string { return []*string{&e.StartDate, &e.EndDate, &e.ExpiryDate} }

// OtherDates counts the dates of the event that are not in the format of answers.
func (e *Event) OtherDates() (n int) {
	for _, date := range e.dates() {
		if at, err := time.Parse(eventDate, *date); err != nil || at.Format(eventDate) != *date {
			n++
		}
	}
	return n
}

// DecodeDetails decodes an answer to /details and its address. Errors wrap ErrMalformed.
func DecodeDetails(body []byte) (ListDetails, Address, error) {
	var d ListDetails
	if err := DecodeObject(body, &d); err != nil {
		return d, Address{}, fmt.Errorf("details: %w: %w", ErrMalformed, err)
	}
	account, err := DecodeAddress("address", d.Address)
	if err != nil {
		return d, account, fmt.Errorf("details: %w: %w", ErrMalformed, err)
	}
	return d, account, nil
}

// CheckTokenID returns an error that names the member unless text is a valid token ID.
func CheckTokenID(member, text string) error {
	if !ValidTokenID(text) {
		return fmt.Errorf("%s: %s is not a canonical decimal of at most %d digits", member, Quoted(text), maxTokenIDDigits)
	}
	return nil
}

// DecodeAddress is like ParseAddress, but requires a lower-case 0x, and its errors name the member.
func DecodeAddress(member, text string) (Address, error) {
	address, err := ParseAddress(text)
	switch {
	case err != nil:
		return address, fmt.Errorf("%s: %s is %w", member, Quoted(text), err)
	case text[1] != 'x':
		return Address{}, fmt.Errorf("%s: %s begins with 0X, where 0x belongs", member, Quoted(text))
	}
	return address, nil
}

// Quoted quotes the first 80 bytes of text for an error message. It returns "nothing" for an empty text.
func Quoted(text string) string {
	const most = 80
	if text == "" {
		return "nothing"
	}
	if len(text) > most {
		return fmt.Sprintf("%q…", strings.ToValidUTF8(text[:most], ""))
	}
	return fmt.Sprintf("%q", text)
}

// JSONReason explains a decoding error of go-json in terms of JSON.
func JSONReason(err error) string {
	var mismatch *json.UnmarshalTypeError
	if !errors.As(err, &mismatch) {
		return "bad JSON: " + err.Error()
	}
	want := "an object"
	switch mismatch.Type.String() {
	case "string", "*string":
		want = "a text"
	case "[]*string":
		want = "an array of texts"
	case "uint32", "*uint32", "uint64", "*uint64", "int", "*int", "int64", "*int64":
		want = "a whole number within range"
	}
	if mismatch.Field == "" {
		return fmt.Sprintf("%s where %s belongs", mismatch.Value, want)
	}
	return fmt.Sprintf("%s: %s where %s belongs", mismatch.Field, mismatch.Value, want)
}

// hasLoneSurrogate reports whether text has a \u escape that is half of a surrogate pair. Decoders would replace it
// with U+FFFD.
func hasLoneSurrogate(text []byte) bool {
	for {
		at := bytes.IndexByte(text, '\\')
		if at < 0 || at+1 >= len(text) {
			return false
		}
		text = text[at:]
		high, ok := unicodeEscape(text)
		switch {
		case !ok:
			text = text[2:]
		case !utf16.IsSurrogate(high):
			text = text[6:]
		default:
			low, ok := unicodeEscape(text[6:])
			if !ok || utf16.DecodeRune(high, low) == utf8.RuneError {
				return true
			}
			text = text[12:]
		}
	}
}

// unicodeEscape decodes the \u escape at the start of b.
func unicodeEscape(b []byte) (code rune, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	return rune(n), err == nil
}
