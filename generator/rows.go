package generator

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/followpress/followpress/site"
)

// The types below are parsed rows, checked and normalised. Parsers run on many goroutines.
// References to other rows are checked later, by the loader.

type listRow struct {
	tokenID string
	account site.Address // the user if set, otherwise the owner
}

type recordRow struct {
	tokenID    string
	version    uint32
	recordType string
	address    site.Address
	isAddress  bool   // whether the type is address and the data a valid one
	data       string // lower-case hexadecimal, unless isAddress
	tags       []string
	added      int64 // milliseconds since the Unix epoch; noTime for none
}

type accountRow struct {
	address site.Address
	primary string // token ID; "" for none
	profile profile
	long    []site.LongText // left out of the profile
}

type badgeRow struct {
	eventID string
	tokenID string
	owner   site.Address
}

type recommendedRow struct {
	address site.Address
	class   string // "" for none
}

const typeAddress = "address"

func parseListRow(line []byte) (listRow, error) {
	var in struct {
		TokenID string  `json:"token_id"`
		Owner   string  `json:"owner"`
		User    *string `json:"user"`
	}
	if err := site.DecodeObject(line, &in); err != nil {
		return listRow{}, err
	}
	if err := site.CheckTokenID("token_id", in.TokenID); err != nil {
		return listRow{}, err
	}
	account, err := site.DecodeAddress("owner", in.Owner)
	if err == nil && in.User != nil {
		account, err = site.DecodeAddress("user", *in.User)
	}
	return listRow{strings.Clone(in.TokenID), account}, err
}

// recordMembers are the members of a row of records.
type recordMembers struct {
	TokenID    string    `json:"token_id"`
	Version    *uint32   `json:"version"`
	RecordType string    `json:"record_type"`
	Data       string    `json:"data"`
	Tags       []*string `json:"tags"`
	Added      *string   `json:"added"`
}

// untimedMembers are recordMembers of which the member added may be anything.
type untimedMembers struct {
	TokenID    string    `json:"token_id"`
	Version    *uint32   `json:"version"`
	RecordType string    `json:"record_type"`
	Data       string    `json:"data"`
	Tags       []*string `json:"tags"`
	Added      *string   `json:"-"`
}

// parseRecordRow parses a row of records: the time at which it was added only if timed.
func parseRecordRow(line []byte, timed bool) (recordRow, error) {
	var in recordMembers
	var into any = &in
	if !timed {
		into = (*untimedMembers)(&in)
	}
	if err := site.DecodeObject(line, into); err != nil {
		return recordRow{}, err
	}
	if err := site.CheckTokenID("token_id", in.TokenID); err != nil {
		return recordRow{}, err
	}
	if in.Version == nil {
		return recordRow{}, errors.New("version: missing")
	}
	if in.RecordType == "" {
		return recordRow{}, errors.New("record_type: missing or empty")
	}
	r := recordRow{tokenID: in.TokenID, version: *in.Version, recordType: in.RecordType, added: noTime}
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
			return recordRow{}, errors.New("tags: null instead of a text")
		}
		r.tags = append(r.tags, *tag)
	}
	slices.Sort(r.tags)
	r.tags = slices.Compact(r.tags)
	if in.Added != nil {
		added, err := parseTime("added", *in.Added)
		if err != nil {
			return recordRow{}, err
		}
		r.added = added
	}
	return r, nil
}

func parseAccountRow(line []byte, maxText int) (accountRow, error) {
	var in struct {
		Address string        `json:"address"`
		Primary *string       `json:"primary_list"`
		ENS     *site.Profile `json:"ens"`
	}
	if err := site.DecodeObject(line, &in); err != nil {
		return accountRow{}, err
	}
	address, err := site.DecodeAddress("address", in.Address)
	if err != nil {
		return accountRow{}, err
	}
	a := accountRow{address: address}
	if in.Primary != nil {
		if err := site.CheckTokenID("primary_list", *in.Primary); err != nil {
			return accountRow{}, err
		}
		a.primary = *in.Primary
	}
	if in.ENS != nil {
		ens, err := in.ENS.Normalize()
		if err != nil {
			return accountRow{}, err
		}
		ens, a.long = ens.WithoutLongTexts(maxText)
		a.profile = encodeProfile(ens)
	}
	return a, nil
}

func parseBadgeRow(line []byte) (badgeRow, error) {
	var in struct {
		EventID string `json:"event_id"`
		TokenID string `json:"token_id"`
		Owner   string `json:"owner"`
	}
	if err := site.DecodeObject(line, &in); err != nil {
		return badgeRow{}, err
	}
	if err := site.CheckTokenID("event_id", in.EventID); err != nil {
		return badgeRow{}, err
	}
	if err := site.CheckTokenID("token_id", in.TokenID); err != nil {
		return badgeRow{}, err
	}
	owner, err := site.DecodeAddress("owner", in.Owner)
	return badgeRow{in.EventID, in.TokenID, owner}, err
}

func parseRecommendedRow(line []byte) (recommendedRow, error) {
	var in struct {
		Address string  `json:"address"`
		Class   *string `json:"class"`
	}
	if err := site.DecodeObject(line, &in); err != nil {
		return recommendedRow{}, err
	}
	address, err := site.DecodeAddress("address", in.Address)
	if err != nil || in.Class == nil {
		return recommendedRow{address: address}, err
	}
	return recommendedRow{address, strings.Clone(*in.Class)}, nil
}

// parseTime returns a time in milliseconds since the Unix epoch, cut off.
func parseTime(member, text string) (int64, error) {
	t, err := time.Parse(time.RFC3339, text)
	// Package time also takes an hour of one digit, and a comma as the decimal point.
	if err != nil || text[len("2026-01-31T00")] != ':' || strings.Contains(text, ",") {
		return 0, fmt.Errorf("%s: %s is not a time like 2026-01-31T00:00:00Z (RFC 3339)", member, site.Quoted(text))
	}
	return t.UnixMilli(), nil
}

// parseHex checks the data of a record and returns it in lower case.
func parseHex(text string) (string, error) {
	lower := strings.ToLower(text)
	digits, ok := strings.CutPrefix(lower, "0x")
	if ok {
		_, err := hex.DecodeString(digits)
		ok = err == nil
	}
	if !ok {
		return "", fmt.Errorf("data: %s is not hexadecimal (0x and an even number of digits)", site.Quoted(text))
	}
	return lower, nil
}
