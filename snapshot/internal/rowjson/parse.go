package rowjson

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// Parser returns the function that parses, checks and normalizes a row of the type T. If untimed, it ignores the time
// of a record. It is safe for concurrent use. Strings of a row may share memory. References to other rows are not
// checked.
func Parser[T any](untimed bool) func(line []byte) (T, error) {
	record := ParseTimedRecord
	if untimed {
		record = ParseRecord
	}
	for _, parse := range []any{site.DecodeEvent, ParseList, ParseAccount, record, ParseBadge, ParseRecommended, ParseOp} {
		if parse, ok := parse.(func([]byte) (T, error)); ok {
			return parse
		}
	}
	return func([]byte) (row T, _ error) { return row, fmt.Errorf("%T is not a row of a table", row) }
}

// ParseList parses a row of lists.
func ParseList(line []byte) (List, error) {
	var in struct {
		TokenID string  `json:"token_id"`
		Owner   string  `json:"owner"`
		User    *string `json:"user"`
	}
	if err := site.DecodeObject(line, &in); err != nil {
		return List{}, err
	}
	if err := site.CheckTokenID("token_id", in.TokenID); err != nil {
		return List{}, err
	}
	owner, err := site.DecodeAddress("owner", in.Owner)
	if err != nil {
		return List{}, err
	}
	l := List{TokenID: strings.Clone(in.TokenID), Owner: owner}
	if in.User != nil {
		user, err := site.DecodeAddress("user", *in.User)
		if err != nil {
			return List{}, err
		}
		l.User = &user
	}
	return l, nil
}

type recordMembers struct {
	TokenID    string    `json:"token_id"`
	Version    *uint32   `json:"version"`
	RecordType string    `json:"record_type"`
	Data       string    `json:"data"`
	Tags       []*string `json:"tags"`
	Added      *string   `json:"added"`
}

// untimedMembers are recordMembers that ignore the member added.
type untimedMembers struct {
	recordMembers
	Added json.RawMessage `json:"added"`
}

// ParseRecord parses a row of records and ignores its time. Tags are sorted and unique.
func ParseRecord(line []byte) (Record, error) { return parseRecord(line, false) }

// ParseTimedRecord is like ParseRecord, with the time.
func ParseTimedRecord(line []byte) (Record, error) { return parseRecord(line, true) }

func parseRecord(line []byte, timed bool) (Record, error) {
	s := TakeScanner()
	defer s.GiveBack()
	if r, ok := s.ScanRecord(line, timed); ok {
		return r.clone(), nil
	}
	return DecodeRecord(line, timed)
}

// clone returns a copy that shares no memory with r.
func (r *Record) clone() Record {
	c := *r
	c.TokenID, c.Data, c.Tags = strings.Clone(r.TokenID), bytes.Clone(r.Data), nil
	if c.Type = rules.TypeAddress; r.Type != rules.TypeAddress {
		c.Type = strings.Clone(r.Type)
	}
	for _, tag := range r.Tags {
		c.Tags = append(c.Tags, strings.Clone(tag))
	}
	return c
}

// DecodeRecord decodes any row of records.
func DecodeRecord(line []byte, timed bool) (Record, error) {
	var untimed untimedMembers
	in, into := &untimed.recordMembers, any(&untimed)
	if timed {
		into = in
	}
	if err := site.DecodeObject(line, into); err != nil {
		return Record{}, err
	}
	if err := site.CheckTokenID("token_id", in.TokenID); err != nil {
		return Record{}, err
	}
	if in.Version == nil {
		return Record{}, errors.New("version: missing")
	}
	if in.RecordType == "" {
		return Record{}, errors.New("record_type: missing or empty")
	}
	data, err := parseHex("data", in.Data)
	if err != nil {
		return Record{}, err
	}
	r := Record{TokenID: in.TokenID, Version: *in.Version, Type: in.RecordType, Data: data, Added: NoTime}
	if r.Tags, err = parseTags(in.Tags); err != nil {
		return Record{}, err
	}
	if in.Added != nil {
		added, err := ParseTime("added", *in.Added)
		if err != nil {
			return Record{}, err
		}
		r.Added = added
	}
	return r, nil
}

func parseTags(in []*string) (tags []string, err error) {
	for _, tag := range in {
		if tag == nil {
			return nil, errors.New("tags: null instead of a text")
		}
		tags = append(tags, *tag)
	}
	return rules.MergeTags(tags), nil
}

// ParseAccount parses a row of accounts. Profiles are normalized (site.Profile.Normalize).
func ParseAccount(line []byte) (Account, error) {
	s := TakeScanner()
	defer s.GiveBack()
	if a, ok := s.ScanAccount(line); ok {
		return a.clone(), nil
	}
	return DecodeAccount(line)
}

// clone returns a copy that shares no memory with a.
func (a *Account) clone() Account {
	c := Account{Address: a.Address, Primary: strings.Clone(a.Primary)}
	if a.ENS != nil {
		ens := a.ENS.Clone()
		c.ENS = &ens
	}
	return c
}

// DecodeAccount decodes any row of accounts.
func DecodeAccount(line []byte) (Account, error) {
	var in struct {
		Address string        `json:"address"`
		Primary *string       `json:"primary_list"`
		ENS     *site.Profile `json:"ens"`
	}
	if err := site.DecodeObject(line, &in); err != nil {
		return Account{}, err
	}
	address, err := site.DecodeAddress("address", in.Address)
	if err != nil {
		return Account{}, err
	}
	a := Account{Address: address}
	if in.Primary != nil {
		if err := site.CheckTokenID("primary_list", *in.Primary); err != nil {
			return Account{}, err
		}
		a.Primary = *in.Primary
	}
	if in.ENS != nil {
		ens, err := in.ENS.Normalize()
		if err != nil {
			return Account{}, err
		}
		a.ENS = &ens
	}
	return a, nil
}

// ParseBadge parses a row of badges.
func ParseBadge(line []byte) (Badge, error) {
	var in struct {
		EventID string `json:"event_id"`
		TokenID string `json:"token_id"`
		Owner   string `json:"owner"`
	}
	if err := site.DecodeObject(line, &in); err != nil {
		return Badge{}, err
	}
	if err := cmp.Or(site.CheckTokenID("event_id", in.EventID), site.CheckTokenID("token_id", in.TokenID)); err != nil {
		return Badge{}, err
	}
	owner, err := site.DecodeAddress("owner", in.Owner)
	return Badge{in.EventID, in.TokenID, owner}, err
}

// ParseRecommended parses a row of recommended.
func ParseRecommended(line []byte) (Recommended, error) {
	var in struct {
		Address string  `json:"address"`
		Class   *string `json:"class"`
	}
	if err := site.DecodeObject(line, &in); err != nil {
		return Recommended{}, err
	}
	address, err := site.DecodeAddress("address", in.Address)
	if err != nil || in.Class == nil {
		return Recommended{Address: address}, err
	}
	return Recommended{address, strings.Clone(*in.Class)}, nil
}

// ParseTime returns a time in milliseconds since the Unix epoch, rounded down.
func ParseTime(member, text string) (int64, error) {
	t, err := time.Parse(time.RFC3339, text)
	// Package time also accepts an hour of one digit, and a comma as the decimal point.
	if err != nil || text[len("2026-01-31T00")] != ':' || strings.Contains(text, ",") {
		return 0, fmt.Errorf("%s: %s is not a time like 2026-01-31T00:00:00Z (RFC 3339)", member, site.Quoted(text))
	}
	ms := t.UnixMilli()
	if !IsWritable(ms) { // its offset may change the year
		return 0, fmt.Errorf("%s: %s is not in the years 0 to 9999 in UTC", member, site.Quoted(text))
	}
	return ms, nil
}

func parseHex(member, text string) ([]byte, error) {
	if digits, ok := strings.CutPrefix(text, "0x"); ok {
		if data, err := hex.DecodeString(digits); err == nil {
			return data, nil
		}
	}
	return nil, fmt.Errorf("%s: %s is not hexadecimal (0x and an even number of digits)", member, site.Quoted(text))
}
