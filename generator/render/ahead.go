package render

import (
	"slices"

	"github.com/followpress/followpress/site/rules"
)

// Whom a list holds, and who holds an account, is anywhere in memory. Rendered one by one, each row waits several times:
// for an address, for counts, for the place of a profile, and then for its texts. The functions of this file read what
// the next rows need, and nothing else, so that the processor waits for many places at a time. TestReadAhead and
// BenchmarkReadAhead keep them from being optimised away, or of no use.

// aheadRows is how many rows are read ahead at a time.
const aheadRows = 32

// Limits of what is read of a profile: the processor notices by itself that a longer text goes on.
const (
	cacheLine     = 64
	mostTextAhead = 16 * cacheLine
)

// ahead reads what rows show of the accounts that they are about: those from one index to another.
func (r *graphRecords) ahead(from, to int) {
	accounts := r.all.data[from:min(to, len(r.all.data))]
	for len(accounts) > 0 {
		n := min(len(accounts), aheadRows)
		r.read += r.touch(r.ranks, r.ends, false, accounts[:n])
		accounts = accounts[n:]
	}
}

func (unitRecords) ahead(_, _ int) {} // a unit is read from one place

// touch reads what rows show of at most aheadRows accounts, with or without the header of the profile. Data that is no
// address is left out. The sum is of no use but that the compiler cannot leave the reads out.
func (g *Graph) touch(ranks *Ranks, ends []profileEnds, headers bool, accounts []uint32) (sum uint32) {
	var texts [aheadRows][]byte
	followers := ranks.Count[rules.Followers]
	for i, account := range accounts {
		if account&OtherData != 0 {
			continue
		}
		sum += uint32(g.Accounts[account][0])
		p := g.profile(account)
		end := p.SearchLen
		if ends != nil { // else no row has numbers
			sum += followers[account] + ends[account].name
			if headers {
				end = ends[account].header
			}
		}
		texts[i] = p.ENS[:min(end, mostTextAhead)]
	}
	for _, text := range texts[:len(accounts)] {
		for at := 0; at < len(text); at += cacheLine {
			sum += uint32(text[at])
		}
	}
	return sum
}

// aheadOf reads what rows show of holders.
func (e *efpRenderer) aheadOf(t *Scratch, holders []holder) {
	for some := range slices.Chunk(holders, aheadRows) {
		owners, sum := e.touchHolders(some)
		mutuals := e.ranks.Shown[rules.Mutuals]
		for _, owner := range owners[:len(some)] {
			sum += mutuals[owner]
		}
		t.read += sum + e.touch(e.ranks, e.profileEnds, true, owners[:len(some)])
	}
}

// aheadOfFollowers reads what pages show of holders.
func (e *efpRenderer) aheadOfFollowers(t *Scratch, holders []holder) {
	for some := range slices.Chunk(holders, aheadRows) {
		owners, sum := e.touchHolders(some)
		for _, owner := range owners[:len(some)] {
			sum += uint32(e.Accounts[owner][0])
		}
		t.read += sum
	}
}

// touchHolders reads the lists and records of at most aheadRows holders, and returns whose lists they are.
func (e *efpRenderer) touchHolders(holders []holder) (owners [aheadRows]uint32, sum uint32) {
	var records [aheadRows]uint64
	for i, h := range holders {
		owners[i] = e.Owners[h.list]
		records[i] = e.Offsets[h.list] + uint64(h.at())
	}
	for i, h := range holders {
		sum += uint32(e.Tokens[h.list][0]) + uint32(e.Added[records[i]]) + e.Records.Form(int(records[i]))
	}
	return owners, sum
}
