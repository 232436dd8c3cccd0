package rowjson

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/site"
)

// The functions below append rows as compact JSON, with members in the order of docs/snapshot.md. They reject what
// the reader would reject.

// AppendList appends a row of lists.
func AppendList(b []byte, l List) ([]byte, error) {
	if err := site.CheckTokenID("token_id", l.TokenID); err != nil {
		return nil, err
	}
	b = append(append(append(b, `{"token_id":"`...), l.TokenID...), `","owner":"`...)
	b = l.Owner.Append(b)
	if l.User != nil {
		b = l.User.Append(append(b, `","user":"`...))
	}
	return append(b, `"}`...), nil
}

// AppendRecord appends a row of records.
func AppendRecord(b []byte, r Record) ([]byte, error) {
	b, err := AppendRecordBegin(b, r.TokenID)
	if err != nil {
		return nil, err
	}
	if r.Type == "" {
		return nil, fmt.Errorf("record_type of a record of list %s: missing or empty", r.TokenID)
	}
	if b, err = AppendRecordRest(b, r); err != nil {
		return nil, fmt.Errorf("list %s: %w", r.TokenID, err)
	}
	return b, nil
}

// AppendRecordBegin appends the common start of a list's rows.
func AppendRecordBegin(b []byte, tokenID string) ([]byte, error) {
	if err := site.CheckTokenID("token_id", tokenID); err != nil {
		return nil, err
	}
	return append(append(append(b, `{"token_id":"`...), tokenID...), '"'), nil
}

// AppendRecordRest appends the part after the token ID. The type must not be empty.
func AppendRecordRest(b []byte, r Record) (_ []byte, err error) {
	b = append(strconv.AppendUint(append(b, `,"version":`...), uint64(r.Version), 10), `,"record_type":`...)
	if b, err = appendText(b, "record_type", r.Type); err != nil {
		return nil, err
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
			return nil, err
		}
	}
	if len(r.Tags) > 0 {
		b = append(b, ']')
	}
	if r.Added != NoTime {
		if b, err = AppendTime(append(b, `,"added":`...), "added", r.Added); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// AppendAccount appends a row of accounts.
func AppendAccount(b []byte, a Account) ([]byte, error) {
	if a.Primary != "" {
		if err := site.CheckTokenID("primary_list", a.Primary); err != nil {
			return nil, fmt.Errorf("account %s: %w", a.Address, err)
		}
	}
	if a.ENS != nil {
		if err := checkProfile(a.ENS); err != nil {
			return nil, fmt.Errorf("account %s: ens.%w", a.Address, err)
		}
		ens, err := a.ENS.Normalize()
		if err != nil {
			return nil, fmt.Errorf("account %s: %w", a.Address, err)
		}
		a.ENS = &ens
	}
	return appendReadAccount(b, &a), nil
}

// appendReadAccount appends an account that is known to be valid, with a normalized profile.
func appendReadAccount(b []byte, a *Account) []byte {
	b = a.Address.Append(append(b, `{"address":"`...))
	b = append(b, '"')
	if a.Primary != "" {
		b = append(append(append(b, `,"primary_list":"`...), a.Primary...), '"')
	}
	if a.ENS != nil {
		b, _ = a.ENS.Append(append(b, `,"ens":`...))
	}
	return append(b, '}')
}

// checkProfile returns an error for texts that JSON cannot hold, or only in another form.
func checkProfile(p *site.Profile) error {
	for _, m := range []struct{ name, text string }{
		{"name", p.Name}, {"avatar", p.Avatar}, {"header", p.Header}, {"display", p.Display}, {"resolver", p.Resolver},
	} {
		if err := checkText(m.name, m.text); err != nil {
			return err
		}
	}
	for _, m := range []struct {
		name   string
		object []byte
	}{{"records", p.Records}, {"chains", p.Chains}, {"errors", p.Errors}} {
		if len(m.object) == 0 {
			continue
		}
		row := append(append([]byte(`{"":`), m.object...), '}')
		if err := site.DecodeObject(row, &struct{}{}); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

// AppendEvent appends a row of events.
func AppendEvent(b []byte, e site.Event) (_ []byte, err error) {
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

// AppendBadge appends a row of badges.
func AppendBadge(b []byte, badge Badge) ([]byte, error) {
	if err := cmp.Or(site.CheckTokenID("event_id", badge.EventID), site.CheckTokenID("token_id", badge.TokenID)); err != nil {
		return nil, err
	}
	b = append(append(b, `{"event_id":"`...), badge.EventID...)
	b = append(append(b, `","token_id":"`...), badge.TokenID...)
	b = badge.Owner.Append(append(b, `","owner":"`...))
	return append(b, `"}`...), nil
}

// AppendRecommended appends a row of recommended.
func AppendRecommended(b []byte, r Recommended) (_ []byte, err error) {
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
	if err := checkText(member, text); err != nil {
		return nil, err
	}
	return rawjson.AppendString(b, text), nil
}

func checkText(member, text string) error {
	if !utf8.ValidString(text) {
		return fmt.Errorf("%s: %s is not valid UTF-8", member, site.Quoted(text))
	}
	return nil
}

// AppendTime appends a time in UTC as RFC 3339, with milliseconds unless they are 0.
func AppendTime(b []byte, member string, ms int64) ([]byte, error) {
	t := time.UnixMilli(ms).UTC()
	if !IsWritable(ms) {
		return nil, fmt.Errorf("%s: %d ms since 1970 is in the year %d, which RFC 3339 cannot write", member, ms, t.Year())
	}
	layout := time.RFC3339 // package time has a fast path for this layout
	if ms%1000 != 0 {
		layout = "2006-01-02T15:04:05.000Z07:00"
	}
	return append(t.AppendFormat(append(b, '"'), layout), '"'), nil
}

// IsWritable reports whether RFC 3339 can express a time, with a year of four digits.
func IsWritable(ms int64) bool {
	const begin, end = -62_167_219_200_000, 253_402_300_800_000 // the years 0 and 10000
	return begin <= ms && ms < end
}
