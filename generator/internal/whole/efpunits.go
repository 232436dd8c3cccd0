package whole

import (
	"cmp"
	"slices"

	"github.com/followpress/followpress/generator/internal/graph"
	"github.com/followpress/followpress/generator/internal/units"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// kinds returns the kinds of units that only the API efp has.
func (e *efpRenderer) kinds() []units.Kind {
	return []units.Kind{
		{Units: len(e.Accounts), Records: e.weight, Render: e.renderAccount},
		{Units: 1, Render: func(_ int, t *units.Scratch, emit render.Emitter) { e.RenderUnknown(&t.Scratch, emit) }},
		{Units: len(e.addressBuckets.Names), Render: e.renderUserBucket},
		{Units: len(e.listBuckets.Names), Render: e.renderTokenBucket},
		{Units: e.boards.Shards(), Render: e.renderRankedShard},
		{Units: len(site.RankedSorts()) * e.boards.OrderShards(), Render: e.renderRankedOrder},
		{Units: render.UsualShards(len(e.Recommended)), Render: e.renderRecommendedShard},
		{Units: 1, Render: e.renderSummaries},
		e.texts.Kind(),
	}
}

// weight returns the number of records in the objects of an account.
func (e *efpRenderer) weight(unit int) int {
	n := len(e.HoldersOf(uint32(unit)))
	for _, list := range e.ListsOf(uint32(unit)) {
		n += e.Length(list)
	}
	return n
}

// renderAccount emits the objects of an account, its lists and its followers.
func (e *efpRenderer) renderAccount(unit int, t *units.Scratch, emit render.Emitter) {
	account, v := uint32(unit), &t.View
	all := e.ListsOf(account)
	lists := t.Only.Lists(all)
	shown := lists
	if t.Only.Object == site.Lists { // names all lists
		shown = all
	}
	v.SetAccount(e.Graph, e.ranks, e.profileEnds, account, shown)
	e.setFollowers(t, account)
	e.setList(v, e.Primary[account])
	e.RenderUser(&t.Scratch, &v.View, emit)
	for _, list := range lists {
		e.setList(v, list)
		e.RenderListEFP(&t.Scratch, &v.View, emit)
	}
	if t.Only.Wants(render.ShardObject) && t.Only.WantsList("") {
		e.renderFollowerShards(t, account, v.User, emit)
	}
}

func (e *efpRenderer) setList(v *graph.View, list uint32) {
	v.SetList(list)
	if v.Held = 0; list != graph.None {
		v.Held = int(e.Held[list])
	}
}

// setFollowers sets the followers that the selected objects of an account show.
func (e *efpRenderer) setFollowers(t *units.Scratch, account uint32) {
	v, holders, states := &t.View, e.HoldersOf(account), e.StatesOf(account)
	if t.Only.WantsPages() {
		t.Holders = t.Holders[:0]
		var shown [site.DefaultLimit]rules.State
		for i, h := range holders {
			if len(t.Holders) == site.DefaultLimit {
				break
			}
			if h.Follows() {
				shown[len(t.Holders)] = states[i]
				t.Holders = append(t.Holders, h)
			}
		}
		e.aheadOfFollowers(t, t.Holders)
		for i, h := range t.Holders {
			v.Page = append(v.Page, e.follower(h, shown[i]))
		}
	}
	if !t.Only.Wants(site.TaggedAs) {
		return
	}
	t.Holders = t.Holders[:0]
	for _, h := range holders {
		if h.HasTags() {
			t.Holders = append(t.Holders, h)
		}
	}
	slices.SortFunc(t.Holders, func(a, b graph.Holder) int { return cmp.Compare(e.TokenRank[a.List], e.TokenRank[b.List]) })
	for some := range slices.Chunk(t.Holders, render.AheadRows) {
		e.aheadOfFollowers(t, some)
		for _, h := range some {
			v.Tagged = append(v.Tagged, e.follower(h, 0))
		}
	}
}

func (e *efpRenderer) follower(h graph.Holder, s rules.State) render.Follower {
	return render.Follower{
		Token: e.Tokens[h.List], Account: e.Accounts[e.Owners[h.List]], Tags: &e.TagSets[e.RecordOf(h).Tags], Added: e.AddedAt(h), State: s,
	}
}

func (e *efpRenderer) renderSummaries(_ int, _ *units.Scratch, emit render.Emitter) {
	e.EmitRanked(e.lastUpdated, len(e.boards.Accounts), func(i int) *render.Account {
		a := e.shown(e.boards.Accounts[i])
		return &a
	}, emit)
	s := e.summarize()
	e.EmitSummaries(&s, emit)
}

func (e *efpRenderer) summarize() render.Summaries {
	s := render.Summaries{Ranked: len(e.boards.Accounts), Addresses: e.Addresses, Lists: len(e.Tokens), ListOps: e.ListOps}
	for _, list := range e.Primary {
		if list != graph.None {
			s.Primaries++
		}
	}
	for _, account := range e.newest {
		a := e.shown(account)
		s.Discover = append(s.Discover, render.AppendPerson(nil, &a))
	}
	return s
}
