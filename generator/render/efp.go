package render

import (
	"context"

	"github.com/followpress/followpress/client"
	"github.com/followpress/followpress/internal/templates"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// keysPerEmit bounds the keys of a body that is emitted at a time: an account may have any number of
// lists, and an output keeps a copy of the body for each.
const keysPerEmit = 64

// An efpRenderer renders the objects that only the API efp has, and with them everything else of an
// account and its lists. Like the Site, it is immutable.
type efpRenderer struct {
	*relations
	ranks  *Ranks
	config site.Config
	events eventTexts

	profileEnds []profileEnds // by account
	tags        []string      // all tags, sorted by bytes, as JSON
	tagNumbers  [][]uint32    // by set of tags; indexes into tags
	lastUpdated string        // the time of the snapshot
	boards      rankedBoards
	newest      []uint32 // accounts that discover shows
	texts       []text   // objects that do not depend on the snapshot
	unknown     bool     // whether the only account stands for addresses that the graph does not know

	addressBuckets, nameBuckets, listBuckets partition
}

// An efpScratch is memory that the units of a chunk reuse.
type efpScratch struct {
	held    []PackedRecord                 // by the list that is rendered
	page    []holder                       // the first followers
	states  [site.DefaultLimit]rules.State // of the page
	numbers []uint32                       // of tags, once for each record with the tag
	counts  []tagRun                       // of those tags, by tag
	byCount []tagRun                       // the same, the most frequent first
	tagged  []holder                       // with tags, by token ID of the list
	places  []uint32                       // of the rows of a head
}

// A tagRun is a tag with the number of records that carry it.
type tagRun struct {
	tag uint32
	n   int
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
		relations: relations, ranks: r, config: config, events: encodeEvents(g.Events),
		lastUpdated: lastUpdated,
		boards:      newRankedBoards(r),
		newest:      relations.newestFollowed(),
	}
	if e.texts, err = apiTexts(config); err != nil {
		return nil, err
	}
	e.findProfileEnds()
	e.numberTags()
	return e, e.fillBuckets(ctx, workers)
}

// A text is an object that depends on the configuration only.
type text struct {
	key  site.Key
	body []byte
}

// apiTexts returns the description of the API and the client library.
func apiTexts(config site.Config) ([]text, error) {
	api, err := templates.OpenAPI(config)
	if err != nil {
		return nil, err
	}
	texts := []text{{site.OpenAPIKey, api}}
	for _, f := range client.Files() {
		texts = append(texts, text{site.ClientKey(f.Name), f.Body})
	}
	return texts, nil
}

// unknownRenderer renders the objects of an address that the graph does not know: those of the only
// account of a graph that knows nothing about it.
func (e *efpRenderer) unknownRenderer() *efpRenderer {
	g := NewGraph(e.AsOf)
	g.Account(site.Address{})
	g.FillAccounts()
	g.Offsets = []uint64{0}
	r := &Ranks{}
	for m := range r.Count {
		r.Count[m] = []uint32{0}
	}
	for m := range r.Rank {
		r.Rank[m] = []uint32{0}
	}
	return &efpRenderer{
		relations: &relations{Graph: g, listOffsets: []uint32{0, 0}, holderOffsets: []uint64{0, 0}},
		ranks:     r, config: e.config, events: e.events, profileEnds: []profileEnds{endsOf(emptyProfile)}, unknown: true,
	}
}

// parts are the parts of a site that only the API efp has.
func (e *efpRenderer) parts() []Part {
	return []Part{
		{len(e.Accounts), e.weight, e.renderAccount},
		{1, nil, e.renderUnknown},
		{len(e.addressBuckets.names), nil, e.renderUserBucket},
		{len(e.listBuckets.names), nil, e.renderTokenBucket},
		{e.boards.shards(), nil, e.renderRankedShard},
		{len(site.RankedSorts()) * e.boards.orderShards(), nil, e.renderRankedOrder},
		{shardCount(len(e.Recommended)), nil, e.renderRecommendedShard},
		{1, nil, e.renderSummaries},
		{len(e.texts), nil, e.renderText},
	}
}

func (e *efpRenderer) renderUnknown(_ int, t *Scratch, emit Emitter) {
	e.unknownRenderer().renderAccount(0, t, emit)
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

// objects is the number of objects of the parts.
func (e *efpRenderer) objects() int64 {
	perUser, perList := len(site.UserObjects()), len(efpListObjects)
	n := perUser + len(e.addressBuckets.names) + len(e.listBuckets.names) +
		e.boards.shards() + len(site.RankedSorts())*e.boards.orderShards() + shardCount(len(e.Recommended)) +
		summaryObjects + len(e.texts)
	for account, primary := range e.Primary {
		n += perUser + rowObjects(len(e.holdersOf(uint32(account))))
		if primary != None {
			n++ // searchFollowing
		}
	}
	for list := range e.Tokens {
		n += perList + rowObjects(int(e.held[list]))
	}
	if e.config.Names != site.NamesLookup {
		n += len(e.Names) * (perUser + 1)
	}
	return int64(n)
}

// efpListObjects are the objects of a list.
var efpListObjects = []site.ListObject{
	site.Records, site.Details, site.Badges, site.SearchFollowing, site.Account, site.Stats,
	site.PageFollowing, site.PageFollowers, site.Tags, site.TaggedAs,
}

// A user is an account with its keys.
type user struct {
	account uint32
	address string
	name    string // under which there are copies; "" for none
	primary uint32
}

func (e *efpRenderer) user(account uint32) user {
	u := user{account: account, address: e.Accounts[account].String(), primary: e.Primary[account]}
	if e.config.Names != site.NamesLookup {
		u.name = string(e.Profiles.Name(account))
	}
	return u
}

// userKeys are the keys of an object of a user.
func (e *efpRenderer) userKeys(t *Scratch, u user, object site.ListObject) []site.Key {
	if e.unknown {
		return append(t.keys[:0], site.UnknownKey(object))
	}
	t.keys = append(t.keys[:0], e.config.UserObjectKey(u.address, object))
	if u.name != "" {
		t.keys = append(t.keys, e.config.UserObjectKey(u.name, object))
	}
	return t.keys
}

// renderAccount emits the objects of an account, its lists and its followers.
func (e *efpRenderer) renderAccount(unit int, t *Scratch, emit Emitter) {
	u := e.user(uint32(unit))
	e.renderUser(t, u, emit)
	for _, list := range t.only.lists(e.listsOf(u.account)) {
		e.renderList(t, u, list, emit)
	}
	if t.only.wants(shardObject) && t.only.wantsList(None) {
		e.renderFollowerShards(t, u, emit)
	}
}

// renderUser emits the objects of an account, of which some are also those of its lists.
func (e *efpRenderer) renderUser(t *Scratch, u user, emit Emitter) {
	ens := len(e.profile(u.account).ENS)
	lists := t.only.lists(e.listsOf(u.account))

	emit(objectBytes+ens, func(b []byte) []byte { return append(e.appendAccount(b, u.account), '}') }, e.userKeys(t, u, site.Account)...)
	e.emitToLists(t, u, site.Details, emit, objectBytes+ens, func(b []byte) []byte { return e.appendDetails(b, e.ranks, u.account) })
	e.emitToLists(t, u, site.Badges, emit, objectBytes+e.events.size(e.BadgesOf(u.account)), func(b []byte) []byte {
		return e.appendBadges(b, e.config.BadgesField, e.events, u.account)
	})
	emit(objectBytes+32*len(lists), func(b []byte) []byte { return e.appendLists(b, u.account) }, e.userKeys(t, u, site.Lists)...)

	if t.only.wantsPages() && t.only.wantsList(u.primary) {
		e.renderPages(t, u, u.primary, emit, func(object site.ListObject) []site.Key {
			keys := e.userKeys(t, u, object)
			if object == site.SearchFollowing && u.primary == None {
				keys = keys[1:] // an address without a primary list has no such object
			} else if u.primary != None {
				keys = append(keys, e.config.ListKey(e.Tokens[u.primary], object))
			}
			t.keys = keys
			return keys
		})
	}
	if t.only.wants(site.Tags) && t.only.wantsList(None) {
		e.countListTags(t, u.primary)
		emit(e.tagsSize(t), func(b []byte) []byte { return e.appendListTags(appendAddressHead(b, u.address), t, u.primary) }, e.userKeys(t, u, site.Tags)...)
	}
	if t.only.wants(site.TaggedAs) {
		e.countTaggedAs(t, u.account)
		emit(e.tagsSize(t), func(b []byte) []byte { return e.appendTaggedAs(appendAddressHead(b, u.address), t) }, e.userKeys(t, u, site.TaggedAs)...)
		for _, list := range lists {
			emit(e.tagsSize(t), func(b []byte) []byte { return e.appendTaggedAs(appendTokenHead(b, e.Tokens[list]), t) },
				e.config.ListKey(e.Tokens[list], site.TaggedAs))
		}
	}
}

// emitToLists emits an object that a user and all its lists have.
func (e *efpRenderer) emitToLists(t *Scratch, u user, object site.ListObject, emit Emitter, size int, render func([]byte) []byte) {
	if !t.only.wants(object) {
		return
	}
	keys := e.userKeys(t, u, object)
	for _, list := range t.only.lists(e.listsOf(u.account)) {
		if len(keys) == keysPerEmit {
			emit(size, render, keys...)
			keys = keys[:0]
		}
		keys = append(keys, e.config.ListKey(e.Tokens[list], object))
	}
	emit(size, render, keys...)
	t.keys = keys
}

// renderPages emits what a user and a list have in common. The list of a user is the primary one, or
// none.
func (e *efpRenderer) renderPages(t *Scratch, u user, list uint32, emit Emitter, keys func(site.ListObject) []site.Key) {
	t.follows = t.follows[:0]
	if list != None {
		for _, r := range e.RecordsOf(list).All() {
			if e.IsFollow(r) {
				t.follows = append(t.follows, r)
			}
		}
	}
	emit(objectBytes, func(b []byte) []byte {
		return appendFollowCounts(b, e.ranks.Count[Followers][u.account], len(t.follows))
	}, keys(site.Stats)...)
	emit(objectBytes+e.followingSize(t.follows), func(b []byte) []byte { return e.appendFollowingPage(b, t.follows) }, keys(site.PageFollowing)...)
	page := e.firstFollowers(t, u.account, list)
	emit(objectBytes+e.followersSize(page), func(b []byte) []byte { return e.appendFollowersPage(b, page, t.states[:]) }, keys(site.PageFollowers)...)
	if keys := keys(site.SearchFollowing); len(keys) > 0 {
		emit(objectBytes+e.entriesSize(firstPage(t.follows)), func(b []byte) []byte { return e.appendSearchFollowing(b, t.follows) }, keys...)
	}
}

// firstFollowers returns the latest followers of an account, and sets t.states to what the list says of
// them.
func (e *efpRenderer) firstFollowers(t *Scratch, account, list uint32) []holder {
	page := t.page[:0]
	states := e.statesOf(account)
	for i, h := range e.holdersOf(account) {
		if len(page) == site.DefaultLimit {
			break
		}
		if e.IsFollow(e.recordOf(h)) {
			t.states[len(page)] = states[i]
			page = append(page, h)
		}
	}
	t.page = page
	if list == None || e.isPrimary(list) || len(page) == 0 {
		return page
	}
	clear(t.states[:])
	for _, r := range e.RecordsOf(list).All() {
		if !e.Holds(r) {
			continue
		}
		for i, h := range page {
			if e.Owners[h.list] == r.Data {
				t.states[i] = e.StateOf(r)
			}
		}
	}
	return page
}

// renderList emits the objects of a list that are not those of its account.
func (e *efpRenderer) renderList(t *Scratch, u user, list uint32, emit Emitter) {
	token := e.Tokens[list]
	key := func(object site.ListObject) []site.Key {
		t.keys = append(t.keys[:0], e.config.ListKey(token, object))
		return t.keys
	}
	if t.only.wants(site.Records) {
		size := 0
		for _, r := range e.RecordsOf(list).All() {
			size += e.recordSize(r)
		}
		emit(objectBytes+size, func(b []byte) []byte { return e.appendRecords(b, list) }, key(site.Records)...)
	}
	emit(objectBytes+len(e.profile(u.account).ENS), func(b []byte) []byte { return e.appendListAccount(b, list) }, key(site.Account)...)
	if list != u.primary && t.only.wantsPages() {
		e.renderPages(t, u, list, emit, key)
	}
	if t.only.wants(site.Tags) {
		e.countListTags(t, list)
		emit(e.tagsSize(t), func(b []byte) []byte { return e.appendListTags(appendTokenHead(b, token), t, list) }, key(site.Tags)...)
	}
	if t.only.wants(shardObject) {
		e.renderListShards(t, list, emit)
	}
}

// summaryObjects is the number of objects that renderSummaries emits.
const summaryObjects = 5

func (e *efpRenderer) renderSummaries(_ int, _ *Scratch, emit Emitter) {
	ranked := e.boards.accounts[:min(e.rankedLimit(), len(e.boards.accounts))]
	emit(objectBytes+userBytes*len(ranked), func(b []byte) []byte {
		return e.appendRanked(b, len(ranked), func(i int) *Account {
			a := e.shown(ranked[i])
			return &a
		})
	}, e.config.RankedKey())
	s := e.summarize()
	e.emitSummaries(&s, emit)
}

// summarize summarizes the graph.
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

func (e *efpRenderer) emitSummaries(s *Summaries, emit Emitter) {
	emit(objectBytes, s.appendCount, e.config.CountKey())
	emit(objectBytes, s.appendStats, e.config.StatsKey())
	for _, page := range []struct {
		limit int
		key   site.Key
	}{{site.DiscoverMax, site.DiscoverShardKey}, {site.DefaultLimit, e.config.DiscoverKey()}} {
		emit(objectBytes+userBytes*page.limit, func(b []byte) []byte { return s.appendDiscover(b, page.limit) }, page.key)
	}
}
