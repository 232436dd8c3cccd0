package render

import "github.com/followpress/followpress/site/rules"

// Whom a list holds, and who holds an account, is anywhere in memory. Rendered one by one, each row waits several times:
// for an address, for counts, for the place of a profile, and then for its texts. So what the next rows need, and nothing
// else, is read ahead of them, and the processor waits for many places at a time. TestReadAhead and BenchmarkReadAhead
// keep these reads from being optimised away, or of no use.

// aheadRows is how many rows are read ahead at a time.
const aheadRows = 32

// Limits of what is read of a profile: the processor notices by itself that a longer text goes on.
const (
	cacheLine     = 64
	mostTextAhead = 16 * cacheLine
)

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
