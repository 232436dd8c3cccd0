package generator

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/site"
)

// A measure is a count by which accounts are ranked.
type measure int

// The measures, in the order of the member ranks.
const (
	mutuals measure = iota
	followers
	following
	top8
	blocks
	measures = 5
)

// The measures of leaderboards that only the API efp has.
const (
	blocking measure = measures + iota // accounts that the account blocks
	muted                              // accounts that mute the account
	muting                             // accounts that the account mutes
	boardMeasures
)

// ranks are the counts and ranks of all accounts.
type ranks struct {
	count [boardMeasures][]uint32 // by account
	rank  [measures][]uint32      // by account, from 1; 0 is unranked
	first [boardMeasures][]uint32 // accounts by rank, as many as leaderboards show

	byAddress []uint32 // all accounts; only for the API efp
}

// rank counts and ranks all accounts. Only primary lists count. efp says whether the API has all
// leaderboards.
func rank(ctx context.Context, g *graph, workers, leaders int, efp bool) (*ranks, error) {
	r := &ranks{}
	follows := primaryFollows(g)
	counted := measure(measures)
	if efp {
		counted = boardMeasures
	}
	for m := range counted {
		r.count[m] = make([]uint32, len(g.accounts))
	}
	for account, list := range g.primary {
		if list == none {
			continue
		}
		for _, record := range g.recordsOf(list).all() {
			switch {
			case g.isFollow(record):
				r.count[following][account]++
				r.count[followers][record.data]++
				if g.tagSets[record.tags].top8 {
					r.count[top8][record.data]++
				}
			case g.isBlock(record):
				r.count[blocks][record.data]++
			}
		}
	}
	if efp {
		r.countMutesAndBlocks(g)
	}
	if err := r.countMutuals(ctx, follows, workers); err != nil {
		return nil, err
	}

	byAddress := make([]uint32, len(g.accounts))
	for account := range byAddress {
		byAddress[account] = uint32(account)
	}
	slices.SortFunc(byAddress, func(a, b uint32) int { return bytesCompare(g.accounts[a], g.accounts[b]) })
	if efp {
		r.byAddress = byAddress
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for m := range counted {
		group.Go(func() error {
			r.order(m, byAddress, leaders)
			return ctx.Err()
		})
	}
	return r, group.Wait()
}

// countMutesAndBlocks counts the measures that only leaderboards of the API efp show.
func (r *ranks) countMutesAndBlocks(g *graph) {
	for account, list := range g.primary {
		if list == none {
			continue
		}
		for _, record := range g.recordsOf(list).all() {
			if !g.holds(record) {
				continue
			}
			tags := &g.tagSets[record.tags]
			if tags.block {
				r.count[blocking][account]++
			}
			if tags.mute {
				r.count[muting][account]++
				r.count[muted][record.data]++
			}
		}
	}
}

// primaryFollows returns the accounts that each account follows in its primary list, sorted.
func primaryFollows(g *graph) [][]uint32 {
	total := uint64(0)
	for _, list := range g.primary {
		if list != none {
			total += g.offsets[list+1] - g.offsets[list]
		}
	}
	all := make([]uint32, 0, total) // one allocation for all
	follows := make([][]uint32, len(g.accounts))
	for account, list := range g.primary {
		if list == none {
			continue
		}
		begin := len(all)
		for _, record := range g.recordsOf(list).all() {
			if g.isFollow(record) {
				all = append(all, record.data)
			}
		}
		follows[account] = all[begin:len(all):len(all)]
		slices.Sort(follows[account])
	}
	return follows
}

func (r *ranks) countMutuals(ctx context.Context, follows [][]uint32, workers int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	const chunk = 4096
	for from := 0; from < len(follows); from += chunk {
		group.Go(func() error {
			for account := from; account < min(from+chunk, len(follows)); account++ {
				for _, other := range follows[account] {
					if _, back := slices.BinarySearch(follows[other], uint32(account)); back && other != uint32(account) {
						r.count[mutuals][account]++
					}
				}
			}
			return ctx.Err()
		})
	}
	return group.Wait()
}

// order ranks by one measure: count descending, then address ascending.
func (r *ranks) order(m measure, byAddress []uint32, leaders int) {
	count := r.count[m]
	ranked := slices.DeleteFunc(slices.Clone(byAddress), func(a uint32) bool { return count[a] == 0 })
	slices.SortStableFunc(ranked, func(a, b uint32) int { return cmp.Compare(count[b], count[a]) })
	if m < measures {
		r.rank[m] = make([]uint32, len(count))
		for i, account := range ranked {
			r.rank[m][account] = uint32(i + 1)
		}
	}
	r.first[m] = slices.Clone(ranked[:min(leaders, len(ranked))])
}

func bytesCompare(a, b site.Address) int { return bytes.Compare(a[:], b[:]) }
