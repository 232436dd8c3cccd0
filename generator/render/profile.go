package render

import (
	"bytes"
	"strings"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
)

// A Profile is the encoded profile of an account. It is encoded once, because it occurs in the
// account's details and in the searches of all its followers. The zero value means no profile.
type Profile struct {
	ENS       []byte // the ens object of details
	SearchLen uint32 // length of the prefix of ENS used in search entries
	Fresh     int64  // milliseconds since the Unix epoch
	Name      string // for looking up the account; "" for none
}

var emptyProfile = EncodeProfile(site.Profile{
	Records: json.RawMessage("{}"), Chains: json.RawMessage("{}"), Errors: json.RawMessage("{}"),
})

// EncodeProfile encodes a normalized profile.
func EncodeProfile(source site.Profile) Profile {
	b, searchLen := source.Append(make([]byte, 0, 512))
	p := Profile{ENS: b, SearchLen: uint32(searchLen), Fresh: source.Fresh}
	if site.LookupName(source.Name) {
		p.Name = strings.Clone(source.Name) // do not retain the whole line
	}
	return p
}

// TextEnds are the ends of the first texts of an encoded profile. Searches show name and avatar;
// more objects of the API efp show the header too.
type TextEnds struct{ Name, Header uint32 }

const (
	nameStart    = len(`{"name":`)
	avatarMember = len(`,"avatar":`)
	headerMember = len(`,"header":`)
	emptyText    = `""`
)

// EndsOf returns the ends of the texts of a profile that is not zero.
func EndsOf(p Profile) TextEnds {
	header := int(p.SearchLen) + headerMember
	return TextEnds{uint32(textEnd(p.ENS, nameStart)), uint32(textEnd(p.ENS, header))}
}

// textEnd returns the end of the JSON string that begins at start.
func textEnd(ens []byte, start int) int {
	for end := start + 1; ; end++ {
		end += bytes.IndexAny(ens[end:], `"\`)
		if ens[end] == '"' {
			return end + 1
		}
		end++ // skip the escaped character
	}
}

// OrEmpty returns the profile, or an empty profile if there is none.
func (p Profile) OrEmpty() Profile {
	if len(p.ENS) == 0 {
		return emptyProfile
	}
	return p
}

// TextsOf returns the texts with these ends, as JSON strings.
func TextsOf(p Profile, ends TextEnds) (name, avatar, header []byte) {
	return p.ENS[nameStart:ends.Name], p.ENS[int(ends.Name)+avatarMember : p.SearchLen], p.ENS[int(p.SearchLen)+headerMember : ends.Header]
}

// HeaderEnd returns the end of the texts of an encoded profile that other accounts' objects show
// under the API efp: name, avatar and header. searchLen is Profile.SearchLen.
func HeaderEnd(ens []byte, searchLen uint32) int {
	return int(EndsOf(Profile{ENS: ens, SearchLen: searchLen}).Header)
}

// recordsText returns the member records of an encoded profile.
func recordsText(p Profile) []byte {
	var in struct {
		Records json.RawMessage `json:"records"`
	}
	if err := json.Unmarshal(p.ENS, &in); err != nil {
		return []byte("{}") // impossible: encoded by this package
	}
	return in.Records
}

// orNull returns null for an empty JSON string.
func orNull(text []byte) []byte {
	if len(text) == len(emptyText) {
		return []byte("null")
	}
	return text
}
