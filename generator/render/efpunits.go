package render

import (
	"cmp"
	"slices"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// kinds returns the kinds of units that only the API efp has.
func (e *efpRenderer) kinds() []UnitKind {
	return []UnitKind{
		{len(e.Accounts), e.weight, e.renderAccount},
		{1, nil, func(_ int, t *Scratch, emit Emitter) { e.renderUnknown(t, emit) }},
		{len(e.addressBuckets.names), nil, e.renderUserBucket},
		{len(e.listBuckets.names), nil, e.renderTokenBucket},
		{e.boards.shards(), nil, e.renderRankedShard},
		{len(site.RankedSorts()) * e.boards.orderShards(), nil, e.renderRankedOrder},
		{shardCount(len(e.Recommended)), nil, e.renderRecommendedShard},
		{1, nil, e.renderSummaries},
		e.texts.kind(),
	}
}

// weight returns the number of records in the objects of an account.
func (e *efpRenderer) weight(unit int) int {
	n := len(e.holdersOf(uint32(unit)))
	for _, list := range e.listsOf(uint32(unit)) {
		n += e.Length(list)
	}
	return n
}

// renderAccount emits the objects of an account, its lists and its followers.
func (e *efpRenderer) renderAccount(unit int, t *Scratch, emit Emitter) {
	account, v := uint32(unit), &t.view
	all := e.listsOf(account)
	lists := t.only.lists(all)
	shown := lists
	if t.only.object == site.Lists { // names all lists
		shown = all
	}
	v.setAccount(e.Graph, e.ranks, e.profileEnds, account, shown)
	e.setFollowers(t, account)
	e.setList(v, e.Primary[account])
	e.renderUser(t, &v.view, emit)
	for _, list := range lists {
		e.setList(v, list)
		e.renderListEFP(t, &v.view, emit)
	}
	if t.only.wants(shardObject) && t.only.wantsList("") {
		e.renderFollowerShards(t, account, v.user, emit)
	}
}

func (e *efpRenderer) setList(v *graphView, list uint32) {
	v.setList(list)
	if v.held = 0; list != None {
		v.held = int(e.held[list])
	}
}

// setFollowers sets the followers that the selected objects of an account show.
func (e *efpRenderer) setFollowers(t *Scratch, account uint32) {
	v, holders, states := &t.view, e.holdersOf(account), e.statesOf(account)
	if t.only.wantsPages() {
		t.holders = t.holders[:0]
		var shown [site.DefaultLimit]rules.State
		for i, h := range holders {
			if len(t.holders) == site.DefaultLimit {
				break
			}
			if h.follows() {
				shown[len(t.holders)] = states[i]
				t.holders = append(t.holders, h)
			}
		}
		e.aheadOfFollowers(t, t.holders)
		for i, h := range t.holders {
			v.page = append(v.page, e.follower(h, shown[i]))
		}
	}
	if !t.only.wants(site.TaggedAs) {
		return
	}
	t.holders = t.holders[:0]
	for _, h := range holders {
		if h.hasTags() {
			t.holders = append(t.holders, h)
		}
	}
	slices.SortFunc(t.holders, func(a, b holder) int { return cmp.Compare(e.tokenRank[a.list], e.tokenRank[b.list]) })
	for some := range slices.Chunk(t.holders, aheadRows) {
		e.aheadOfFollowers(t, some)
		for _, h := range some {
			v.tagged = append(v.tagged, e.follower(h, 0))
		}
	}
}

func (e *efpRenderer) follower(h holder, s rules.State) Follower {
	return Follower{
		Token: e.Tokens[h.list], Account: e.Accounts[e.Owners[h.list]], Tags: &e.TagSets[e.recordOf(h).Tags], Added: e.addedAt(h), State: s,
	}
}

func (e *efpRenderer) renderSummaries(_ int, _ *Scratch, emit Emitter) {
	ranked := e.boards.accounts[:min(rankedLimit(e.config), len(e.boards.accounts))]
	emit(objectBytes+userBytes*len(ranked), func(b []byte) []byte {
		return appendRanked(b, e.lastUpdated, len(ranked), func(i int) *Account {
			a := e.shown(ranked[i])
			return &a
		})
	}, e.config.RankedKey())
	s := e.summarize()
	e.emitSummaries(&s, emit)
}

func (e *efpRenderer) summarize() Summaries {
	s := Summaries{Ranked: len(e.boards.accounts), Addresses: e.Addresses, Lists: len(e.Tokens), ListOps: e.ListOps}
	for _, list := range e.Primary {
		if list != None {
			s.Primaries++
		}
	}
	for _, account := range e.newest {
		a := e.shown(account)
		s.Discover = append(s.Discover, AppendPerson(nil, &a))
	}
	return s
}
