package site

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/rawjson"
)

// Normalize returns the profile as the API writes it: Records, Chains and Errors become JSON objects of texts with
// sorted keys and without white space; null or nothing becomes {}. It drops entries that are null and entries that
// are not texts; NoTexts counts the latter. It fails, naming the member, if a member is not an object.
func (p Profile) Normalize() (Profile, error) {
	for _, member := range []struct {
		name   string
		object *json.RawMessage
	}{{"records", &p.Records}, {"chains", &p.Chains}, {"errors", &p.Errors}} {
		object, noTexts, err := textsOf(*member.object)
		if err != nil {
			return Profile{}, fmt.Errorf("ens.%s: %w", member.name, err)
		}
		*member.object = object
		p.NoTexts += noTexts
	}
	return p, nil
}

// Clone returns a copy that shares no memory with p.
func (p Profile) Clone() Profile {
	p.Name, p.Avatar, p.Header = strings.Clone(p.Name), strings.Clone(p.Avatar), strings.Clone(p.Header)
	p.Display, p.Resolver = strings.Clone(p.Display), strings.Clone(p.Resolver)
	p.Records, p.Chains, p.Errors = bytes.Clone(p.Records), bytes.Clone(p.Chains), bytes.Clone(p.Errors)
	return p
}

// Append appends a normalized profile as a JSON object. Name and avatar come first: the first searchLen bytes and a
// closing brace form the SearchProfile.
func (p Profile) Append(b []byte) (body []byte, searchLen int) {
	start := len(b)
	b = append(b, `{"name":`...)
	b = rawjson.AppendString(b, p.Name)
	b = append(b, `,"avatar":`...)
	b = rawjson.AppendString(b, p.Avatar)
	searchLen = len(b) - start
	b = append(b, `,"header":`...)
	b = rawjson.AppendString(b, p.Header)
	b = append(b, `,"display":`...)
	b = rawjson.AppendString(b, p.Display)
	b = append(append(b, `,"records":`...), p.Records...)
	b = append(append(b, `,"chains":`...), p.Chains...)
	b = strconv.AppendInt(append(b, `,"fresh":`...), p.Fresh, 10)
	b = append(b, `,"resolver":`...)
	b = rawjson.AppendString(b, p.Resolver)
	b = append(append(b, `,"errors":`...), p.Errors...)
	return append(b, '}'), searchLen
}

// A LongText describes a text of a profile that was omitted because of its length.
type LongText struct {
	Member string `json:"member"` // such as avatar or records.avatar
	Bytes  int    `json:"bytes"`  // length of the text
}

// ProfileLimits are size limits of profiles.
type ProfileLimits struct {
	Text  int // bytes of a text (Config.MaxProfileText)
	Whole int // bytes of a whole profile, as JSON (Config.MaxProfile)
}

// Within omits the parts of a normalized profile that exceed the limits, and lists them: first long texts, and entries
// whose name or text is long; then the largest texts or entries, as JSON, until the rest fits. Among equally large ones
// it omits the first in the order of Append, where entries are sorted by name.
func (p Profile) Within(limits ProfileLimits) (Profile, []LongText) {
	if p.mostBytes() <= limits.Whole && p.longest() <= limits.Text {
		return p, nil
	}
	var omitted []LongText
	left := map[*json.RawMessage]map[string]string{} // remaining entries of shortened objects
	omit := func(part profilePart) {
		omitted = append(omitted, part.LongText)
		if part.text != nil {
			*part.text = ""
			return
		}
		delete(part.entries, part.entry)
		left[part.object] = part.entries
	}
	encode := func() {
		for object, entries := range left {
			*object = encodeTexts(entries)
		}
	}
	parts := slices.DeleteFunc(p.parts(), func(part profilePart) bool {
		isLong := part.Bytes > limits.Text
		if isLong {
			omit(part)
		}
		return isLong
	})
	encode()
	body, _ := p.Append(nil)
	over := len(body) - limits.Whole
	slices.SortStableFunc(parts, func(a, b profilePart) int { return b.bytes - a.bytes })
	for _, part := range parts {
		if over <= 0 {
			break
		}
		omit(part)
		over -= part.bytes
		if len(part.entries) > 0 {
			over -= len(",")
		}
	}
	encode()
	return p, omitted
}

// A profilePart is a text or an entry that Within may omit.
type profilePart struct {
	LongText
	bytes   int // as JSON
	text    *string
	object  *json.RawMessage  // contains the entry
	entries map[string]string // entries of the object
	entry   string
}

// parts lists the texts and entries of a normalized profile, with pointers into it.
func (p *Profile) parts() (all []profilePart) {
	text := func(name string, text *string) {
		all = append(all, profilePart{LongText: LongText{name, len(*text)}, bytes: len(rawjson.AppendString(nil, *text)) - len(`""`), text: text})
	}
	object := func(name string, object *json.RawMessage) {
		entries := decodeTexts(*object)
		for _, entry := range slices.Sorted(maps.Keys(entries)) {
			all = append(all, profilePart{
				LongText: LongText{name + "." + shortened(entry), max(len(entry), len(entries[entry]))},
				bytes:    len(rawjson.AppendString(nil, entry)) + len(":") + len(rawjson.AppendString(nil, entries[entry])),
				object:   object, entries: entries, entry: entry,
			})
		}
	}
	text("name", &p.Name)
	text("avatar", &p.Avatar)
	text("header", &p.Header)
	text("display", &p.Display)
	object("records", &p.Records)
	object("chains", &p.Chains)
	text("resolver", &p.Resolver)
	object("errors", &p.Errors)
	return all
}

// mostBytes returns a cheap upper bound on the size of the profile as JSON.
func (p *Profile) mostBytes() int {
	const escaped, rest = 6, 256 // bytes of an escaped character, as \u0000; bytes of everything else
	texts := len(p.Name) + len(p.Avatar) + len(p.Header) + len(p.Display) + len(p.Resolver)
	return texts*escaped + len(p.Records) + len(p.Chains) + len(p.Errors) + rest
}

// longest returns an upper bound on the size of the longest text in bytes: of entries, that of their object.
func (p *Profile) longest() int {
	return max(len(p.Name), len(p.Avatar), len(p.Header), len(p.Display), len(p.Records), len(p.Chains), len(p.Resolver), len(p.Errors))
}

// shortened returns the start of a name, for reports.
func shortened(name string) string {
	const most = 80
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "…"
}

// textsOf rewrites a JSON object with sorted keys and without white space; null or nothing becomes
// {}. It drops entries that are not strings, and counts the dropped ones except nulls.
func textsOf(raw json.RawMessage) (object json.RawMessage, noTexts int, err error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" || string(raw) == "{}" {
		return json.RawMessage("{}"), 0, nil
	}
	if raw[0] != '{' {
		return nil, 0, fmt.Errorf("%s where an object belongs", Quoted(string(raw)))
	}
	var s rawjson.Scanner
	s.Reset(raw)
	if object := s.Texts(); s.Done() {
		return object, 0, nil
	}
	var entries map[string]any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // some numbers exceed float64
	if err := decoder.Decode(&entries); err != nil {
		return nil, 0, fmt.Errorf("bad JSON: %w", err)
	}
	texts := make(map[string]string, len(entries))
	for name, value := range entries {
		if text, ok := value.(string); ok {
			texts[name] = text
		} else if value != nil {
			noTexts++
		}
	}
	return encodeTexts(texts), noTexts, nil
}

// decodeTexts decodes a result of textsOf, or returns nil for anything else.
func decodeTexts(object json.RawMessage) (texts map[string]string) {
	if json.Unmarshal(object, &texts) != nil {
		return nil // it is not what textsOf returns
	}
	return texts
}

func encodeTexts(texts map[string]string) json.RawMessage {
	body, _ := json.MarshalWithOption(texts, json.DisableHTMLEscape()) // texts always encode
	return body
}
