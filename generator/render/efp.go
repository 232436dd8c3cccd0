package render

import (
	"cmp"
	"context"
	"slices"

	"github.com/followpress/followpress/client"
	"github.com/followpress/followpress/internal/inorder"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/templates/openapi"
)

// An efpRenderer renders the objects that only the API efp has, and with them everything else of an
// account and its lists. Like the Site, it is immutable.
type efpRenderer struct {
	*relations
	viewRenderer
	ranks *Ranks

	profileEnds []profileEnds // by account
	lastUpdated string        // the time of the snapshot
	boards      rankedBoards
	newest      []uint32 // accounts that discover shows
	texts       []text   // objects that do not depend on the snapshot

	addressBuckets, nameBuckets, listBuckets partition
}

func newEFPRenderer(ctx context.Context, g *Graph, r *Ranks, config site.Config, workers int) (*efpRenderer, error) {
	relations, err := newRelations(ctx, g, workers)
	if err != nil {
		return nil, err
	}
	lastUpdated, err := timeOfSnapshot(g.AsOf)
	if err != nil {
		return nil, err // does not happen: snapshot.ReadAsOf has checked it
	}
	e := &efpRenderer{
		relations: relations, viewRenderer: viewRenderer{config, encodeEvents(g.Events)}, ranks: r,
		lastUpdated: lastUpdated,
		boards:      newRankedBoards(r),
	}
	if e.newest, err = relations.newestFollowed(ctx, workers); err != nil {
		return nil, err
	}
	if e.texts, err = apiTexts(config); err != nil {
		return nil, err
	}
	e.profileEnds = make([]profileEnds, len(e.Accounts))
	err = inorder.Chunks(ctx, workers, len(e.profileEnds), func(account int) error {
		e.profileEnds[account] = endsOf(e.profile(uint32(account)))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return e, e.fillBuckets(ctx, workers)
}

// A text is an object that depends on the configuration only.
type text struct {
	key  site.Key
	body []byte
}

// apiTexts returns the description of the API and the client library.
func apiTexts(config site.Config) ([]text, error) {
	api, err := openapi.Describe(config)
	if err != nil {
		return nil, err
	}
	texts := []text{{site.OpenAPIKey, api}}
	for _, f := range client.Files() {
		texts = append(texts, text{site.ClientKey(f.Name), f.Body})
	}
	return texts, nil
}

// kinds are the kinds of units that only the API efp has.
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
		{len(e.texts), nil, e.renderText},
	}
}

func (e *efpRenderer) renderText(unit int, _ *Scratch, emit Emitter) {
	emitText(emit, e.texts[unit].body, e.texts[unit].key)
}

// weight is the number of records that the objects of an account show.
func (e *efpRenderer) weight(unit int) int {
	n := len(e.holdersOf(uint32(unit)))
	for _, list := range e.listsOf(uint32(unit)) {
		n += e.Length(list)
	}
	return n
}

// objects is the number of objects of these, but for fixed ones.
func (e *efpRenderer) objects() (n int) {
	for account := range e.Accounts {
		n += AccountObjects(e.config, len(e.holdersOf(uint32(account))))
	}
	for list := range e.Tokens {
		n += ListObjects(e.config, int(e.held[list]), 0, e.isPrimary(uint32(list)))
	}
	return n
}

// renderAccount emits the objects of an account, its lists and its followers.
func (e *efpRenderer) renderAccount(unit int, t *Scratch, emit Emitter) {
	account, v := uint32(unit), &t.view
	all := e.listsOf(account)
	lists := t.only.lists(all)
	shown := lists
	if t.only.object == site.Lists { // it names them all
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

// setFollowers sets what objects show of the followers of an account, as far as the selected ones do.
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

func (e *viewRenderer) emitSummaries(s *Summaries, emit Emitter) {
	emit(objectBytes, s.appendCount, e.config.CountKey())
	emit(objectBytes, s.appendStats, e.config.StatsKey())
	for _, page := range []struct {
		limit int
		key   site.Key
	}{{site.DiscoverMax, site.DiscoverShardKey}, {site.DefaultLimit, e.config.DiscoverKey()}} {
		emit(objectBytes+userBytes*page.limit, func(b []byte) []byte { return s.appendDiscover(b, page.limit) }, page.key)
	}
}
