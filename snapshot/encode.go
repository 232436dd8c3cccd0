package snapshot

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/followpress/followpress/site"
)

// The functions below append rows as compact JSON, members in the order of docs/format.md. They
// refuse what the reader would refuse.

func appendList(b []byte, l List) []byte {
	b = append(append(append(b, `{"token_id":"`...), l.TokenID...), `","owner":"`...)
	b = l.Owner.Append(b)
	if l.User != nil {
		b = l.User.Append(append(b, `","user":"`...))
	}
	return append(b, `"}`...)
}

func appendRecord(b []byte, r Record) (_ []byte, err error) {
	if err := site.CheckTokenID("token_id", r.TokenID); err != nil {
		return nil, err
	}
	if r.Type == "" {
		return nil, fmt.Errorf("record_type of a record of list %s: missing or empty", r.TokenID)
	}
	b = append(append(append(b, `{"token_id":"`...), r.TokenID...), `","version":`...)
	b = append(strconv.AppendUint(b, uint64(r.Version), 10), `,"record_type":`...)
	if b, err = appendText(b, "record_type", r.Type); err != nil {
		return nil, fmt.Errorf("list %s: %w", r.TokenID, err)
	}
	b = hex.AppendEncode(append(b, `,"data":"0x`...), r.Data)
	b = append(b, '"')
	for i, tag := range r.Tags {
		if i == 0 {
			b = append(b, `,"tags":[`...)
		} else {
			b = append(b, ',')
		}
		if b, err = appendText(b, "tags", tag); err != nil {
			return nil, fmt.Errorf("list %s: %w", r.TokenID, err)
		}
	}
	if len(r.Tags) > 0 {
		b = append(b, ']')
	}
	if r.Added != NoTime {
		if b, err = appendTime(append(b, `,"added":`...), "added", r.Added); err != nil {
			return nil, fmt.Errorf("list %s: %w", r.TokenID, err)
		}
	}
	return append(b, '}'), nil
}

func appendAccount(b []byte, a Account) ([]byte, error) {
	start := len(b)
	b = a.Address.Append(append(b, `{"address":"`...))
	b = append(b, '"')
	if a.Primary != "" {
		if err := site.CheckTokenID("primary_list", a.Primary); err != nil {
			return nil, fmt.Errorf("account %s: %w", a.Address, err)
		}
		b = append(append(append(b, `,"primary_list":"`...), a.Primary...), '"')
	}
	if a.ENS != nil {
		if err := checkTexts(a.ENS.Name, a.ENS.Avatar, a.ENS.Header, a.ENS.Display, a.ENS.Resolver); err != nil {
			return nil, fmt.Errorf("account %s: ens: %w", a.Address, err)
		}
		ens, err := a.ENS.Normalize()
		if err != nil {
			return nil, fmt.Errorf("account %s: %w", a.Address, err)
		}
		b, _ = ens.Append(append(b, `,"ens":`...))
	}
	b = append(b, '}')
	// Objects of profiles come from elsewhere and may hold any JSON, so read what was written.
	if err := site.DecodeObject(b[start:], &struct{}{}); err != nil {
		return nil, fmt.Errorf("account %s: %w", a.Address, err)
	}
	return b, nil
}

func appendEvent(b []byte, e site.Event) (_ []byte, err error) {
	b = strconv.AppendUint(append(b, `{"id":`...), e.ID, 10)
	text := func(member, value string) {
		if err == nil {
			b = append(append(append(b, `,"`...), member...), `":`...)
			b, err = appendText(b, member, value)
		}
	}
	text("fancy_id", e.FancyID)
	text("name", e.Name)
	text("event_url", e.EventURL)
	text("image_url", e.ImageURL)
	text("country", e.Country)
	text("city", e.City)
	text("description", e.Description)
	if err == nil {
		b = strconv.AppendInt(append(b, `,"year":`...), int64(e.Year), 10)
	}
	text("start_date", e.StartDate)
	text("end_date", e.EndDate)
	text("expiry_date", e.ExpiryDate)
	if err != nil {
		return nil, fmt.Errorf("event %d: %w", e.ID, err)
	}
	return append(b, '}'), nil
}

func appendBadge(b []byte, badge Badge) ([]byte, error) {
	if err := site.CheckTokenID("event_id", badge.EventID); err != nil {
		return nil, err
	}
	if err := site.CheckTokenID("token_id", badge.TokenID); err != nil {
		return nil, err
	}
	b = append(append(b, `{"event_id":"`...), badge.EventID...)
	b = append(append(b, `","token_id":"`...), badge.TokenID...)
	b = badge.Owner.Append(append(b, `","owner":"`...))
	return append(b, `"}`...), nil
}

func appendRecommended(b []byte, r Recommended) (_ []byte, err error) {
	b = r.Address.Append(append(b, `{"address":"`...))
	b = append(b, '"')
	if r.Class != "" {
		if b, err = appendText(append(b, `,"class":`...), "class", r.Class); err != nil {
			return nil, fmt.Errorf("address %s: %w", r.Address, err)
		}
	}
	return append(b, '}'), nil
}

func appendText(b []byte, member, text string) ([]byte, error) {
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("%s: %q is not valid UTF-8", member, text)
	}
	return site.AppendString(b, text), nil
}

func checkTexts(texts ...string) error {
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return errors.New("not valid UTF-8")
		}
	}
	return nil
}

// appendTime appends a time in UTC as RFC 3339, with milliseconds unless they are 0.
func appendTime(b []byte, member string, ms int64) ([]byte, error) {
	t := time.UnixMilli(ms).UTC()
	if year := t.Year(); year < 0 || year > 9999 {
		return nil, fmt.Errorf("%s: %d ms since 1970 is in the year %d, which RFC 3339 cannot write", member, ms, year)
	}
	layout := `"2006-01-02T15:04:05Z"`
	if ms%1000 != 0 {
		layout = `"2006-01-02T15:04:05.000Z"`
	}
	return t.AppendFormat(b, layout), nil
}
