package render

import (
	"cmp"
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/snapshot"
)

// relations say who holds whom, as the API efp shows it: a graph has the records of each list, these
// are the records about each account.
type relations struct {
	*Graph
	tokenRank []uint32 // by list; its place in the order of token IDs as numbers
	held      []uint32 // by list; how many accounts it holds

	listOffsets []uint32 // by account; index of its first list in lists; the last element is their number
	lists       []uint32 // of all accounts, those of each by token ID

	holderOffsets []uint64      // by account; index of its first holder in holders; the last element is their number
	holders       []holder      // of all accounts, those of each latest first
	states        []rules.State // by holder; what the primary list of the account says of the holder's account
}

// A holder is a record of a primary list that holds an account.
type holder struct {
	list uint32
	at   uint32 // index in the list
}

func newRelations(ctx context.Context, g *Graph, workers int) (*relations, error) {
	r := &relations{Graph: g}
	byToken := numbersBelow(len(g.Tokens))
	slices.SortFunc(byToken, func(a, b uint32) int { return site.CompareTokenIDs(g.Tokens[a], g.Tokens[b]) })
	r.tokenRank = make([]uint32, len(g.Tokens))
	for rank, list := range byToken {
		r.tokenRank[list] = uint32(rank)
	}
	owners := make([]uint32, len(byToken))
	for i, list := range byToken {
		owners[i] = g.Owners[list]
	}
	r.listOffsets, r.lists = group(byToken, owners, len(g.Accounts))
	r.countHolders()
	return r, r.findHolders(ctx, byToken, workers)
}

// countHolders counts what each list holds, and by how many primary lists each account is held.
func (r *relations) countHolders() {
	r.held = make([]uint32, len(r.Tokens))
	r.holderOffsets = make([]uint64, len(r.Accounts)+1)
	for list := range r.Tokens {
		primary := r.isPrimary(uint32(list))
		for _, record := range r.RecordsOf(uint32(list)).All() {
			if !r.Holds(record) {
				continue
			}
			r.held[list]++
			if primary {
				r.holderOffsets[record.Data+1]++
			}
		}
	}
	for account := range r.Accounts {
		r.holderOffsets[account+1] += r.holderOffsets[account]
	}
}

// findHolders fills in holders and states. Each worker does so for a range of accounts.
func (r *relations) findHolders(ctx context.Context, byToken []uint32, workers int) error {
	total := r.holderOffsets[len(r.Accounts)]
	r.holders, r.states = make([]holder, total), make([]rules.State, total)
	next := slices.Clone(r.holderOffsets[:len(r.Accounts)])
	group, ctx := errgroup.WithContext(ctx)
	from := 0
	for worker := range workers {
		share := total / uint64(workers) * uint64(worker+1)
		to, _ := slices.BinarySearch(r.holderOffsets[:len(r.Accounts)], share)
		if worker == workers-1 {
			to = len(r.Accounts)
		}
		begin, end := uint32(from), uint32(max(from, to))
		from = int(end)
		group.Go(func() error {
			for i := len(byToken) - 1; i >= 0; i-- {
				if list := byToken[i]; r.isPrimary(list) {
					for at, record := range r.RecordsOf(list).All() {
						if r.Holds(record) && begin <= record.Data && record.Data < end {
							r.holders[next[record.Data]] = holder{list, uint32(at)}
							next[record.Data]++
						}
					}
				}
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			marks := make([]rules.State, len(r.Accounts))
			for account := begin; account < end; account++ {
				r.sortLatest(account)
				r.findStates(account, marks)
			}
			return ctx.Err()
		})
	}
	return group.Wait()
}

// sortLatest sorts the holders of an account, which are in the order of token IDs backwards, by time,
// the newest first.
func (r *relations) sortLatest(account uint32) {
	latest := func(a, b holder) int { return cmp.Compare(r.addedAt(b), r.addedAt(a)) }
	if holders := r.holdersOf(account); !slices.IsSortedFunc(holders, latest) {
		slices.SortStableFunc(holders, latest)
	}
}

// findStates sets the states of the holders of an account. marks must be zero, and is again afterwards.
func (r *relations) findStates(account uint32, marks []rules.State) {
	primary := r.Primary[account]
	begin, end := r.holderOffsets[account], r.holderOffsets[account+1]
	if primary == None || begin == end {
		return
	}
	for _, record := range r.RecordsOf(primary).All() {
		if r.Holds(record) {
			marks[record.Data] = r.StateOf(record)
		}
	}
	for i := begin; i < end; i++ {
		r.states[i] = marks[r.Owners[r.holders[i].list]]
	}
	for _, record := range r.RecordsOf(primary).All() {
		if r.Holds(record) {
			marks[record.Data] = 0
		}
	}
}

// holdersOf returns the holders of an account, latest first.
func (r *relations) holdersOf(account uint32) []holder {
	return r.holders[r.holderOffsets[account]:r.holderOffsets[account+1]]
}

func (r *relations) statesOf(account uint32) []rules.State {
	return r.states[r.holderOffsets[account]:r.holderOffsets[account+1]]
}

// listsOf returns the lists of an account, by token ID.
func (r *relations) listsOf(account uint32) []uint32 {
	return r.lists[r.listOffsets[account]:r.listOffsets[account+1]]
}

func (r *relations) recordOf(h holder) PackedRecord {
	return r.Records.At(int(r.Offsets[h.list] + uint64(h.at)))
}

// addedAt returns the time of the record of a holder, as the API shows it.
func (r *relations) addedAt(h holder) int64 {
	return ShownTime(r.Added[r.Offsets[h.list]+uint64(h.at)])
}

// ShownTime returns a time as the API shows it: 1970 if it is not known.
func ShownTime(added int64) int64 {
	if added == snapshot.NoTime {
		return 0
	}
	return added
}

// newestFollow returns the first follow among the holders of an account that has a time.
func (r *relations) newestFollow(account uint32) (newest holder, ok bool) {
	for _, h := range r.holdersOf(account) {
		if r.Added[r.Offsets[h.list]+uint64(h.at)] != snapshot.NoTime && r.IsFollow(r.recordOf(h)) {
			return h, true
		}
	}
	return holder{}, false
}

// newestFollowed returns the accounts that were followed last, as many as discover shows.
func (r *relations) newestFollowed() []uint32 {
	type follow struct {
		holder
		account uint32
	}
	var newest []follow
	keep := func() {
		slices.SortFunc(newest, func(a, b follow) int {
			return cmp.Or(
				cmp.Compare(r.addedAt(b.holder), r.addedAt(a.holder)),
				cmp.Compare(r.tokenRank[b.list], r.tokenRank[a.list]),
				cmp.Compare(b.at, a.at),
			)
		})
		newest = newest[:min(len(newest), site.DiscoverMax)]
	}
	for account := range r.Accounts {
		if h, ok := r.newestFollow(uint32(account)); ok {
			newest = append(newest, follow{h, uint32(account)})
		}
		if len(newest) == 8*site.DiscoverMax {
			keep()
		}
	}
	keep()
	accounts := make([]uint32, len(newest))
	for i, f := range newest {
		accounts[i] = f.account
	}
	return accounts
}
