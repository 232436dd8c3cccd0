package generator

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/internal/inorder"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/ranks"
	"github.com/followpress/followpress/site/rules"
)

// rank counts and ranks all accounts. Only primary lists count.
func rank(ctx context.Context, g *render.Graph, workers int, config site.Config) (*render.Ranks, error) {
	efp, leaders := config.EFP(), [render.Boards]int{}
	for m := range leaders {
		leaders[m] = config.LeaderboardMax
	}
	if config.Explorer {
		leaders[rules.Followers] = max(leaders[rules.Followers], render.TopAccounts)
	}
	r := &render.Ranks{}
	follows, err := primaryFollows(ctx, g, workers)
	if err != nil {
		return nil, err
	}
	counted := render.Measures
	if efp {
		counted = render.Boards
	}
	for m := range counted {
		r.Count[m] = make([]uint32, len(g.Accounts))
	}
	said := saidBy(g.TagSets, counted)
	for account, list := range g.Primary {
		if list == render.None {
			continue
		}
		for _, record := range g.RecordsOf(list).All() {
			if !g.Holds(record) {
				continue
			}
			says := &said[record.Tags]
			for _, m := range says.holder {
				r.Count[m][account]++
			}
			for _, m := range says.held {
				r.Count[m][record.Data]++
			}
		}
	}
	if err := countMutuals(ctx, r, follows, workers); err != nil {
		return nil, err
	}

	byAddress := make([]uint32, len(g.Accounts))
	for account := range byAddress {
		byAddress[account] = uint32(account)
	}
	slices.SortFunc(byAddress, func(a, b uint32) int { return g.Accounts[a].Compare(g.Accounts[b]) })
	if efp || config.RanksEvery > 0 {
		r.ByAddress = byAddress
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for m := range counted {
		group.Go(func() error {
			order(r, m, byAddress, leaders[m])
			return ctx.Err()
		})
	}
	err = group.Wait()
	r.Shown = r.Rank
	return r, err
}

// hold replaces the ranks that objects show by those that are held, but for accounts whose own count has changed since.
func hold(g *render.Graph, r *render.Ranks, held *ranks.Held) {
	r.Held = held.Body
	var same [render.Measures]map[uint32]uint32 // by count; how many accounts have it, until now
	for m := range same {
		same[m] = map[uint32]uint32{}
		r.Shown[m] = make([]uint32, len(g.Accounts))
	}
	var addresses [render.AtOnce]site.Address
	var counts [render.AtOnce]ranks.Counts
	var accounts [render.AtOnce]uint32
	n := 0
	add := func() {
		g.Numbers.FindAll(addresses[:n], accounts[:n])
		for i, account := range accounts[:n] {
			for m, count := range counts[i] {
				if count == 0 {
					continue
				}
				same[m][count]++
				if account != render.None && r.Count[m][account] == count {
					r.Shown[m][account] = same[m][count] // among accounts with that count
				}
			}
		}
		n = 0
	}
	for address, of := range held.All() {
		addresses[n], counts[n] = address, of
		if n++; n == len(addresses) {
			add()
		}
	}
	add()
	for m := range same {
		before, next := map[uint32]uint32{}, uint32(0)
		for _, count := range slices.SortedFunc(maps.Keys(same[m]), func(a, b uint32) int { return cmp.Compare(b, a) }) {
			before[count] = next
			next += same[m][count]
		}
		for account := range r.Shown[m] {
			if rank := &r.Shown[m][account]; *rank != 0 {
				*rank += before[r.Count[m][account]]
			} else {
				*rank = r.Rank[m][account]
			}
		}
	}
}

// saidBy returns what records count, by their set of tags: of the first measures, as many as are counted.
func saidBy(sets []render.TagSet, measures rules.Measure) []said {
	all := make([]said, len(sets))
	others := func(m rules.Measure) bool { return m >= measures }
	for i, set := range sets {
		holder, held := rules.Counted(set.State, set.Top8)
		all[i] = said{slices.DeleteFunc(slices.Clone(holder), others), slices.DeleteFunc(slices.Clone(held), others)}
	}
	return all
}

// A said is what a record counts for the account of its list, and for the account that it is about.
type said struct{ holder, held []rules.Measure }

// follows are the accounts that each account follows in its primary list, sorted.
type follows struct {
	all   []uint32
	begin []uint64 // by account; index in all
	n     []uint32 // by account
}

func (f *follows) of(account uint32) []uint32 {
	return f.all[f.begin[account]:][:f.n[account]]
}

func primaryFollows(ctx context.Context, g *render.Graph, workers int) (*follows, error) {
	f := &follows{begin: make([]uint64, len(g.Accounts)), n: make([]uint32, len(g.Accounts))}
	total := uint64(0)
	for account, list := range g.Primary {
		f.begin[account] = total
		if list != render.None {
			total += uint64(g.Length(list))
		}
	}
	f.all = make([]uint32, total) // one allocation for all
	return f, inorder.Chunks(ctx, workers, len(g.Primary), func(account int) error {
		list := g.Primary[account]
		if list == render.None {
			return nil
		}
		to := f.all[f.begin[account]:][:0:g.Length(list)]
		for _, record := range g.RecordsOf(list).All() {
			if g.IsFollow(record) {
				to = append(to, record.Data)
			}
		}
		slices.Sort(to)
		f.n[account] = uint32(len(to))
		return nil
	})
}

func countMutuals(ctx context.Context, r *render.Ranks, f *follows, workers int) error {
	return inorder.Chunks(ctx, workers, len(f.n), func(account int) error {
		for _, other := range f.of(uint32(account)) {
			if _, back := slices.BinarySearch(f.of(other), uint32(account)); rules.IsMutual(uint32(account), other, back) {
				r.Count[rules.Mutuals][account]++
			}
		}
		return nil
	})
}

// order ranks by one measure: count descending, then address ascending.
func order(r *render.Ranks, m rules.Measure, byAddress []uint32, leaders int) {
	count := r.Count[m]
	ranked := slices.DeleteFunc(slices.Clone(byAddress), func(a uint32) bool { return count[a] == 0 })
	slices.SortStableFunc(ranked, func(a, b uint32) int { return cmp.Compare(count[b], count[a]) })
	if m < render.Measures {
		r.Rank[m] = make([]uint32, len(count))
		for i, account := range ranked {
			r.Rank[m][account] = uint32(i + 1)
		}
	}
	if m == rules.Followers {
		r.Followed = len(ranked)
	}
	r.First[m] = slices.Clone(ranked[:min(leaders, len(ranked))])
}
