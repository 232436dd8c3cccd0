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

	"github.com/followpress/followpress/site/rules"
)

// ErrMalformed says that the body of an object has not the form that its key demands.
var ErrMalformed = errors.New("malformed object")

// A RefreshedProfile is the object RefreshKey(Details, …): the normalized profile that an upstream
// sent for an account, and what the refreshes stored.
type RefreshedProfile struct {
	Address string `json:"address"`
	Profile
	// Names are those of the profiles that were replaced, under APIEFP. The site has objects of the
	// account under one of them until its next run, even if the profile has another name now.
	Names  []string        `json:"names,omitempty"`
	Stored []StoredRefresh `json:"stored,omitempty"`
	// Writes counts the writes of the object. So no two versions of it are equal, and the
	// condition of a late write fails.
	Writes int `json:"writes,omitempty"`
}

// RefreshedBadges is the object RefreshKey(Badges, …): the badges of an account that an upstream sent,
// one for each event of the site, and what the refreshes stored.
type RefreshedBadges struct {
	Address string          `json:"address"`
	Fetched int64           `json:"fetched"` // milliseconds since the Unix epoch
	Badges  []Badge         `json:"badges"`
	Stored  []StoredRefresh `json:"stored,omitempty"`
	Writes  int             `json:"writes,omitempty"` // as in RefreshedProfile
}

// A StoredRefresh is a body that a refresh has stored, or is about to store.
type StoredRefresh struct {
	MD5  MD5 `json:"md5"`
	From MD5 `json:"from"` // the object of the site that this refresh, or the first before it, replaced
}

// maxStored bounds the refreshes of one object that fallbacks may run at the same time.
const maxStored = 8

// Stored decodes which bodies refreshes have stored in place of an object, the newest first. kept is
// the object RefreshKey. While the manifest names From, the object may have one of these digests; with
// any other it is damaged.
func Stored(kept []byte) ([]StoredRefresh, error) {
	var in struct {
		Stored []StoredRefresh `json:"stored"`
	}
	if err := DecodeObject(kept, &in); err != nil {
		return nil, err
	}
	return in.Stored, nil
}

// withStored adds a refresh that replaces one body by another to those that kept lists.
func withStored(replaced, by MD5, kept []byte) []StoredRefresh {
	before, err := Stored(kept)
	if err != nil {
		before = nil // it is malformed: replace it
	}
	next := StoredRefresh{MD5: by, From: replaced}
	was := slices.IndexFunc(before, func(r StoredRefresh) bool { return r.MD5 == replaced })
	all := []StoredRefresh{next}
	if was >= 0 {
		all[0].From = before[was].From
		if by != replaced { // the object is still that one until this refresh stores its own
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

// Keep encodes the object RefreshKey for a refresh that is about to replace one body by another. kept
// is that object so far, nil for none: of both profiles the one with the greater Fresh stays. If
// nothing changes, the result equals kept.
func (p RefreshedProfile) Keep(replaced, by MD5, kept []byte) ([]byte, error) {
	p.Stored = withStored(replaced, by, kept)
	p.Names = withNames(p.Names, kept)
	if account, err := ParseAddress(p.Address); err == nil {
		if was, err := DecodeProfile(kept, account, time.UnixMilli(0)); err == nil && rules.IsNewer(was.Fresh, p.Fresh) {
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

// writes is the member Writes of kept; 0 if it has none.
func writes(kept []byte) int {
	var in struct {
		Writes int `json:"writes"`
	}
	if DecodeObject(kept, &in) != nil {
		return 0
	}
	return in.Writes
}

// RefreshedNames are the names that a kept profile lists.
func RefreshedNames(kept []byte) []string {
	var in struct {
		Names []string `json:"names"`
	}
	if DecodeObject(kept, &in) != nil {
		return nil // the generator reports it
	}
	return in.Names
}

// maxNames bounds the names of a kept profile.
const maxNames = 4

// withNames adds the names that kept lists to newer ones.
func withNames(names []string, kept []byte) (all []string) {
	for _, name := range slices.Concat(names, RefreshedNames(kept)) {
		if len(all) < maxNames && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// KeepCopy encodes the object RefreshCopyKey for a refresh that is about to replace one body by another,
// like Keep of RefreshedProfile.
func KeepCopy(replaced, by MD5, kept []byte) ([]byte, error) {
	note := struct {
		Stored []StoredRefresh `json:"stored"`
		Writes int             `json:"writes"`
	}{withStored(replaced, by, kept), writes(kept)}
	body, err := encode(note)
	if err != nil || bytes.Equal(body, kept) {
		return body, err
	}
	note.Writes++
	return encode(note)
}

// Keep is like that of RefreshedProfile: of both sets of badges the one that was fetched later stays.
func (b RefreshedBadges) Keep(replaced, by MD5, kept []byte) ([]byte, error) {
	if was, _, err := DecodeRefreshedBadges(kept); err == nil && was.Address == b.Address && rules.IsNewer(was.Fetched, b.Fetched) {
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

// DecodeProfile decodes the profile of an account that an upstream sent or a refresh kept: the members
// of ens, and optionally the address, which must be the account's. Fresh defaults to the time fetched.
// An object without any member of a profile, such as an error report, is an error.
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
		return RefreshedProfile{}, errors.New("an object without any member of a profile")
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

// DecodeRefreshedProfile decodes an object RefreshKey(Details, …), and the address in it: nil for the
// account of the list. A profile of unknown age is older than all others.
func DecodeRefreshedProfile(body []byte) (Profile, *Address, error) {
	var in struct {
		Address *string `json:"address"`
	}
	if err := DecodeObject(body, &in); err != nil {
		return Profile{}, nil, err
	}
	var address *Address
	var account Address // for the decoder, which does not know lists
	if in.Address != nil {
		a, err := DecodeAddress("address", *in.Address)
		if err != nil {
			return Profile{}, nil, err
		}
		address, account = &a, a
	}
	p, err := DecodeProfile(body, account, time.UnixMilli(0))
	return p.Profile, address, err
}

// DecodeCollection decodes the token of an event that an upstream sent. It fails unless the event has
// that ID and the account owns the token.
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

// DecodeDetails decodes an answer to /details, and its address. Errors wrap ErrMalformed.
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

// Encode encodes an answer to /details. The bytes are those of the generator.
func (d ListDetails) Encode() ([]byte, error) { return encode(d) }

// An AccountAnswer is an answer to /account of a user or a list.
type AccountAnswer struct {
	Address   string
	ENS       Profile
	IsPrimary *bool   // of a list: whether it is the primary list of the account
	Primary   *string // of a list: the primary list of its account; nil for none
}

// DecodeAccount decodes an answer to /account, and its address. Errors wrap ErrMalformed.
func DecodeAccount(body []byte) (AccountAnswer, Address, error) {
	var in struct {
		Address   string  `json:"address"`
		ENS       Profile `json:"ens"`
		IsPrimary *bool   `json:"is_primary_list"`
		Primary   *string `json:"primary_list"`
	}
	if err := DecodeObject(body, &in); err != nil {
		return AccountAnswer{}, Address{}, fmt.Errorf("account: %w: %w", ErrMalformed, err)
	}
	account, err := DecodeAddress("address", in.Address)
	if err != nil {
		err = fmt.Errorf("account: %w: %w", ErrMalformed, err)
	}
	return AccountAnswer(in), account, err
}

// Encode encodes an answer to /account. The bytes are those of the generator.
func (a AccountAnswer) Encode() []byte {
	b := append([]byte(`{"address":"`), a.Address...)
	b, _ = a.ENS.Append(append(b, `","ens":`...))
	b = append(b[:len(b)-1], `,"updated_at":"`...)
	b = time.UnixMilli(a.ENS.Fresh).UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z")
	b = append(b, `"}`...)
	if a.IsPrimary != nil {
		b = strconv.AppendBool(append(b, `,"is_primary_list":`...), *a.IsPrimary)
		b = append(b, `,"primary_list":`...)
		if a.Primary == nil {
			b = append(b, "null"...)
		} else {
			b = AppendString(b, *a.Primary)
		}
	}
	return append(b, '}')
}

// DecodeLists decodes the lists of an answer to /users/{user}/lists. Errors wrap ErrMalformed.
func DecodeLists(body []byte) (lists []string, err error) {
	var in struct {
		Lists []string `json:"lists"`
	}
	if err := DecodeObject(body, &in); err != nil {
		return nil, fmt.Errorf("lists: %w: %w", ErrMalformed, err)
	}
	return in.Lists, nil
}

// DecodeBadges decodes an answer to /badges. Errors wrap ErrMalformed.
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

// EncodeBadges encodes an answer to /badges. The bytes are those of the generator.
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

// DecodeRefreshedBadges decodes an object RefreshKey(Badges, …), and its address. It fails unless every
// badge is consistent and its token belongs to that account.
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

// ParseRefreshKey is the inverse of RefreshKey for a key without RefreshPrefix. ok is false for other
// keys.
func ParseRefreshKey(key Key) (object ListObject, tokenID string, ok bool) {
	kind, tokenID, _ := strings.Cut(string(key), "/")
	object = ListObject(kind)
	return object, tokenID, slices.Contains(RefreshedObjects(), object) && ValidTokenID(tokenID)
}

// RefreshedObjects lists the objects of a list that refreshes may replace.
func RefreshedObjects() []ListObject { return []ListObject{Details, Badges} }
