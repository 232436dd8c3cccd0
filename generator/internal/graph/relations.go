package graph

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/internal/inorder"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/snapshot"
)

// Relations are the holders of each account, for the API efp. A graph has the records of each list;
// these are the records about each account.
type Relations struct {
	*Graph
	TokenRank []uint32 // by list: its place in the numeric order of token IDs
	Held      []uint32 // by list: number of accounts that it holds

	listOffsets []uint32 // by account: index of its first list in lists; the last element is the total
	lists       []uint32 // by account, then by token ID

	holderOffsets []uint64      // by account: index of its first holder in holders; the last element is the total
	holders       []Holder      // by account, latest first
	states        []rules.State // by holder: state of the holder's account in the account's primary list
}

// A Holder is a record of a primary list that holds an account.
type Holder struct {
	List   uint32
	packed uint32 // index in the list, and common properties, because the record is far away in memory
}

// Properties in holder.packed besides the index.
const (
	holderFollows = uint32(1) << 31
	holderTags    = uint32(1) << 30
	holderIndex   = holderTags - 1
)

// At returns the index of the record in its list.
func (h Holder) At() uint32 { return h.packed & holderIndex }

// Follows reports whether the record is a follow.
func (h Holder) Follows() bool { return h.packed&holderFollows != 0 }

// HasTags reports whether the record has tags.
func (h Holder) HasTags() bool { return h.packed&holderTags != 0 }

// NewRelations finds the holders of each account of a graph.
func NewRelations(ctx context.Context, g *Graph, workers int) (*Relations, error) {
	r := &Relations{Graph: g}
	byToken := NumbersBelow(len(g.Tokens))
	inorder.Sort(workers, byToken, func(a, b uint32) int { return site.CompareTokenIDs(g.Tokens[a], g.Tokens[b]) })
	r.TokenRank = make([]uint32, len(g.Tokens))
	for rank, list := range byToken {
		r.TokenRank[list] = uint32(rank)
	}
	owners := make([]uint32, len(byToken))
	for i, list := range byToken {
		owners[i] = g.Owners[list]
	}
	r.listOffsets, r.lists = Group(byToken, owners, len(g.Accounts))
	if err := r.countHolders(ctx, workers); err != nil {
		return nil, err
	}
	return r, r.findHolders(ctx, byToken, workers)
}

// countHolders counts the accounts that each list holds, and the primary lists that hold each
// account.
func (r *Relations) countHolders(ctx context.Context, workers int) error {
	r.Held = make([]uint32, len(r.Tokens))
	holders := make([]uint32, len(r.Accounts))
	holds := r.holderForms()
	err := inorder.Chunks(ctx, workers, len(r.Tokens), func(i int) error {
		list := uint32(i)
		primary, records := r.IsPrimary(list), r.RecordsOf(list)
		if n := records.Len(); primary && n > int(holderIndex) {
			return fmt.Errorf("list %s has %d records; the API %s can show at most %d", r.Tokens[list], n, site.APIEFP, holderIndex)
		}
		for at := range records.Len() {
			if about := records.data[at]; about&OtherData == 0 && holds[records.Form(at)].holds {
				r.Held[list]++
				if primary {
					atomic.AddUint32(&holders[about], 1)
				}
			}
		}
		return nil
	})
	r.holderOffsets = make([]uint64, len(r.Accounts)+1)
	for account, n := range holders {
		r.holderOffsets[account+1] = r.holderOffsets[account] + uint64(n)
	}
	return err
}

// A holderForm is the common part of holders of a form.
type holderForm struct {
	holds  bool // whether such records hold an account
	packed uint32
}

// holderForms returns the holderForm of each form, so that a record is read only once.
func (f *Forms) holderForms() []holderForm {
	forms := make([]holderForm, len(f.ByNumber))
	for n, form := range f.ByNumber {
		set := &f.TagSets[form.Tags]
		forms[n].holds = f.holds[form.Kind]
		if set.State == rules.Follow {
			forms[n].packed |= holderFollows
		}
		if len(set.Tags) > 0 {
			forms[n].packed |= holderTags
		}
	}
	return forms
}

// findHolders fills in holders and states.
func (r *Relations) findHolders(ctx context.Context, byToken []uint32, workers int) error {
	total := r.holderOffsets[len(r.Accounts)]
	r.holders, r.states = make([]Holder, total), make([]rules.State, total)
	if err := r.distribute(ctx, byToken); err != nil {
		return err
	}
	// Each goroutine has marks for all accounts, so there are few goroutines, with an equal number
	// of holders each.
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
			marks := make([]rules.State, len(r.Accounts))
			for account := begin; account < end; account++ {
				if account%1024 == 0 && ctx.Err() != nil {
					return ctx.Err()
				}
				r.sortLatest(account)
				r.findStates(account, marks)
			}
			return ctx.Err()
		})
	}
	return group.Wait()
}

// distribute fills in holders, by account and in reverse order of token IDs.
func (r *Relations) distribute(ctx context.Context, byToken []uint32) error {
	next, forms := slices.Clone(r.holderOffsets[:len(r.Accounts)]), r.holderForms()
	for i, list := range slices.Backward(byToken) {
		if i%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if !r.IsPrimary(list) {
			continue
		}
		records := r.RecordsOf(list)
		for at := range records.Len() {
			form := &forms[records.Form(at)]
			if about := records.data[at]; about&OtherData == 0 && form.holds {
				r.holders[next[about]] = Holder{list, uint32(at) | form.packed}
				next[about]++
			}
		}
	}
	return nil
}

// sortLatest sorts the holders of an account, which are in reverse order of token IDs, by time,
// newest first.
func (r *Relations) sortLatest(account uint32) {
	latest := func(a, b Holder) int { return cmp.Compare(r.AddedAt(b), r.AddedAt(a)) }
	if holders := r.HoldersOf(account); !slices.IsSortedFunc(holders, latest) {
		slices.SortStableFunc(holders, latest)
	}
}

// findStates sets the states of the holders of an account. marks must be zero, and is reset to
// zero.
func (r *Relations) findStates(account uint32, marks []rules.State) {
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
		r.states[i] = marks[r.Owners[r.holders[i].List]]
	}
	for _, record := range r.RecordsOf(primary).All() {
		if r.Holds(record) {
			marks[record.Data] = 0
		}
	}
}

// HoldersOf returns the holders of an account, latest first.
func (r *Relations) HoldersOf(account uint32) []Holder {
	return r.holders[r.holderOffsets[account]:r.holderOffsets[account+1]]
}

// StatesOf returns the states of the holders of an account.
func (r *Relations) StatesOf(account uint32) []rules.State {
	return r.states[r.holderOffsets[account]:r.holderOffsets[account+1]]
}

// ListsOf returns the lists of an account, by token ID.
func (r *Relations) ListsOf(account uint32) []uint32 {
	return r.lists[r.listOffsets[account]:r.listOffsets[account+1]]
}

// RecordOf returns the record of a holder.
func (r *Relations) RecordOf(h Holder) PackedRecord {
	return r.Records.At(int(r.Offsets[h.List] + uint64(h.At())))
}

// AddedAt returns the time of a holder's record, as shown by the API.
func (r *Relations) AddedAt(h Holder) int64 {
	return render.ShownTime(r.Added[r.Offsets[h.List]+uint64(h.At())])
}

// newestFollow returns the first follow with a time among the holders of an account.
func (r *Relations) newestFollow(account uint32) (newest Holder, ok bool) {
	for _, h := range r.HoldersOf(account) {
		if h.Follows() && r.Added[r.Offsets[h.List]+uint64(h.At())] != snapshot.NoTime {
			return h, true
		}
	}
	return Holder{}, false
}

// NewestFollowed returns the accounts that were followed last, for discover.
func (r *Relations) NewestFollowed() (accounts []uint32) {
	type follow struct {
		Holder
		account uint32
	}
	newestOf := func(all []follow) []follow {
		slices.SortFunc(all, func(a, b follow) int {
			return cmp.Or(
				cmp.Compare(r.AddedAt(b.Holder), r.AddedAt(a.Holder)),
				cmp.Compare(r.TokenRank[b.List], r.TokenRank[a.List]),
				cmp.Compare(b.At(), a.At()),
			)
		})
		return all[:min(len(all), site.DiscoverMax)]
	}
	var newest []follow
	for account := range uint32(len(r.Accounts)) {
		if h, ok := r.newestFollow(account); ok {
			newest = append(newest, follow{h, account})
		}
		if len(newest) == 8*site.DiscoverMax {
			newest = newestOf(newest)
		}
	}
	for _, f := range newestOf(newest) {
		accounts = append(accounts, f.account)
	}
	return accounts
}
