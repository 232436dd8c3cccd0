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

	followed  int      // accounts with a follower
	byAddress []uint32 // all accounts; only for the API efp
}

// rank counts and ranks all accounts. Only primary lists count.
func rank(ctx context.Context, g *graph, workers int, config site.Config) (*ranks, error) {
	efp, leaders := config.EFP(), [boardMeasures]int{}
	for m := range leaders {
		leaders[m] = config.LeaderboardMax
	}
	if config.Explorer {
		leaders[followers] = max(leaders[followers], site.TopAccounts)
	}
	r := &ranks{}
	follows, err := primaryFollows(ctx, g, workers)
	if err != nil {
		return nil, err
	}
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
			r.order(m, byAddress, leaders[m])
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

// follows are the accounts that each account follows in its primary list, sorted.
type follows struct {
	all   []uint32
	begin []uint64 // by account; index in all
	n     []uint32 // by account
}

func (f *follows) of(account uint32) []uint32 {
	return f.all[f.begin[account]:][:f.n[account]]
}

func primaryFollows(ctx context.Context, g *graph, workers int) (*follows, error) {
	f := &follows{begin: make([]uint64, len(g.accounts)), n: make([]uint32, len(g.accounts))}
	total := uint64(0)
	for account, list := range g.primary {
		f.begin[account] = total
		if list != none {
			total += uint64(g.length(list))
		}
	}
	f.all = make([]uint32, total) // one allocation for all
	return f, inChunks(ctx, workers, len(g.primary), func(account int) error {
		list := g.primary[account]
		if list == none {
			return nil
		}
		to := f.all[f.begin[account]:][:0:g.length(list)]
		for _, record := range g.recordsOf(list).all() {
			if g.isFollow(record) {
				to = append(to, record.data)
			}
		}
		slices.Sort(to)
		f.n[account] = uint32(len(to))
		return nil
	})
}

func (r *ranks) countMutuals(ctx context.Context, f *follows, workers int) error {
	return inChunks(ctx, workers, len(f.n), func(account int) error {
		for _, other := range f.of(uint32(account)) {
			if _, back := slices.BinarySearch(f.of(other), uint32(account)); back && other != uint32(account) {
				r.count[mutuals][account]++
			}
		}
		return nil
	})
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
	if m == followers {
		r.followed = len(ranked)
	}
	r.first[m] = slices.Clone(ranked[:min(leaders, len(ranked))])
}

func bytesCompare(a, b site.Address) int { return bytes.Compare(a[:], b[:]) }
