package generator

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
)

// The rows of the tables as their parsers give them: checked and normalised.
// Parsers run on many goroutines; what refers to another row is checked where
// rows come together in order.

type listRow struct {
	tokenID string
	account site.Address // its user if set, else its owner
}

type recordRow struct {
	tokenID    string
	version    uint32
	recordType string
	address    site.Address
	isAddress  bool   // of type address with a valid one: data is address
	data       string // lower-case hexadecimal, unless isAddress
	tags       []string
}

type accountRow struct {
	address site.Address
	primary string // token id; "" if it names none
	profile profile
}

type badgeRow struct {
	eventID string
	tokenID string
	owner   site.Address
}

const typeAddress = "address"

func parseListRow(line []byte) (listRow, error) {
	var in struct {
		TokenID string  `json:"token_id"`
		Owner   string  `json:"owner"`
		User    *string `json:"user"`
	}
	if err := unmarshal(line, &in); err != nil {
		return listRow{}, err
	}
	if err := checkTokenID("token_id", in.TokenID); err != nil {
		return listRow{}, err
	}
	account, err := parseAddress("owner", in.Owner)
	if err == nil && in.User != nil {
		account, err = parseAddress("user", *in.User)
	}
	return listRow{strings.Clone(in.TokenID), account}, err
}

func parseRecordRow(line []byte) (recordRow, error) {
	var in struct {
		TokenID    string    `json:"token_id"`
		Version    *uint32   `json:"version"`
		RecordType string    `json:"record_type"`
		Data       string    `json:"data"`
		Tags       []*string `json:"tags"`
	}
	if err := unmarshal(line, &in); err != nil {
		return recordRow{}, err
	}
	if err := checkTokenID("token_id", in.TokenID); err != nil {
		return recordRow{}, err
	}
	if in.Version == nil {
		return recordRow{}, errors.New("version: missing")
	}
	if in.RecordType == "" {
		return recordRow{}, errors.New("record_type: missing or empty")
	}
	r := recordRow{tokenID: in.TokenID, version: *in.Version, recordType: in.RecordType}
	if in.RecordType == typeAddress {
		address, err := site.ParseAddress(in.Data)
		r.address, r.isAddress = address, err == nil
	}
	if !r.isAddress {
		data, err := parseHex(in.Data)
		if err != nil {
			return recordRow{}, err
		}
		r.data = data
	}
	for _, tag := range in.Tags {
		if tag == nil {
			return recordRow{}, errors.New("tags: null where a text belongs")
		}
		r.tags = append(r.tags, *tag)
	}
	slices.Sort(r.tags)
	r.tags = slices.Compact(r.tags)
	return r, nil
}

func parseAccountRow(line []byte) (accountRow, error) {
	var in struct {
		Address string        `json:"address"`
		Primary *string       `json:"primary_list"`
		ENS     *site.Profile `json:"ens"`
	}
	if err := unmarshal(line, &in); err != nil {
		return accountRow{}, err
	}
	address, err := parseAddress("address", in.Address)
	if err != nil {
		return accountRow{}, err
	}
	a := accountRow{address: address}
	if in.Primary != nil {
		if err := checkTokenID("primary_list", *in.Primary); err != nil {
			return accountRow{}, err
		}
		a.primary = *in.Primary
	}
	if in.ENS != nil {
		a.profile, err = normalizeProfile(*in.ENS)
	}
	return a, err
}

func parseEventRow(line []byte) (site.Event, error) {
	var in struct {
		ID          *uint64 `json:"id"`
		FancyID     *string `json:"fancy_id"`
		Name        *string `json:"name"`
		EventURL    *string `json:"event_url"`
		ImageURL    *string `json:"image_url"`
		Country     *string `json:"country"`
		City        *string `json:"city"`
		Description *string `json:"description"`
		Year        *int    `json:"year"`
		StartDate   *string `json:"start_date"`
		EndDate     *string `json:"end_date"`
		ExpiryDate  *string `json:"expiry_date"`
	}
	if err := unmarshal(line, &in); err != nil {
		return site.Event{}, err
	}
	if in.ID == nil || in.Year == nil {
		return site.Event{}, errors.New("id or year: missing")
	}
	e := site.Event{ID: *in.ID, Year: *in.Year}
	for _, member := range []struct {
		name string
		from *string
		to   *string
	}{
		{"fancy_id", in.FancyID, &e.FancyID}, {"name", in.Name, &e.Name},
		{"event_url", in.EventURL, &e.EventURL}, {"image_url", in.ImageURL, &e.ImageURL},
		{"country", in.Country, &e.Country}, {"city", in.City, &e.City},
		{"description", in.Description, &e.Description}, {"start_date", in.StartDate, &e.StartDate},
		{"end_date", in.EndDate, &e.EndDate}, {"expiry_date", in.ExpiryDate, &e.ExpiryDate},
	} {
		if member.from == nil {
			return site.Event{}, fmt.Errorf("%s: missing", member.name)
		}
		*member.to = *member.from
	}
	return e, nil
}

func parseBadgeRow(line []byte) (badgeRow, error) {
	var in struct {
		EventID string `json:"event_id"`
		TokenID string `json:"token_id"`
		Owner   string `json:"owner"`
	}
	if err := unmarshal(line, &in); err != nil {
		return badgeRow{}, err
	}
	if err := checkTokenID("event_id", in.EventID); err != nil {
		return badgeRow{}, err
	}
	if err := checkTokenID("token_id", in.TokenID); err != nil {
		return badgeRow{}, err
	}
	owner, err := parseAddress("owner", in.Owner)
	return badgeRow{in.EventID, in.TokenID, owner}, err
}

func checkTokenID(member, text string) error {
	if !site.ValidTokenID(text) {
		return fmt.Errorf("%s: %s is not a canonical decimal of at most %d digits", member, quoted(text), site.MaxTokenIDDigits)
	}
	return nil
}

func parseAddress(member, text string) (site.Address, error) {
	address, err := site.ParseAddress(text)
	if err != nil {
		return address, fmt.Errorf("%s: %s is %w", member, quoted(text), err)
	}
	return address, nil
}

// parseHex checks the data of a record and gives it in lower case.
func parseHex(text string) (string, error) {
	lower := strings.ToLower(text)
	digits, ok := strings.CutPrefix(lower, "0x")
	if ok {
		_, err := hex.DecodeString(digits)
		ok = err == nil
	}
	if !ok {
		return "", fmt.Errorf("data: %s is not hexadecimal (0x and an even number of digits)", quoted(text))
	}
	return lower, nil
}

// quoted shows what was found in a row, "nothing" or the beginning of it.
func quoted(text string) string {
	const most = 80
	if text == "" {
		return "nothing"
	}
	if len(text) > most {
		return fmt.Sprintf("%q…", strings.ToValidUTF8(text[:most], ""))
	}
	return fmt.Sprintf("%q", text)
}

// unmarshal decodes a line that must hold a JSON object.
func unmarshal(line []byte, into any) error {
	if !bytes.HasPrefix(line, []byte{'{'}) {
		return errors.New("not a JSON object")
	}
	if err := json.Unmarshal(line, into); err != nil {
		return errors.New(jsonReason(err))
	}
	return nil
}

// jsonReason says what is wrong with JSON in the words of the snapshot format
// rather than in Go's.
func jsonReason(err error) string {
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
