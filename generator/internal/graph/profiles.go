package graph

import "github.com/followpress/followpress/generator/render"

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
func (ps *profiles) Set(account uint32, p render.Profile) {
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

// Unname removes the name for looking up an account.
func (ps *profiles) Unname(account uint32) { ps.all[account].nameLen = 0 }

// Of returns the profile of an account without its name. ok is false if it has none.
func (ps *profiles) Of(account uint32) (p render.Profile, ok bool) {
	if int(account) >= len(ps.all) || ps.all[account].length == 0 {
		return render.Profile{}, false
	}
	packed := &ps.all[account]
	return render.Profile{ENS: ps.blocks[packed.block][packed.at:][:packed.length:packed.length], SearchLen: packed.searchLen, Fresh: packed.fresh}, true
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
