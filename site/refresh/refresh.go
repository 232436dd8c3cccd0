// Package refresh encodes and decodes fresh data of accounts: the profiles and badges that upstreams send, and the
// objects below site.RefreshPrefix that store them. The server writes these objects, the next run of the generator
// merges them, and publisher and report read which objects differ from the manifest because of a refresh. The package
// does no I/O.
//
// The API may change in any release.
package refresh

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// A KeptProfile is the object site.RefreshKey(Details, …): an account's normalized profile from an upstream, and what
// refreshes stored.
type KeptProfile struct {
	Address string `json:"address"`
	site.Profile
	// Names are the names of replaced profiles, newest first, under APIEFP. Until its next run, the site has the
	// account's objects under the last one, even if the profile has another name now.
	Names  []string      `json:"names,omitempty"`
	Stored []Replacement `json:"stored,omitempty"`
	// Writes counts the writes of the object. It makes all versions different, so that the condition of a late write
	// fails.
	Writes int `json:"writes,omitempty"`
}

// KeptBadges is the object site.RefreshKey(Badges, …): an account's badges from an upstream, one for each event of
// the site, and what refreshes stored.
type KeptBadges struct {
	Address string        `json:"address"`
	Fetched int64         `json:"fetched"` // milliseconds since the Unix epoch
	Badges  []Badge       `json:"badges"`
	Stored  []Replacement `json:"stored,omitempty"`
	Writes  int           `json:"writes,omitempty"` // as in KeptProfile
}

// A Badge reports whether an account took part in an event (2.6). Collection is null if it did not.
type Badge struct {
	EventID      string      `json:"eventId"`
	Participated bool        `json:"participated"`
	Collection   *Collection `json:"collection"`
}

// A Collection is a token of an event and the account that owns it.
type Collection struct {
	Event   site.Event `json:"event"`
	TokenID string     `json:"tokenId"`
	Owner   string     `json:"owner"`
}

// A Replacement is a body that a refresh has stored or is about to store.
type Replacement struct {
	MD5  site.MD5 `json:"md5"`
	From site.MD5 `json:"from"` // the site's own object, which this refresh or an earlier one replaced

	// The same bodies, for readers that check signatures.
	SHA256     site.SHA256 `json:"sha256"`
	FromSHA256 site.SHA256 `json:"from_sha256"`
}

// maxStored is the maximum number of replacements listed for an object: concurrent refreshes by fallbacks.
const maxStored = 8

// kept has the members of an object site.RefreshKey or site.RefreshCopyKey that refreshes add.
type kept struct {
	Names  []string      `json:"names"`
	Stored []Replacement `json:"stored"`
	Writes int           `json:"writes"`
}

// decodeKept returns the zero kept with an error.
func decodeKept(body []byte) (kept, error) {
	var in kept
	if err := site.DecodeObject(body, &in); err != nil {
		return kept{}, err
	}
	return in, nil
}

// Replacements decodes the replacements in an object site.RefreshKey, newest first. While the manifest lists From,
// the replaced object may have one of these digests; with any other it is damaged.
func Replacements(kept []byte) ([]Replacement, error) {
	in, err := decodeKept(kept)
	return in.Stored, err
}

// withStored adds a replacement to kept. A nil by adds nothing.
func withStored(replaced, by, kept []byte) []Replacement {
	before, _ := Replacements(kept) // none if it is malformed, so it gets replaced
	if by == nil {
		return before
	}
	digest := site.Sum(replaced)
	was := slices.IndexFunc(before, func(r Replacement) bool { return r.MD5 == digest })
	all := []Replacement{{MD5: site.Sum(by), From: digest, SHA256: site.Sum256(by), FromSHA256: site.Sum256(replaced)}}
	if was >= 0 {
		all[0].From, all[0].FromSHA256 = before[was].From, before[was].FromSHA256
		if all[0].MD5 != digest { // until this refresh stores its body, the object is still the previous one
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

// Keep encodes the object site.RefreshKey for a refresh that is about to replace one body by another; both are nil if
// it stores none. kept is the previous object, or nil. The profile with the greater Fresh wins. If nothing changes,
// the result equals kept.
func (p KeptProfile) Keep(replaced, by, kept []byte) ([]byte, error) {
	p.Names = withNames(p.Names, by != nil && !hasStored(replaced, kept), kept)
	p.Stored = withStored(replaced, by, kept)
	if account, err := site.ParseAddress(p.Address); err == nil {
		if was, err := DecodeProfile(kept, account, time.UnixMilli(0)); err == nil && rules.IsNewer(was.Fresh, p.Fresh) {
			p.Profile = was.Profile
		}
	}
	return counted(kept, func(writes int) any { p.Writes = writes; return p })
}

// counted encodes data with its number of writes: that of kept, plus one if anything changes.
func counted(kept []byte, written func(writes int) any) ([]byte, error) {
	was, _ := decodeKept(kept) // zero if it is malformed
	body, err := encode(written(was.Writes))
	if err != nil || bytes.Equal(body, kept) {
		return body, err
	}
	return encode(written(was.Writes + 1))
}

// Names returns the names that a kept profile lists.
func Names(kept []byte) []string {
	in, _ := decodeKept(kept) // the generator reports malformed objects
	return in.Names
}

// maxNames is the maximum number of names in a kept profile.
const maxNames = 4

// hasStored reports whether a refresh has stored the body, according to kept. Otherwise the body is the site's own.
func hasStored(body, kept []byte) bool {
	stored, err := Replacements(kept)
	return err == nil && slices.ContainsFunc(stored, func(r Replacement) bool { return r.MD5 == site.Sum(body) })
}

// withNames prepends newer names to kept. The last name is the site's own, under which the site has
// objects. It stays until a profile of another site is replaced. Of the other names, the newest
// stay.
func withNames(names []string, ofSite bool, kept []byte) (all []string) {
	before, last := Names(kept), names
	if n := len(before); !ofSite {
		before, last = before[:max(0, n-1)], before[max(0, n-1):]
	}
	for _, name := range slices.Concat(names, before) {
		if len(all)+len(last) < maxNames && !slices.Contains(last, name) && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return append(all, last...)
}

// KeepCopy encodes the object site.RefreshCopyKey for a refresh that is about to replace one body by another. See
// KeptProfile.Keep.
func KeepCopy(replaced, by, kept []byte) ([]byte, error) {
	stored := withStored(replaced, by, kept)
	return counted(kept, func(writes int) any {
		return struct {
			Stored []Replacement `json:"stored"`
			Writes int           `json:"writes"`
		}{stored, writes}
	})
}

// Keep is like KeptProfile.Keep. The badges with the later Fetched win.
func (b KeptBadges) Keep(replaced, by, kept []byte) ([]byte, error) {
	if was, _, err := DecodeKeptBadges(kept); err == nil && was.Address == b.Address && rules.IsNewer(was.Fetched, b.Fetched) {
		b = was
	}
	b.Stored = withStored(replaced, by, kept)
	return counted(kept, func(writes int) any { b.Writes = writes; return b })
}

// An Update is a profile from an upstream, which may omit members.
type Update struct {
	KeptProfile
	present []string // names of the members in the update
}

// DecodeUpdate is like DecodeProfile, for an upstream's response.
func DecodeUpdate(body []byte, account site.Address, fetched time.Time) (Update, error) {
	p, present, err := decodeProfile(body, account, fetched)
	return Update{p, present}, err
}

// Over returns the profile, with members that the upstream omitted taken from a stored one. The upstream clears a
// member with null, "" or {}. Fresh always comes from the update.
func (u Update) Over(stored site.Profile) KeptProfile {
	p := u.KeptProfile
	keep := func(name string, text *string, stored string) {
		if !slices.Contains(u.present, name) {
			*text = stored
		}
	}
	keep("name", &p.Name, stored.Name)
	keep("avatar", &p.Avatar, stored.Avatar)
	keep("header", &p.Header, stored.Header)
	keep("display", &p.Display, stored.Display)
	keep("resolver", &p.Resolver, stored.Resolver)
	keepObject := func(name string, object *json.RawMessage, stored json.RawMessage) {
		if !slices.Contains(u.present, name) && len(stored) > 0 {
			*object = stored
		}
	}
	keepObject("records", &p.Records, stored.Records)
	keepObject("chains", &p.Chains, stored.Chains)
	keepObject("errors", &p.Errors, stored.Errors)
	return p
}

// DecodeProfile decodes an account's profile from an upstream or a refresh: the members of ens, and optionally the
// address, which must be the account's. Fresh defaults to fetched. An object without any member of a profile, such as
// an error report, is an error.
func DecodeProfile(body []byte, account site.Address, fetched time.Time) (KeptProfile, error) {
	p, _, err := decodeProfile(body, account, fetched)
	return p, err
}

// profileMembers lists the members of a profile.
var profileMembers = []string{"name", "avatar", "header", "display", "records", "chains", "fresh", "resolver", "errors"}

// decodeProfile also returns the names of the members in the object, null or not.
func decodeProfile(body []byte, account site.Address, fetched time.Time) (p KeptProfile, present []string, err error) {
	var in struct {
		Address *string `json:"address"`
		site.Profile
	}
	if err := site.DecodeObject(body, &in); err != nil {
		return p, nil, err
	}
	var members map[string]json.RawMessage
	if err := site.DecodeObject(body, &members); err != nil {
		return p, nil, err
	}
	if in.Address != nil {
		if err := checkAccount("address", *in.Address, account); err != nil {
			return p, nil, err
		}
	}
	for name := range members {
		if name := strings.ToLower(name); slices.Contains(profileMembers, name) { // the decoder accepts names in any case
			present = append(present, name)
		}
	}
	if len(present) == 0 {
		return p, nil, errors.New("an object without any member of a profile")
	}
	p.Address = account.String()
	if p.Profile, err = in.Normalize(); err != nil {
		return KeptProfile{}, nil, err
	}
	if p.Fresh <= 0 {
		p.Fresh = fetched.UnixMilli()
	}
	return p, present, nil
}

// DecodeKeptProfile decodes an object site.RefreshKey(Details, …) and its address. A nil address
// means the account of the list. A profile without Fresh gets 0.
func DecodeKeptProfile(body []byte) (site.Profile, *site.Address, error) {
	var in struct {
		Address *string `json:"address"`
	}
	if err := site.DecodeObject(body, &in); err != nil {
		return site.Profile{}, nil, err
	}
	var address *site.Address
	var account site.Address // placeholder for the decoder, which does not know lists
	if in.Address != nil {
		a, err := site.DecodeAddress("address", *in.Address)
		if err != nil {
			return site.Profile{}, nil, err
		}
		address, account = &a, a
	}
	p, err := DecodeProfile(body, account, time.UnixMilli(0))
	return p.Profile, address, err
}

// DecodeCollection decodes an event's token from an upstream. It fails unless the event has that ID and the account
// owns the token.
func DecodeCollection(body []byte, account site.Address, eventID string) (Collection, error) {
	var in struct {
		Event   json.RawMessage `json:"event"`
		TokenID string          `json:"tokenId"`
		Owner   string          `json:"owner"`
	}
	if err := site.DecodeObject(body, &in); err != nil {
		return Collection{}, err
	}
	event, err := site.DecodeEvent(in.Event)
	if err != nil {
		return Collection{}, fmt.Errorf("event: %w", err)
	}
	if id := strconv.FormatUint(event.ID, 10); id != eventID {
		return Collection{}, fmt.Errorf("event is %s, not %s", id, site.Quoted(eventID))
	}
	if err := site.CheckTokenID("tokenId", in.TokenID); err != nil {
		return Collection{}, err
	}
	if err := checkAccount("owner", in.Owner, account); err != nil {
		return Collection{}, err
	}
	return Collection{Event: event, TokenID: in.TokenID, Owner: account.String()}, nil
}

func checkAccount(member, text string, account site.Address) error {
	address, err := site.DecodeAddress(member, text)
	if err == nil && address != account {
		err = fmt.Errorf("%s is %s, not %s", member, address, account)
	}
	return err
}

// DecodeKeptBadges decodes an object site.RefreshKey(Badges, …) and its address. It fails unless every badge is
// consistent and its token belongs to that account.
func DecodeKeptBadges(body []byte) (KeptBadges, site.Address, error) {
	var in KeptBadges
	if err := site.DecodeObject(body, &in); err != nil {
		return in, site.Address{}, err
	}
	account, err := site.DecodeAddress("address", in.Address)
	if err != nil {
		return in, account, err
	}
	if in.Fetched <= 0 {
		return in, account, errors.New("fetched: missing")
	}
	for _, b := range in.Badges {
		if err := site.CheckTokenID("eventId", b.EventID); err != nil {
			return in, account, err
		}
		if b.Participated != (b.Collection != nil) {
			return in, account, fmt.Errorf("event %s: participated and collection disagree", b.EventID)
		}
		if b.Collection == nil {
			continue
		}
		b.Collection.Event.Normalize()
		err := site.CheckTokenID("tokenId", b.Collection.TokenID)
		if err == nil {
			err = checkAccount("owner", b.Collection.Owner, account)
		}
		if err != nil {
			return in, account, fmt.Errorf("event %s: %w", b.EventID, err)
		}
	}
	return in, account, nil
}

// AppendProfileRow appends the canonical form of a profile from DecodeKeptProfile. The digest of the rows of all
// objects, sorted by key, is in site.Inputs. It ignores what else a refresh stores with a profile.
func AppendProfileRow(b []byte, tokenID string, p *site.Profile, address *site.Address) []byte {
	b = append(append(append(b, `{"details":"`...), tokenID...), '"')
	if address != nil {
		b = append(address.Append(append(b, `,"address":"`...)), '"')
	}
	b, _ = p.Append(append(b, `,"ens":`...))
	return append(b, '}')
}

// AppendBadgesRow is like AppendProfileRow, for badges from DecodeKeptBadges.
func AppendBadgesRow(b []byte, tokenID string, kept *KeptBadges, address site.Address) []byte {
	b = append(append(b, `{"badges":"`...), tokenID...)
	b = address.Append(append(b, `","address":"`...))
	b = strconv.AppendInt(append(b, `","fetched":`...), kept.Fetched, 10)
	b = append(b, `,"events":[`...)
	for i, badge := range kept.Badges {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, `{"event_id":"`...), badge.EventID...), '"')
		if badge.Collection != nil {
			b = append(append(append(b, `,"token_id":"`...), badge.Collection.TokenID...), '"')
		}
		b = append(b, '}')
	}
	return append(b, "]}"...)
}

func encode(value any) ([]byte, error) {
	body, err := json.MarshalWithOption(value, json.DisableHTMLEscape())
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", value, err)
	}
	return body, nil
}
