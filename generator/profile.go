package generator

import (
	"bytes"
	"strings"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
)

// A profile is the encoded profile of an account. It is encoded once, because it occurs in the
// account's details and in the searches of all its followers.
type profile struct {
	ens       []byte // the ens object of details
	searchLen uint32 // length of the prefix of ens that is used in a search entry
	fresh     int64  // milliseconds since the Unix epoch
	name      string // for looking up the account; "" for none
}

var emptyProfile = encodeProfile(site.Profile{
	Records: json.RawMessage("{}"), Chains: json.RawMessage("{}"), Errors: json.RawMessage("{}"),
})

// encodeProfile encodes a normalised profile.
func encodeProfile(source site.Profile) profile {
	b, searchLen := source.Append(make([]byte, 0, 256))
	p := profile{ens: bytes.Clone(b), searchLen: uint32(searchLen), fresh: source.Fresh}
	if site.LookupName(source.Name) {
		p.name = strings.Clone(source.Name) // do not keep the whole line in memory
	}
	return p
}
