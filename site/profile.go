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

// Normalize returns the profile as the API writes it: Records, Chains and Errors become JSON objects
// with sorted keys and without white space, {} for null or nothing. An error names the member that is
// no object.
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

// Clone returns a profile that shares no memory with p.
func (p Profile) Clone() Profile {
	p.Name, p.Avatar, p.Header = strings.Clone(p.Name), strings.Clone(p.Avatar), strings.Clone(p.Header)
	p.Display, p.Resolver = strings.Clone(p.Display), strings.Clone(p.Resolver)
	p.Records, p.Chains, p.Errors = bytes.Clone(p.Records), bytes.Clone(p.Chains), bytes.Clone(p.Errors)
	return p
}

// Append appends a normalized profile as a JSON object. Name and avatar come first: the first searchLen
// bytes of the object and a closing brace make the SearchProfile.
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

// A LongText is a text of a profile that was left out because of its length.
type LongText struct {
	Member string `json:"member"` // such as avatar or records.avatar
	Bytes  int    `json:"bytes"`  // its length
}

// ProfileLimits bound the profiles of a site.
type ProfileLimits struct {
	Text  int // bytes of a text (Config.MaxProfileText)
	Whole int // bytes of a whole profile, as JSON (Config.MaxProfile)
}

// Within leaves out what a normalized profile has beyond the limits, and lists it: first its long texts, as
// WithoutLongTexts does, then the largest text or entry, as JSON, until the rest fits. Of two that are as large
// it is the first in the order of Append, where entries are in the order of their names.
func (p Profile) Within(limits ProfileLimits) (Profile, []LongText) {
	p, long := p.WithoutLongTexts(limits.Text)
	if p.mostBytes() <= limits.Whole {
		return p, long
	}
	body, _ := p.Append(nil)
	over := len(body) - limits.Whole
	if over <= 0 {
		return p, long
	}
	parts := p.parts()
	slices.SortStableFunc(parts, func(a, b profilePart) int { return b.bytes - a.bytes })
	left := map[*json.RawMessage]map[string]any{} // the entries of objects that lose some
	for _, part := range parts {
		if over <= 0 {
			break
		}
		over -= part.bytes
		long = append(long, part.LongText)
		if part.text != nil {
			*part.text = ""
			continue
		}
		if delete(part.entries, part.entry); len(part.entries) > 0 {
			over -= len(",")
		}
		left[part.object] = part.entries
	}
	for object, entries := range left {
		*object, _ = encodeValue(entries) // what was decoded from JSON can be encoded
	}
	return p, long
}

// A profilePart is what Within leaves out: a text or an entry.
type profilePart struct {
	LongText
	bytes   int // as JSON
	text    *string
	object  *json.RawMessage // with the entry
	entries map[string]any   // of the object
	entry   string
}

// parts lists the texts and entries of a normalized profile, which they point to.
func (p *Profile) parts() (all []profilePart) {
	text := func(name string, text *string) {
		all = append(all, profilePart{LongText: LongText{name, len(*text)}, bytes: len(rawjson.AppendString(nil, *text)) - len(`""`), text: text})
	}
	object := func(name string, object *json.RawMessage) {
		entries, err := decodeEntries(*object)
		if err != nil {
			return // it would not be canonical
		}
		for _, entry := range slices.Sorted(maps.Keys(entries)) {
			value, _ := encodeValue(entries[entry])
			all = append(all, profilePart{
				LongText: LongText{name + "." + shortened(entry), max(len(entry), valueBytes(entries[entry]))},
				bytes:    len(rawjson.AppendString(nil, entry)) + len(":") + len(value),
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

// mostBytes is at least the size of the profile as JSON, and costs less.
func (p *Profile) mostBytes() int {
	const escaped, rest = 6, 256 // of a character, as \u0000; of the rest
	texts := len(p.Name) + len(p.Avatar) + len(p.Header) + len(p.Display) + len(p.Resolver)
	return texts*escaped + len(p.Records) + len(p.Chains) + len(p.Errors) + rest
}

// WithoutLongTexts leaves out the texts of a normalized profile that are longer than most bytes, and
// lists them. An entry of Records, Chains or Errors is left out if its name or its value is longer; the
// length of a value other than a string is that of its JSON.
func (p Profile) WithoutLongTexts(most int) (Profile, []LongText) {
	var long []LongText
	for _, member := range []struct {
		name string
		text *string
	}{{"name", &p.Name}, {"avatar", &p.Avatar}, {"header", &p.Header}, {"display", &p.Display}, {"resolver", &p.Resolver}} {
		if n := len(*member.text); n > most {
			long = append(long, LongText{member.name, n})
			*member.text = ""
		}
	}
	for _, member := range []struct {
		name   string
		object *json.RawMessage
	}{{"records", &p.Records}, {"chains", &p.Chains}, {"errors", &p.Errors}} {
		var entries []LongText
		*member.object, entries = withoutLongEntries(*member.object, member.name, most)
		long = append(long, entries...)
	}
	return p, long
}

// withoutLongEntries leaves long entries out of a JSON object in the form of Normalize.
func withoutLongEntries(object json.RawMessage, member string, most int) (json.RawMessage, []LongText) {
	if len(object) <= most { // so no entry is longer either
		return object, nil
	}
	entries, err := decodeEntries(object)
	if err != nil {
		return object, nil // it would not be canonical
	}
	var long []LongText
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if n := max(len(name), valueBytes(entries[name])); n > most {
			long = append(long, LongText{member + "." + shortened(name), n})
			delete(entries, name)
		}
	}
	if long == nil {
		return object, nil
	}
	rest, _ := encodeValue(entries) // what was decoded from JSON can be encoded
	return rest, long
}

func valueBytes(value any) int {
	if text, ok := value.(string); ok {
		return len(text)
	}
	body, _ := encodeValue(value)
	return len(body)
}

// shortened is the beginning of a name, for reports.
func shortened(name string) string {
	const most = 80
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "…"
}

// mostNested is how deep the objects of a profile nest at most. JSON decoders have limits of their own,
// so an object at such a limit could not be read where it is a part of another one.
const mostNested = 100

// canonicalObject rewrites a JSON object with sorted keys and without white space; null and nothing
// become {}. Numbers keep their digits.
func canonicalObject(raw json.RawMessage) (json.RawMessage, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" || string(raw) == "{}" {
		return json.RawMessage("{}"), nil
	}
	if raw[0] != '{' {
		return nil, fmt.Errorf("%s where an object belongs", Quoted(string(raw)))
	}
	var s rawjson.Scanner
	s.Reset(raw)
	if object := s.Object(); s.Done() {
		return object, nil
	}
	entries, err := decodeEntries(raw)
	if err != nil {
		return nil, fmt.Errorf("bad JSON: %w", err)
	}
	if nestsDeeper(entries, mostNested) {
		return nil, fmt.Errorf("nested more than %d deep", mostNested)
	}
	return encodeValue(entries)
}

// nestsDeeper reports whether a decoded value has more than levels of objects and arrays.
func nestsDeeper(value any, levels int) bool {
	switch value := value.(type) {
	case map[string]any:
		for _, member := range value {
			if levels == 0 || nestsDeeper(member, levels-1) {
				return true
			}
		}
	case []any:
		for _, element := range value {
			if levels == 0 || nestsDeeper(element, levels-1) {
				return true
			}
		}
	}
	return false
}

func decodeEntries(object []byte) (entries map[string]any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(object))
	decoder.UseNumber() // keeps the digits
	err = decoder.Decode(&entries)
	return entries, err
}

func encodeValue(value any) ([]byte, error) {
	return json.MarshalWithOption(value, json.DisableHTMLEscape())
}
