package fresh

import (
	"fmt"
	"strconv"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/refresh"
)

// This file decodes and encodes the objects that refreshes replace, in the generator's encoding.

// An accountAnswer is the /account answer for a user or a list.
type accountAnswer struct {
	Address   string       `json:"address"`
	ENS       site.Profile `json:"ens"`
	IsPrimary *bool        `json:"is_primary_list"` // list answers: whether it is the account's primary list
	Primary   *string      `json:"primary_list"`    // list answers: the account's primary list; nil for none
}

// decodeAccount decodes an /account answer and its address. Errors wrap site.ErrMalformed.
func decodeAccount(body []byte) (a accountAnswer, account site.Address, err error) {
	if err = site.DecodeObject(body, &a); err == nil {
		account, err = site.DecodeAddress("address", a.Address)
	}
	if err != nil {
		err = fmt.Errorf("account: %w: %w", site.ErrMalformed, err)
	}
	return a, account, err
}

// encode encodes an /account answer as the generator does, byte for byte.
func (a accountAnswer) encode() []byte {
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
			b = rawjson.AppendString(b, *a.Primary)
		}
	}
	return append(b, '}')
}

// encode encodes details or badges as the generator does, byte for byte.
func encode(value any) ([]byte, error) {
	body, err := json.MarshalWithOption(value, json.DisableHTMLEscape())
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", value, err)
	}
	return body, nil
}

// decodeLists decodes the lists in an answer to /users/{user}/lists. Errors wrap site.ErrMalformed.
func decodeLists(body []byte) (lists []string, err error) {
	var in struct {
		Lists []string `json:"lists"`
	}
	if err := site.DecodeObject(body, &in); err != nil {
		return nil, fmt.Errorf("lists: %w: %w", site.ErrMalformed, err)
	}
	return in.Lists, nil
}

// decodeBadges decodes a /badges answer. Errors wrap site.ErrMalformed.
func decodeBadges(c site.Config, body []byte) ([]refresh.Badge, error) {
	var in map[string]json.RawMessage
	if err := site.DecodeObject(body, &in); err != nil {
		return nil, fmt.Errorf("badges: %w: %w", site.ErrMalformed, err)
	}
	var badges []refresh.Badge
	if err := json.Unmarshal(in[c.BadgesField], &badges); err != nil || badges == nil {
		return nil, fmt.Errorf("badges without %q: %w", c.BadgesField, site.ErrMalformed)
	}
	return badges, nil
}

// encodeBadges encodes a /badges answer.
func encodeBadges(c site.Config, badges []refresh.Badge) ([]byte, error) {
	if badges == nil {
		badges = []refresh.Badge{}
	}
	return encode(map[string][]refresh.Badge{c.BadgesField: badges})
}
