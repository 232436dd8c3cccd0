package generator

import (
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
	b, searchLen := source.Append(make([]byte, 0, 512))
	p := profile{ens: b, searchLen: uint32(searchLen), fresh: source.Fresh}
	if site.LookupName(source.Name) {
		p.name = strings.Clone(source.Name) // do not keep the whole line in memory
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

// set sets the profile of an account. It copies its texts.
func (ps *profiles) set(account uint32, p profile) {
	ps.all = extend(ps.all, int(account)+1)
	size := len(p.ens) + len(p.name)
	last := len(ps.blocks) - 1
	if last < 0 || cap(ps.blocks[last])-len(ps.blocks[last]) < size {
		ps.blocks = append(ps.blocks, make([]byte, 0, max(profileBlock, size)))
		last++
	}
	block := &ps.blocks[last]
	ps.all[account] = packedProfile{p.fresh, uint32(last), uint32(len(*block)), uint32(len(p.ens)), p.searchLen, uint8(len(p.name))}
	*block = append(append(*block, p.ens...), p.name...)
}

// unname takes the name from an account.
func (ps *profiles) unname(account uint32) { ps.all[account].nameLen = 0 }

// of returns the profile of an account without its name. ok is false if it has none.
func (ps *profiles) of(account uint32) (p profile, ok bool) {
	if int(account) >= len(ps.all) || ps.all[account].length == 0 {
		return profile{}, false
	}
	packed := &ps.all[account]
	return profile{ens: ps.blocks[packed.block][packed.at:][:packed.length:packed.length], searchLen: packed.searchLen, fresh: packed.fresh}, true
}

// name returns the name for looking up an account; nil for none.
func (ps *profiles) name(account uint32) []byte {
	if int(account) >= len(ps.all) {
		return nil
	}
	packed := &ps.all[account]
	return ps.blocks[packed.block][packed.at+packed.length:][:packed.nameLen]
}
