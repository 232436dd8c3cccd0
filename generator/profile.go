package generator

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
)

// A profile is a profile as the site shows it, encoded: most of them are shown
// many times, in details and in the searches of everybody who follows them.
type profile struct {
	ens       []byte // the ens object of details
	searchLen uint32 // length of the part of it that begins the ens object of a search entry
	fresh     int64  // milliseconds since the Unix epoch
	name      string // by which the account is found; "" if by none
}

var emptyProfile = encodeProfile(site.Profile{
	Records: json.RawMessage("{}"), Chains: json.RawMessage("{}"), Errors: json.RawMessage("{}"),
})

// normalizeProfile makes the ens object of a snapshot ours. Null and missing
// members are alike, unknown ones were dropped when it was decoded.
func normalizeProfile(source site.Profile) (profile, error) {
	for _, member := range []struct {
		name   string
		object *json.RawMessage
	}{{"records", &source.Records}, {"chains", &source.Chains}, {"errors", &source.Errors}} {
		object, err := canonicalObject(*member.object)
		if err != nil {
			return profile{}, fmt.Errorf("ens.%s: %w", member.name, err)
		}
		*member.object = object
	}
	p := encodeProfile(source)
	if site.LookupName(source.Name) {
		p.name = strings.Clone(source.Name) // not to keep the whole line
	}
	return p, nil
}

// encodeProfile encodes the members of p in order. The name and the avatar come
// first, so that a search entry's ens object is a part of it.
func encodeProfile(p site.Profile) profile {
	b := append(make([]byte, 0, 256), `{"name":`...)
	b = site.AppendString(b, p.Name)
	b = append(b, `,"avatar":`...)
	b = site.AppendString(b, p.Avatar)
	searchLen := uint32(len(b))
	b = append(b, `,"header":`...)
	b = site.AppendString(b, p.Header)
	b = append(b, `,"display":`...)
	b = site.AppendString(b, p.Display)
	b = append(append(b, `,"records":`...), p.Records...)
	b = append(append(b, `,"chains":`...), p.Chains...)
	b = strconv.AppendInt(append(b, `,"fresh":`...), p.Fresh, 10)
	b = append(b, `,"resolver":`...)
	b = site.AppendString(b, p.Resolver)
	b = append(append(b, `,"errors":`...), p.Errors...)
	b = append(b, '}')
	return profile{ens: bytes.Clone(b), searchLen: searchLen, fresh: p.Fresh}
}

// canonicalObject is a JSON object with sorted keys and no white space, its
// contents as they were; null and nothing are the empty object.
func canonicalObject(raw json.RawMessage) (json.RawMessage, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" || string(raw) == "{}" {
		return json.RawMessage("{}"), nil
	}
	if raw[0] != '{' {
		return nil, fmt.Errorf("%s where an object belongs", quoted(string(raw)))
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // digits as they were
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		return nil, fmt.Errorf("bad JSON: %w", err)
	}
	return json.MarshalWithOption(object, json.DisableHTMLEscape())
}
