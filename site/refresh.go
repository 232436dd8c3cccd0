package site

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	json "github.com/goccy/go-json"
)

// A RefreshedProfile is the object RefreshKey(Details, …): the profile that an
// upstream sent, normalised, and whose it is.
type RefreshedProfile struct {
	Address string `json:"address"`
	Profile
	Stored []StoredRefresh `json:"stored,omitempty"`
	Writes int             `json:"writes,omitempty"` // so far: no two of these objects are alike, and a write that comes late fails its condition
}

// RefreshedBadges is the object RefreshKey(Badges, …): the badges that an upstream
// knew for the events of the set, and whose they are.
type RefreshedBadges struct {
	Address string          `json:"address"`
	Fetched int64           `json:"fetched"` // milliseconds since the Unix epoch
	Badges  []Badge         `json:"badges"`
	Stored  []StoredRefresh `json:"stored,omitempty"`
	Writes  int             `json:"writes,omitempty"` // as in RefreshedProfile
}

// A StoredRefresh is an object that a refresh has put, or is about to put.
type StoredRefresh struct {
	MD5  MD5 `json:"md5"`
	From MD5 `json:"from"` // the site's own object, which the first of its refreshes has read
}

// maxStored is how many refreshes of one object may be under way at the same time, by
// as many fallbacks.
const maxStored = 8

// Stored is what refreshes have put in the place of a list's object, as what they have
// kept says, the newest first. As long as the manifest names From, the object may have one
// of the digests; any other bytes are damage.
func Stored(kept []byte) ([]StoredRefresh, error) {
	var in struct {
		Stored []StoredRefresh `json:"stored"`
	}
	if err := DecodeObject(kept, &in); err != nil {
		return nil, err
	}
	return in.Stored, nil
}

// withStored adds a refresh that replaces one object by another to those kept so far.
func withStored(replaced, by MD5, kept []byte) []StoredRefresh {
	before, err := Stored(kept)
	if err != nil {
		before = nil // whatever is there is replaced
	}
	next := StoredRefresh{MD5: by, From: replaced}
	was := slices.IndexFunc(before, func(r StoredRefresh) bool { return r.MD5 == replaced })
	all := []StoredRefresh{next}
	if was >= 0 {
		all[0].From = before[was].From
		if by != replaced { // which is there until this one is put
			all = append(all, before[was])
		}
	}
	for i, r := range before {
		if len(all) < maxStored && i != was && r != all[0] {
			all = append(all, r)
		}
	}
	return all
}

// Keep is what is kept of a refresh that is about to replace an object by another, where
// so far kept was (nil for nothing): of two profiles the one that is fresher.
func (p RefreshedProfile) Keep(replaced, by MD5, kept []byte) ([]byte, error) {
	p.Stored = withStored(replaced, by, kept)
	if account, err := ParseAddress(p.Address); err == nil {
		if was, err := DecodeProfile(kept, account, time.UnixMilli(0)); err == nil && was.Fresh > p.Fresh {
			p.Profile = was.Profile
		}
	}
	p.Writes = writes(kept)
	body, err := encode(p)
	if err != nil || bytes.Equal(body, kept) {
		return body, err
	}
	p.Writes++
	return encode(p)
}

// writes is how often what was kept has been written.
func writes(kept []byte) int {
	var in struct {
		Writes int `json:"writes"`
	}
	if DecodeObject(kept, &in) != nil {
		return 0
	}
	return in.Writes
}

// Keep is what is kept of a refresh that is about to replace an object by another, where
// so far kept was (nil for nothing): of two sets of badges the one that was fetched later.
func (b RefreshedBadges) Keep(replaced, by MD5, kept []byte) ([]byte, error) {
	if was, _, err := DecodeRefreshedBadges(kept); err == nil && was.Address == b.Address && was.Fetched > b.Fetched {
		b = was
	}
	b.Stored = withStored(replaced, by, kept)
	b.Writes = writes(kept)
	body, err := encode(b)
	if err != nil || bytes.Equal(body, kept) {
		return body, err
	}
	b.Writes++
	return encode(b)
}

// DecodeProfile reads the profile of an account that an upstream sent, or that a
// refresh has kept: the members of ens, and perhaps the address, which then must be
// the account's. A profile that does not say how fresh it is gets the time at which
// it was fetched. An object that has nothing of a profile, such as a report of an
// error, is none.
func DecodeProfile(body []byte, account Address, fetched time.Time) (RefreshedProfile, error) {
	var in struct {
		Address *string `json:"address"`
		Profile
	}
	if err := DecodeObject(body, &in); err != nil {
		return RefreshedProfile{}, err
	}
	if in.Address != nil {
		if err := checkAccount("address", *in.Address, account); err != nil {
			return RefreshedProfile{}, err
		}
	}
	if in.isZero() {
		return RefreshedProfile{}, errors.New("an object without anything of a profile")
	}
	p, err := in.Normalize()
	if err != nil {
		return RefreshedProfile{}, err
	}
	if p.Fresh <= 0 {
		p.Fresh = fetched.UnixMilli()
	}
	return RefreshedProfile{Address: account.String(), Profile: p}, nil
}

// DecodeCollection reads the token of an event that an upstream says an account holds.
func DecodeCollection(body []byte, account Address, eventID string) (Collection, error) {
	var in struct {
		Event   json.RawMessage `json:"event"`
		TokenID string          `json:"tokenId"`
		Owner   string          `json:"owner"`
	}
	if err := DecodeObject(body, &in); err != nil {
		return Collection{}, err
	}
	event, err := DecodeEvent(in.Event)
	if err != nil {
		return Collection{}, fmt.Errorf("event: %w", err)
	}
	if id := strconv.FormatUint(event.ID, 10); id != eventID {
		return Collection{}, fmt.Errorf("event: it is %s, not %s", id, Quoted(eventID))
	}
	if err := CheckTokenID("tokenId", in.TokenID); err != nil {
		return Collection{}, err
	}
	if err := checkAccount("owner", in.Owner, account); err != nil {
		return Collection{}, err
	}
	return Collection{event, in.TokenID, account.String()}, nil
}

func checkAccount(member, text string, account Address) error {
	address, err := DecodeAddress(member, text)
	if err == nil && address != account {
		err = fmt.Errorf("%s: it is that of %s, not of %s", member, address, account)
	}
	return err
}

// DecodeDetails reads the answer to /details.
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

// Encode writes the answer to /details as the generator does.
func (d ListDetails) Encode() ([]byte, error) { return encode(d) }

// DecodeBadges reads the answer to /badges.
func (c Config) DecodeBadges(body []byte) ([]Badge, error) {
	var in map[string]json.RawMessage
	if err := DecodeObject(body, &in); err != nil {
		return nil, fmt.Errorf("badges: %w: %w", ErrMalformed, err)
	}
	var badges []Badge
	if err := json.Unmarshal(in[c.BadgesField], &badges); err != nil || badges == nil {
		return nil, fmt.Errorf("badges without %q: %w", c.BadgesField, ErrMalformed)
	}
	return badges, nil
}

// EncodeBadges writes the answer to /badges as the generator does.
func (c Config) EncodeBadges(badges []Badge) ([]byte, error) {
	if badges == nil {
		badges = []Badge{}
	}
	return encode(map[string][]Badge{c.BadgesField: badges})
}

func encode(value any) ([]byte, error) {
	body, err := json.MarshalWithOption(value, json.DisableHTMLEscape())
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", value, err)
	}
	return body, nil
}

// DecodeRefreshedBadges reads the badges that a refresh has kept.
func DecodeRefreshedBadges(body []byte) (RefreshedBadges, Address, error) {
	var in RefreshedBadges
	if err := DecodeObject(body, &in); err != nil {
		return in, Address{}, err
	}
	account, err := DecodeAddress("address", in.Address)
	if err != nil {
		return in, account, err
	}
	if in.Fetched <= 0 {
		return in, account, errors.New("fetched: missing")
	}
	for _, b := range in.Badges {
		if err := CheckTokenID("eventId", b.EventID); err != nil {
			return in, account, err
		}
		if b.Participated != (b.Collection != nil) {
			return in, account, fmt.Errorf("event %s: participated and collection disagree", b.EventID)
		}
		if b.Collection == nil {
			continue
		}
		err := CheckTokenID("tokenId", b.Collection.TokenID)
		if err == nil {
			err = checkAccount("owner", b.Collection.Owner, account)
		}
		if err != nil {
			return in, account, fmt.Errorf("event %s: %w", b.EventID, err)
		}
	}
	return in, account, nil
}

// ParseRefreshKey takes the key of what a refresh has kept apart, without
// RefreshPrefix; ok is false if it is no such key.
func ParseRefreshKey(key Key) (object ListObject, tokenID string, ok bool) {
	kind, tokenID, _ := strings.Cut(string(key), "/")
	object = ListObject(kind)
	return object, tokenID, slices.Contains(RefreshedObjects(), object) && ValidTokenID(tokenID)
}

// RefreshedObjects are the objects of a list that a refresh replaces.
func RefreshedObjects() []ListObject { return []ListObject{Details, Badges} }
