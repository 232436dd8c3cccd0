package render

import "github.com/followpress/followpress/site/rules"

// The accounts in a list, and the holders of an account, are scattered in memory. Rendered one by
// one, each row would wait several times: for an address, for counts, for the place of a profile,
// and for its texts. So the data of the next rows are read in advance, and the processor waits for
// many places at a time. BenchmarkReadAhead measures the difference.

// aheadRows is the number of rows read ahead at a time.
const aheadRows = 32

// Limits for reading a profile ahead: the processor prefetches the rest of a longer text by itself.
const (
	cacheLine     = 64
	mostTextAhead = 16 * cacheLine
)

// touch reads the data that rows show of at most aheadRows accounts, with or without the header of
// the profile. It skips data that is not an address. The returned sum only keeps the compiler from
// dropping the reads.
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
