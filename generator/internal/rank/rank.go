// Package rank counts followers and other measures from the records of primary lists, and ranks the
// accounts.
package rank

import (
	"cmp"
	"context"
	"encoding/binary"
	"maps"
	"math/bits"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/generator/internal/graph"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/internal/inorder"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/ranks"
	"github.com/followpress/followpress/site/rules"
)

// All counts and ranks all accounts. Only primary lists count.
func All(ctx context.Context, g *graph.Graph, workers int, config site.Config) (*graph.Ranks, error) {
	efp, leaders := config.EFP(), [render.Boards]int{}
	for m := range leaders {
		leaders[m] = config.LeaderboardMax
	}
	if config.Explorer {
		leaders[rules.Followers] = max(leaders[rules.Followers], render.TopAccounts)
	}
	r := &graph.Ranks{}
	counted := render.Measures
	if efp {
		counted = render.Boards
	}
	for m := range counted {
		r.Count[m] = make([]uint32, len(g.Accounts))
	}
	follows, err := count(ctx, g, r, classesOf(&g.Forms, counted), workers)
	if err != nil {
		return nil, err
	}
	if err := countMutuals(ctx, r, follows, workers); err != nil {
		return nil, err
	}
	byAddress, err := sortByAddress(ctx, g.Accounts, workers)
	if err != nil {
		return nil, err
	}
	if efp || config.RanksEvery > 0 || config.Data {
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

// sortByAddress returns all accounts ordered by address: by their first bits, then within each
// group with the same bits. Groups have about 16 accounts, unless addresses are forged.
func sortByAddress(ctx context.Context, addresses []site.Address, workers int) ([]uint32, error) {
	digits := min(max(bits.Len(uint(len(addresses)))-4, 0), 16)
	prefix := func(account int) int { return int(binary.BigEndian.Uint16(addresses[account][:])) >> (16 - digits) }
	offsets := make([]uint32, 1<<digits+1)
	for account := range addresses {
		offsets[prefix(account)+1]++
	}
	for i := range 1 << digits {
		offsets[i+1] += offsets[i]
	}
	sorted, next := make([]uint32, len(addresses)), slices.Clone(offsets)
	for account := range addresses {
		at := &next[prefix(account)]
		sorted[*at] = uint32(account)
		*at++
	}
	return sorted, inorder.Chunks(ctx, workers, 1<<digits, func(i int) error {
		slices.SortFunc(sorted[offsets[i]:offsets[i+1]], func(a, b uint32) int { return addresses[a].Compare(addresses[b]) })
		return nil
	})
}

// Hold replaces the shown ranks by the held ones. Only accounts whose counts changed get new ranks.
func Hold(g *graph.Graph, r *graph.Ranks, held *ranks.Held) {
	r.Held = held.Body
	var same [render.Measures]map[uint32]uint32 // by count: number of accounts so far
	for m := range same {
		same[m] = map[uint32]uint32{}
		r.Shown[m] = make([]uint32, len(g.Accounts))
	}
	var addresses [graph.AtOnce]site.Address
	var counts [graph.AtOnce]ranks.Counts
	var accounts [graph.AtOnce]uint32
	n := 0
	add := func() {
		g.Numbers.FindAll(addresses[:n], accounts[:n])
		for i, account := range accounts[:n] {
			for m, count := range counts[i] {
				if count == 0 {
					continue
				}
				same[m][count]++
				if account != graph.None && r.Count[m][account] == count {
					r.Shown[m][account] = same[m][count] // among accounts with this count
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

// A class of records determines what they count: their State, and in the last bit whether the
// account is in the top 8. Records that hold no account have class 0.
type class uint8

// mostClasses is greater than any class.
const mostClasses = 2*(rules.Follow|rules.Block|rules.Mute) + 2

func classOf(set *render.TagSet) class {
	c := class(set.State) << 1
	if set.Top8 {
		c++
	}
	return c
}

func (c class) state() rules.State { return rules.State(c >> 1) }

// classes are the classes of forms, with their measures. A record needs only a byte, while its tags
// would be far away in memory.
type classes struct {
	byForm  []class
	tallies [mostClasses]tally
}

// A tally lists the measures that a record counts for the account of its list, and for the account
// that it is about.
type tally struct{ holder, held []rules.Measure }

// classesOf returns the classes of forms, for the first measures only.
func classesOf(forms *graph.Forms, measures rules.Measure) *classes {
	c := &classes{byForm: make([]class, len(forms.ByNumber))}
	others := func(m rules.Measure) bool { return m >= measures }
	for n, form := range forms.ByNumber {
		if !forms.HoldsKind(form.Kind) {
			continue
		}
		set := &forms.TagSets[form.Tags]
		of := classOf(set)
		c.byForm[n] = of
		holder, held := rules.Counted(set.State, set.Top8)
		c.tallies[of] = tally{slices.DeleteFunc(slices.Clone(holder), others), slices.DeleteFunc(slices.Clone(held), others)}
	}
	return c
}

// follows are the accounts that each account follows in its primary list, sorted.
type follows struct {
	all   []uint32
	begin []uint64 // by account: index in all
	n     []uint32 // by account
}

func (f *follows) of(account uint32) []uint32 {
	return f.all[f.begin[account]:][:f.n[account]]
}

// count counts the records of primary lists, and returns who follows whom. Many lists hold one
// account, so several goroutines add to its counts.
func count(ctx context.Context, g *graph.Graph, r *graph.Ranks, classes *classes, workers int) (*follows, error) {
	f := &follows{begin: make([]uint64, len(g.Accounts)), n: make([]uint32, len(g.Accounts))}
	total := uint64(0)
	for account, list := range g.Primary {
		f.begin[account] = total
		if list != graph.None {
			total += uint64(g.Length(list))
		}
	}
	f.all = make([]uint32, total) // one allocation for all
	return f, inorder.Chunks(ctx, workers, len(g.Primary), func(account int) error {
		list := g.Primary[account]
		if list == graph.None {
			return nil
		}
		to := f.all[f.begin[account]:][:0:g.Length(list)]
		records, of := g.RecordsOf(list), [mostClasses]uint32{}
		for i := range records.Len() {
			class := classes.byForm[records.Form(i)]
			about := records.Data(i)
			if class == 0 || about&graph.OtherData != 0 {
				continue
			}
			if class.state() == rules.Follow {
				to = append(to, about)
			}
			of[class]++
			for _, m := range classes.tallies[class].held {
				atomic.AddUint32(&r.Count[m][about], 1)
			}
		}
		for class, tally := range classes.tallies {
			for _, m := range tally.holder {
				atomic.AddUint32(&r.Count[m][account], of[class])
			}
		}
		slices.Sort(to)
		f.n[account] = uint32(len(to))
		return nil
	})
}

// countMutuals counts the pairs of accounts that follow each other, for both. A list holds an
// account by at most one record.
func countMutuals(ctx context.Context, r *graph.Ranks, f *follows, workers int) error {
	mutuals := r.Count[rules.Mutuals]
	return inorder.Chunks(ctx, workers, len(f.n), func(i int) error {
		account := uint32(i)
		follows := f.of(account)
		after, self := slices.BinarySearch(follows, account)
		if self {
			after++
		}
		for _, other := range follows[after:] { // the other accounts count the other half of the pairs
			if _, back := slices.BinarySearch(f.of(other), account); rules.IsMutual(account, other, back) {
				atomic.AddUint32(&mutuals[account], 1)
				atomic.AddUint32(&mutuals[other], 1)
			}
		}
		return nil
	})
}

// order ranks by one measure: count descending, then address ascending.
func order(r *graph.Ranks, m rules.Measure, byAddress []uint32, leaders int) {
	count := r.Count[m]
	// next is, by count, the number of accounts ranked before the next one with this count.
	most := uint32(0)
	for _, n := range count {
		most = max(most, n)
	}
	next := make([]uint32, most+1)
	for _, n := range count {
		next[n]++
	}
	ranked := uint32(0)
	for n := len(next) - 1; n > 0; n-- {
		next[n], ranked = ranked, ranked+next[n]
	}
	if m < render.Measures {
		r.Rank[m] = make([]uint32, len(count))
	}
	if m == rules.Followers {
		r.Followed = int(ranked)
	}
	r.First[m] = make([]uint32, min(leaders, int(ranked)))
	for _, account := range byAddress {
		n := count[account]
		if n == 0 {
			continue
		}
		rank := next[n]
		next[n]++
		if int(rank) < len(r.First[m]) {
			r.First[m][rank] = account
		}
		if m < render.Measures {
			r.Rank[m][account] = rank + 1
		}
	}
}
