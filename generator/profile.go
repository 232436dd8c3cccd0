package generator

import (
	"bytes"
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

// encodeProfile encodes a normalised profile.
func encodeProfile(source site.Profile) profile {
	b, searchLen := source.Append(make([]byte, 0, 256))
	p := profile{ens: bytes.Clone(b), searchLen: uint32(searchLen), fresh: source.Fresh}
	if site.LookupName(source.Name) {
		p.name = strings.Clone(source.Name) // not to keep the whole line
	}
	return p
}
