package render

import (
	"bytes"
	"strings"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
)

// A Profile is the encoded profile of an account. It is encoded once, because it occurs in the
// account's details and in the searches of all its followers. The zero value is that of an account
// without one.
type Profile struct {
	ENS       []byte // the ens object of details
	SearchLen uint32 // length of the prefix of ENS that is used in a search entry
	Fresh     int64  // milliseconds since the Unix epoch
	Name      string // for looking up the account; "" for none
}

var emptyProfile = EncodeProfile(site.Profile{
	Records: json.RawMessage("{}"), Chains: json.RawMessage("{}"), Errors: json.RawMessage("{}"),
})

// EncodeProfile encodes a normalised profile.
func EncodeProfile(source site.Profile) Profile {
	b, searchLen := source.Append(make([]byte, 0, 512))
	p := Profile{ENS: b, SearchLen: uint32(searchLen), Fresh: source.Fresh}
	if site.LookupName(source.Name) {
		p.Name = strings.Clone(source.Name) // do not keep the whole line in memory
	}
	return p
}

// profileBlock is the size of a piece of memory for profiles.
const profileBlock = 1 << 20

// profiles are the profiles of all accounts, in few pieces of memory. An account takes 32 bytes besides
// its texts.
type profiles struct {
	blocks [][]byte
	all    []packedProfile // by account; those of the last ones may be missing
}

// A packedProfile tells where a profile is: its ens in a block, and its name after it.
type packedProfile struct {
	fresh             int64
	block, at         uint32
	length, searchLen uint32 // length is 0 if there is no profile
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

// Len is the number of accounts that may have a profile, which are the first ones.
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

// profileEnds say where the first texts of an encoded profile end, of which searches show the name and
// the avatar, and more of the API efp the header too.
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
		end++ // the character after a backslash
	}
}

// orEmpty returns the profile, or an empty one for none.
func (p Profile) orEmpty() Profile {
	if len(p.ENS) == 0 {
		return emptyProfile
	}
	return p
}

func textsOf(p Profile, ends profileEnds) (name, avatar, header []byte) {
	return p.ENS[nameStart:ends.name], p.ENS[int(ends.name)+avatarMember : p.SearchLen], p.ENS[int(p.SearchLen)+headerMember : ends.header]
}

// HeaderEnd is where the texts of an encoded profile end that the objects of other accounts show under
// the API efp: name, avatar and header. searchLen is that of the profile.
func HeaderEnd(ens []byte, searchLen uint32) int {
	return int(endsOf(Profile{ENS: ens, SearchLen: searchLen}).header)
}

// recordsText returns the member records of an encoded profile.
func recordsText(p Profile) []byte {
	var in struct {
		Records json.RawMessage `json:"records"`
	}
	if err := json.Unmarshal(p.ENS, &in); err != nil {
		return []byte("{}") // does not happen: the profile was encoded here
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
