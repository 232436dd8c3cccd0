package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/chain/provider"
)

// Limits of one request. Many small calls cost a node less time and gas than one large call.
const (
	opsPerCall    = 1000
	opsPerRequest = 4000
	callsAtOnce   = 500 // limit of provider's Multicall3 requests
	requestsAhead = 4   // concurrent requests for operations
	// mostOps exceeds the operations of any slot: the whole network has a million.
	mostOps = 1 << 22
)

// A doubt is the reason why a fact of a list is unknown.
type doubt int

const (
	none    doubt = iota
	changed       // changed since the site's block, whose state no node has
	untold        // the contract did not answer
)

// A seat is the registry's data about a token.
type seat struct {
	owner  site.Address // zero if there is no such token
	passed bool         // the owner changed after the site's block
	place  source.Place
	placed bool  // place is a records contract of the deployment
	doubt  doubt // doubt about the place
	why    string
}

// A told is a value from a contract, or a doubt about the value.
type told[T any] struct {
	value T
	doubt doubt
	why   string // explains untold to people
}

// facts are the contracts' data about some lists.
type facts struct {
	views    map[uint64]*view
	d        *source.Deployment
	registry source.Contract
	accounts source.Contract

	seats   map[source.Word]seat
	users   map[source.Place]told[site.Address] // zero for none
	primary map[site.Address]told[string]       // token ID that an account names as primary; "" for none
	records map[source.Place]told[[]Record]
	counts  map[source.Place]uint64 // number of operations up to the site's block
	ops     uint64                  // operations read
}

func newFacts(views map[uint64]*view, d *source.Deployment) *facts {
	return &facts{
		views: views, d: d, registry: d.Registry(), accounts: d.Accounts(),
		seats: map[source.Word]seat{}, users: map[source.Place]told[site.Address]{}, primary: map[site.Address]told[string]{},
		records: map[source.Place]told[[]Record]{}, counts: map[source.Place]uint64{},
	}
}

// supply returns the number of tokens after the site's block.
func supply(ctx context.Context, v *view, registry source.Contract) (uint64, error) {
	var moved error
	for range mostMoves {
		answers, err := v.call(ctx, []provider.Call{call(registry.Address, totalSupply)})
		if errors.Is(err, errMoved) {
			moved = err
			continue
		} else if err != nil {
			return 0, err
		}
		n, err := asNumber(answers[0])
		if err != nil {
			return 0, fmt.Errorf("chain %d: contract %s returned no valid %s to %s: %w: is that its address?", registry.Chain, registry.Address, totalSupply, v.host, err)
		}
		if v.since != nil {
			if v.since.minted > n {
				return 0, fmt.Errorf("chain %d: %s reports %d tokens, but logs of %d mints after block %d; one of the two is wrong", registry.Chain, v.host, n, v.since.minted, v.input.Number)
			}
			n -= v.since.minted
		}
		return n, nil
	}
	return 0, errUnsteady(moved)
}

func errUnsteady(moved error) error {
	return fmt.Errorf("nodes drop the state of a block before some lists are compared; add an archive node (--rpc): %w", moved)
}

// takeSeats asks for the owners and places of tokens not asked for yet.
func (f *facts) takeSeats(ctx context.Context, tokens []source.Word) error {
	v := f.views[f.registry.Chain]
	tokens = slices.DeleteFunc(slices.Clone(tokens), func(w source.Word) bool { _, known := f.seats[w]; return known })
	if len(tokens) == 0 {
		return nil
	}
	var calls []provider.Call
	for _, w := range tokens {
		calls = append(calls, call(f.registry.Address, ownerOf, number(w)), call(f.registry.Address, getLocation, number(w)))
	}
	answers, err := v.call(ctx, calls)
	if err != nil {
		return err
	}
	for i, w := range tokens {
		s := seat{}
		// The call reverts for a token that does not exist.
		if s.owner, err = asAddress(answers[2*i]); err != nil && answers[2*i] != nil {
			s.doubt, s.why = untold, fmt.Sprintf("%s: %v", ownerOf, err)
		}
		location, err := asBytes(answers[2*i+1])
		switch {
		case err != nil && s.owner == (site.Address{}): // it has no location either
		case err != nil:
			s.doubt, s.why = untold, fmt.Sprintf("%s: %v", getLocation, err)
		default:
			s.place, s.placed = placeOf(f.d, location)
		}
		if v.since != nil {
			if before, ok := v.since.owners[w]; ok && before == (site.Address{}) {
				s.owner = before // minted after the site's block
			} else if ok {
				s.passed = true // only a log gives the earlier owner
			}
			if v.since.located[w] && s.doubt == none {
				s.doubt = changed
			}
		}
		f.seats[w] = s
	}
	return nil
}

// byChain groups places by chain without duplicates, keeping their order.
func byChain(places []source.Place) map[uint64][]source.Place {
	all := map[uint64][]source.Place{}
	slices.SortFunc(places, func(a, b source.Place) int {
		return cmpAll(bytes.Compare(a.Address[:], b.Address[:]), bytes.Compare(a.Slot[:], b.Slot[:]))
	})
	for _, p := range places {
		if of := all[p.Chain]; len(of) == 0 || of[len(of)-1] != p {
			all[p.Chain] = append(of, p)
		}
	}
	return all
}

func cmpAll(first, second int) int {
	if first != 0 {
		return first
	}
	return second
}

// placesOf returns the places of tokens whose seats are known.
func (f *facts) placesOf(tokens []source.Word) (places []source.Place) {
	for _, w := range tokens {
		if s := f.seats[w]; s.placed && s.doubt == none {
			places = append(places, s.place)
		}
	}
	return places
}

// takeUsers asks for the users of the tokens' places.
func (f *facts) takeUsers(ctx context.Context, tokens []source.Word) error {
	places := slices.DeleteFunc(f.placesOf(tokens), func(p source.Place) bool { _, known := f.users[p]; return known })
	all := byChain(places)
	for _, id := range slices.Sorted(maps.Keys(all)) {
		v := f.views[id]
		var calls []provider.Call
		for _, p := range all[id] {
			calls = append(calls, call(p.Address, getUser, number(p.Slot)))
		}
		answers, err := v.call(ctx, calls)
		if err != nil {
			return err
		}
		for i, p := range all[id] {
			user, err := asAddress(answers[i])
			t := told[site.Address]{value: user}
			if err != nil {
				t.doubt, t.why = untold, fmt.Sprintf("%s of slot %s: %v", getUser, p.Slot, err)
			} else if v.since != nil && v.since.users[p] {
				t.doubt = changed
			}
			f.users[p] = t
		}
	}
	return nil
}

// takePrimary asks for the primary lists that accounts name.
func (f *facts) takePrimary(ctx context.Context, accounts []site.Address) error {
	v := f.views[f.accounts.Chain]
	accounts = slices.Compact(slices.SortedFunc(slices.Values(accounts), site.Address.Compare))
	if len(accounts) == 0 {
		return nil
	}
	var calls []provider.Call
	for _, a := range accounts {
		calls = append(calls, call(f.accounts.Address, getValue, common.Address(a), primaryKey))
	}
	answers, err := v.call(ctx, calls)
	if err != nil {
		return err
	}
	for i, a := range accounts {
		value, err := asBytes(answers[i])
		t := told[string]{}
		switch {
		case err != nil:
			t.doubt, t.why = untold, fmt.Sprintf("%s of %s: %v", getValue, a, err)
		case v.since != nil && v.since.primary[a]:
			t.doubt = changed
		case len(value) == len(source.Word{}):
			t.value = source.Word(value).Decimal()
		}
		f.primary[a] = t
	}
	return nil
}

// account returns the account of a token: its user, or its owner if it has no user.
func (f *facts) account(w source.Word) told[site.Address] {
	s := f.seats[w]
	owner := told[site.Address]{value: s.owner}
	if s.passed {
		owner.doubt = changed
	}
	switch {
	case s.doubt != none:
		return told[site.Address]{doubt: s.doubt, why: s.why}
	case !s.placed:
		return owner
	}
	user := f.users[s.place]
	if user.doubt == none && user.value == (site.Address{}) {
		return owner
	}
	return user
}

// A span is a range of the operations of a place.
type span struct {
	place    source.Place
	from, to uint64
}

// takeRecords reads all operations of the tokens' places and applies them to get records. It skips
// a place with more than most operations; its records are untold.
func (f *facts) takeRecords(ctx context.Context, tokens []source.Word, most uint64) error {
	all := byChain(f.placesOf(tokens))
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if err := f.takeRecordsOf(ctx, f.views[id], all[id], most); err != nil {
			return err
		}
	}
	return nil
}

func (f *facts) takeRecordsOf(ctx context.Context, v *view, places []source.Place, most uint64) error {
	var calls []provider.Call
	for _, p := range places {
		calls = append(calls, call(p.Address, getOpCount, number(p.Slot)))
	}
	answers, err := v.call(ctx, calls)
	if err != nil {
		return err
	}
	var spans []span
	counts := map[source.Place]uint64{}
	for i, p := range places {
		n, err := asNumber(answers[i])
		later := uint64(0)
		if v.since != nil {
			later = uint64(len(v.since.ops[p]))
		}
		switch {
		case err != nil:
			f.records[p] = told[[]Record]{doubt: untold, why: fmt.Sprintf("%s of slot %s: %v", getOpCount, p.Slot, err)}
			continue
		case n < later || n-later > most:
			f.records[p] = told[[]Record]{doubt: untold, why: fmt.Sprintf("%s has %d operations of slot %s, %d of them after the block by logs, want at most %d up to it", v.host, n, p.Slot, later, most)}
			continue
		}
		counts[p], f.counts[p] = n, n-later
		for from := uint64(0); from < n; from += opsPerCall {
			spans = append(spans, span{p, from, min(n, from+opsPerCall)})
		}
		if n == 0 {
			f.records[p] = told[[]Record]{}
		}
	}
	var open shelf
	var tail [][]byte // operations of the current place after the site's block
	return v.read(ctx, spans, func(s span, ops [][]byte, why error) {
		if f.records[s.place].doubt != none {
			return // an earlier span was not answered
		}
		if s.from == 0 {
			open, tail = shelf{}, nil
		}
		if why != nil {
			f.records[s.place] = told[[]Record]{doubt: untold, why: fmt.Sprintf("%s of slot %s: %v", getOps, s.place.Slot, why)}
			return
		}
		f.ops += uint64(len(ops))
		for i, o := range ops {
			if s.from+uint64(i) < f.counts[s.place] {
				open.apply(o)
			} else {
				tail = append(tail, o)
			}
		}
		if s.to != counts[s.place] {
			return
		}
		t := told[[]Record]{value: open.all()}
		if v.since != nil && !slices.EqualFunc(tail, v.since.ops[s.place], bytes.Equal) {
			t = told[[]Record]{doubt: untold, why: fmt.Sprintf("the last %d operations of slot %s are not those of the logs after block %d: %s lacks logs", len(tail), s.place.Slot, v.input.Number, v.host)}
		}
		f.records[s.place] = t
	})
}

// read reads spans of operations, and calls done with each in order.
func (v *view) read(ctx context.Context, spans []span, done func(s span, ops [][]byte, why error)) error {
	for len(spans) > 0 {
		var requests [][]span
		for len(spans) > 0 && len(requests) < requestsAhead {
			n, ops := 0, uint64(0)
			for n < len(spans) && n < callsAtOnce-1 && (n == 0 || ops+spans[n].to-spans[n].from <= opsPerRequest) {
				ops += spans[n].to - spans[n].from
				n++
			}
			requests, spans = append(requests, spans[:n]), spans[n:]
		}
		calls := make([][]provider.Call, len(requests))
		for i, request := range requests {
			calls[i] = callsOf(request)
		}
		answers, err := v.callAll(ctx, calls)
		if err != nil {
			return err
		}
		for i, request := range requests {
			for j, s := range request {
				ops, err := asOps(answers[i][j], s.to-s.from)
				if err != nil && s.to-s.from > 1 {
					ops, err = v.readHalves(ctx, s)
					if err != nil && !errors.Is(err, errUntold) {
						return err
					}
				}
				done(s, ops, err)
			}
		}
	}
	return nil
}

func callsOf(spans []span) (calls []provider.Call) {
	for _, s := range spans {
		calls = append(calls, call(s.place.Address, getOps, number(s.place.Slot), new(big.Int).SetUint64(s.from), new(big.Int).SetUint64(s.to)))
	}
	return calls
}

// readHalves reads a span that was too large for one call.
func (v *view) readHalves(ctx context.Context, s span) (ops [][]byte, err error) {
	half := s.from + (s.to-s.from)/2
	for _, part := range []span{{s.place, s.from, half}, {s.place, half, s.to}} {
		answers, err := v.call(ctx, callsOf([]span{part}))
		if err != nil {
			return nil, err
		}
		some, err := asOps(answers[0], part.to-part.from)
		if err != nil && part.to-part.from > 1 {
			some, err = v.readHalves(ctx, part)
		}
		if err != nil {
			return nil, err
		}
		ops = append(ops, some...)
	}
	return ops, nil
}
