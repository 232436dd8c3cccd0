package site

import (
	"bytes"
	"fmt"
	"strconv"

	json "github.com/goccy/go-json"
)

// Normalize gives a profile the form of the API: of the members that are objects,
// null and nothing become the empty object, keys are sorted and white space is
// gone. An error names the member that is no object.
func (p Profile) Normalize() (Profile, error) {
	for _, member := range []struct {
		name   string
		object *json.RawMessage
	}{{"records", &p.Records}, {"chains", &p.Chains}, {"errors", &p.Errors}} {
		object, err := canonicalObject(*member.object)
		if err != nil {
			return Profile{}, fmt.Errorf("ens.%s: %w", member.name, err)
		}
		*member.object = object
	}
	return p, nil
}

func (p Profile) isZero() bool {
	return p.Name+p.Avatar+p.Header+p.Display+p.Resolver == "" && p.Records == nil && p.Chains == nil && p.Errors == nil && p.Fresh == 0
}

// Append appends the ens object of a normalised profile. The name and the avatar
// come first: the object up to searchLen, and a brace, is that of a search entry.
func (p Profile) Append(b []byte) (body []byte, searchLen int) {
	start := len(b)
	b = append(b, `{"name":`...)
	b = AppendString(b, p.Name)
	b = append(b, `,"avatar":`...)
	b = AppendString(b, p.Avatar)
	searchLen = len(b) - start
	b = append(b, `,"header":`...)
	b = AppendString(b, p.Header)
	b = append(b, `,"display":`...)
	b = AppendString(b, p.Display)
	b = append(append(b, `,"records":`...), p.Records...)
	b = append(append(b, `,"chains":`...), p.Chains...)
	b = strconv.AppendInt(append(b, `,"fresh":`...), p.Fresh, 10)
	b = append(b, `,"resolver":`...)
	b = AppendString(b, p.Resolver)
	b = append(append(b, `,"errors":`...), p.Errors...)
	return append(b, '}'), searchLen
}

// canonicalObject is a JSON object with sorted keys and no white space, its
// contents as they were; null and nothing are the empty object.
func canonicalObject(raw json.RawMessage) (json.RawMessage, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" || string(raw) == "{}" {
		return json.RawMessage("{}"), nil
	}
	if raw[0] != '{' {
		return nil, fmt.Errorf("%s where an object belongs", Quoted(string(raw)))
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // digits as they were
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		return nil, fmt.Errorf("bad JSON: %w", err)
	}
	return json.MarshalWithOption(object, json.DisableHTMLEscape())
}
