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

// profileBlock is the size of a memory block for profiles.
const profileBlock = 1 << 20

// profiles are the profiles of all accounts, in a few large blocks. An account takes 32 bytes
// besides its texts.
type profiles struct {
	blocks [][]byte
	all    []packedProfile // by account; may be shorter than the accounts
}

// A packedProfile locates a profile: its ens in a block, followed by its name.
type packedProfile struct {
	fresh             int64
	block, at         uint32
	length, searchLen uint32 // length is 0 without a profile
	nameLen           uint8  // at most site.MaxNameBytes
}

// Set sets the profile of an account. It copies its texts.
func (ps *profiles) Set(account uint32, p Profile) {
	ps.all = append(ps.all, make([]packedProfile, max(0, int(account)+1-len(ps.all)))...)
	size := len(p.ENS) + len(p.Name)
	last := len(ps.blocks) - 1
	if last < 0 || cap(ps.blocks[last])-len(ps.blocks[last]) < size {
		last++
		ps.blocks = append(ps.blocks, make([]byte, 0, max(profileBlock, size)))
	}
	block := &ps.blocks[last]
	ps.all[account] = packedProfile{p.Fresh, uint32(last), uint32(len(*block)), uint32(len(p.ENS)), p.SearchLen, uint8(len(p.Name))}
	*block = append(append(*block, p.ENS...), p.Name...)
}

func (ps *profiles) Unname(account uint32) { ps.all[account].nameLen = 0 }

// Of returns the profile of an account without its name. ok is false if it has none.
func (ps *profiles) Of(account uint32) (p Profile, ok bool) {
	if int(account) >= len(ps.all) || ps.all[account].length == 0 {
		return Profile{}, false
	}
	packed := &ps.all[account]
	return Profile{ENS: ps.blocks[packed.block][packed.at:][:packed.length:packed.length], SearchLen: packed.searchLen, Fresh: packed.fresh}, true
}

// Len returns the number of accounts that may have a profile, which come first.
func (ps *profiles) Len() int { return len(ps.all) }

// Fresh returns the time of the profile of an account that has one.
func (ps *profiles) Fresh(account uint32) int64 { return ps.all[account].fresh }

// Name returns the name for looking up an account; nil for none.
func (ps *profiles) Name(account uint32) []byte {
	if int(account) >= len(ps.all) {
		return nil
	}
	packed := &ps.all[account]
	return ps.blocks[packed.block][packed.at+packed.length:][:packed.nameLen]
}

// profileEnds are the ends of the first texts of an encoded profile. Searches show name and avatar;
// more objects of the API efp show the header too.
type profileEnds struct{ name, header uint32 }

const (
	nameStart    = len(`{"name":`)
	avatarMember = len(`,"avatar":`)
	headerMember = len(`,"header":`)
	emptyText    = `""`
)

func endsOf(p Profile) profileEnds {
	header := int(p.SearchLen) + headerMember
	return profileEnds{uint32(textEnd(p.ENS, nameStart)), uint32(textEnd(p.ENS, header))}
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

// orEmpty returns the profile, or an empty profile if there is none.
func (p Profile) orEmpty() Profile {
	if len(p.ENS) == 0 {
		return emptyProfile
	}
	return p
}

func textsOf(p Profile, ends profileEnds) (name, avatar, header []byte) {
	return p.ENS[nameStart:ends.name], p.ENS[int(ends.name)+avatarMember : p.SearchLen], p.ENS[int(p.SearchLen)+headerMember : ends.header]
}

// HeaderEnd returns the end of the texts of an encoded profile that other accounts' objects show
// under the API efp: name, avatar and header. searchLen is Profile.SearchLen.
func HeaderEnd(ens []byte, searchLen uint32) int {
	return int(endsOf(Profile{ENS: ens, SearchLen: searchLen}).header)
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
