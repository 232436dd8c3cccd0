package whole

import (
	"cmp"
	"slices"

	"github.com/followpress/followpress/generator/internal/graph"
	"github.com/followpress/followpress/generator/internal/units"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// Estimated sizes of rows, without their texts.
const (
	followerRowBytes = len(`["","0x0000000000000000000000000000000000000000",,0,1700000000000,1000000,,,,1000000],`)
	rankedRowBytes   = len(`["0x0000000000000000000000000000000000000000",,,,[,,,,],[,,,,]],`) + 10*len("1000000")
	tokenBytes       = 20 // a usual token ID
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

// renderFollowerShards emits the rows of the holders of an account, if they are not in its bucket.
func (e *efpRenderer) renderFollowerShards(t *units.Scratch, account uint32, address string, emit render.Emitter) {
	holders, states := e.HoldersOf(account), e.StatesOf(account)
	if len(holders) <= site.PackedRows {
		return
	}
	isFollow := func(i int) bool { return holders[i].Follows() }
	var before []int
	if t.Only.WantsOneOf(render.UsualShards(len(holders))) {
		before = t.Only.Cuts.Get(render.CutTable{OfHolders: true, Number: account}, len(holders), func(i int) (bool, bool) {
			return true, isFollow(i)
		}).Before
	}
	render.EmitTable(&t.Scratch, render.RowTable{
		Member: "address", Owner: address, Rows: len(holders), Before: before, IsFollow: isFollow,
		Ahead:     func(from, to int) { e.aheadOf(t, holders[from:to]) },
		Size:      func(i int) int { return e.followerRowSize(holders[i]) },
		Render:    func(b []byte, i int) []byte { return e.appendFollowerRow(b, holders[i], states[i]) },
		Followers: func(i int) uint32 { return e.ranks.Count[rules.Followers][e.Owners[holders[i].List]] },
		Address:   func(i int) site.Address { return e.Accounts[e.Owners[holders[i].List]] },
	}, emit, func(n int) site.Key { return site.FollowerShardKey(address, n) }, func() site.Key { return site.FollowerHeadKey(address) })
}

func (e *efpRenderer) followerRowSize(h graph.Holder) int {
	return followerRowBytes + len(e.Tokens[h.List]) + len(e.TagSets[e.RecordOf(h).Tags].JSON) + int(e.profileEnds[e.Owners[h.List]].Header)
}

// appendFollowerRow appends the row of a holder.
func (e *efpRenderer) appendFollowerRow(b []byte, h graph.Holder, s rules.State) []byte {
	account := e.Owners[h.List]
	name, avatar, header := render.TextsOf(e.Profile(account), e.profileEnds[account])
	b = append(render.AppendFollower(b, e.Tokens[h.List], e.Accounts[account]), e.TagSets[e.RecordOf(h).Tags].JSON...)
	b = render.AppendState(b, s, e.AddedAt(h), e.ranks.Count[rules.Followers][account])
	return render.AppendMutualsRank(render.AppendTexts(b, name, avatar, header), e.ranks.Shown[rules.Mutuals][account])
}

func (e *efpRenderer) renderUserBucket(bucket int, t *units.Scratch, emit render.Emitter) {
	names, accounts := e.nameBuckets.In(bucket), e.addressBuckets.In(bucket)
	size := render.ObjectBytes
	for _, n := range names {
		size += len(e.Names[n].Name) + 2*render.UserBytes
	}
	t.Holders = t.Holders[:0]
	for _, account := range accounts {
		if holders := e.HoldersOf(account); len(holders) <= site.PackedRows {
			t.Holders = append(t.Holders, holders...)
		}
	}
	e.aheadOf(t, t.Holders)
	for _, account := range accounts {
		size += 2 * render.UserBytes
		if holders := e.HoldersOf(account); len(holders) <= site.PackedRows {
			for _, h := range holders {
				size += e.followerRowSize(h)
			}
		}
	}
	name := e.addressBuckets.Names[bucket]
	emit(size, func(b []byte) []byte {
		b = render.AppendBucket(b, name, "names")
		for _, n := range names {
			found := e.Names[n]
			b = rawjson.AppendString(b, found.Name)
			b = append(b, `:["`...)
			b = e.Accounts[found.Account].Append(b)
			b = append(b, `",`...)
			b = append(e.appendSizes(b, found.Account), "],"...)
		}
		b = append(render.WithoutComma(b), `},"accounts":{`...)
		for _, account := range accounts {
			b = append(b, '"')
			b = e.Accounts[account].Append(b)
			b = append(b, `":[`...)
			b = append(e.appendSizes(b, account), ",["...)
			if holders, states := e.HoldersOf(account), e.StatesOf(account); len(holders) <= site.PackedRows {
				for i, h := range holders {
					b = append(e.appendFollowerRow(b, h, states[i]), ',')
				}
			}
			b = append(render.WithoutComma(b), "]],"...)
		}
		return append(render.WithoutComma(b), "}}"...)
	}, site.UserBucketKey(name))
}

// appendSizes is AppendSizes for an account of the graph.
func (e *efpRenderer) appendSizes(b []byte, account uint32) []byte {
	token, held := "", uint32(0)
	if primary := e.Primary[account]; primary != graph.None {
		token, held = e.Tokens[primary], e.Held[primary]
	}
	return render.AppendSizes(b, token, int(held), len(e.HoldersOf(account)))
}

func (e *efpRenderer) renderTokenBucket(bucket int, t *units.Scratch, emit render.Emitter) {
	lists := e.listBuckets.In(bucket)
	t.View.Show(e.Graph, e.ranks, e.profileEnds)
	all := &t.View.List
	size := render.ObjectBytes
	for _, list := range lists {
		size += render.UserBytes + len(e.Tokens[list])
		if e.Held[list] <= site.PackedRows {
			t.View.SetList(list)
			all.Ahead(0, all.Len())
			for i := range all.Len() {
				if all.State(i) != 0 {
					size += render.RecordRowSize(all, i)
				}
			}
		}
	}
	name := e.listBuckets.Names[bucket]
	emit(size, func(b []byte) []byte {
		b = render.AppendBucket(b, name, "lists")
		for _, list := range lists {
			account := e.Owners[list]
			t.View.SetList(list)
			b = render.AppendListEntry(b, e.Tokens[list], e.Accounts[account], e.IsPrimary(list), int(e.Held[list]), len(e.HoldersOf(account)), all)
			b = append(b, ',')
		}
		return append(render.WithoutComma(b), "}}"...)
	}, site.TokenBucketKey(name))
}

func (e *efpRenderer) renderRankedShard(n int, _ *units.Scratch, emit render.Emitter) {
	accounts := graph.Window(e.boards.Accounts, n, site.SearchShardSize)
	size := render.ObjectBytes
	for _, account := range accounts {
		size += rankedRowBytes + int(e.profileEnds[account].Header)
	}
	emit(size, func(b []byte) []byte {
		b = render.AppendShardHead(append(b, '{'), len(e.boards.Accounts), n, site.SearchShardSize)
		for _, account := range accounts {
			a := e.shown(account)
			b = append(render.AppendRankedRow(b, &a), ',')
		}
		return append(render.WithoutComma(b), "]}"...)
	}, site.RankedShardKey(n))
}

// renderRankedOrder emits a shard of the places of ranked accounts in another order.
func (e *efpRenderer) renderRankedOrder(unit int, _ *units.Scratch, emit render.Emitter) {
	shards := e.boards.OrderShards()
	sort, n := unit/shards, unit%shards
	places := graph.Window(e.boards.Orders[sort], n, site.RankedOrderSize)
	emit(render.ObjectBytes+len("1000000,")*len(places), func(b []byte) []byte {
		b = render.AppendShardHead(append(b, '{'), len(e.boards.Accounts), n, site.RankedOrderSize)
		return append(render.AppendPlaces(b, places), "]}"...)
	}, site.RankedOrderKey(site.RankedSorts()[sort], n))
}

func (e *efpRenderer) renderRecommendedShard(n int, _ *units.Scratch, emit render.Emitter) {
	rows := graph.Window(e.Recommended, n, site.SearchShardSize)
	size := render.ObjectBytes
	for _, r := range rows {
		size += rankedRowBytes + len(r.Class) + 2*tokenBytes
		if account, ok := e.Numbers.Find(r.Address); ok {
			size += len(e.Profile(account).ENS)
		}
	}
	emit(size, func(b []byte) []byte {
		b = render.AppendShardHead(append(b, '{'), len(e.Recommended), n, site.SearchShardSize)
		for _, r := range rows {
			var known *render.Account
			if account, ok := e.Numbers.Find(r.Address); ok {
				a := e.shown(account)
				known = &a
			}
			b = append(render.AppendRecommended(b, r.Address, r.Class, known), ',')
		}
		return append(render.WithoutComma(b), "]}"...)
	}, site.RecommendedShardKey(n))
}

// aheadOf reads the data that rows show of holders.
func (e *efpRenderer) aheadOf(t *units.Scratch, holders []graph.Holder) {
	for some := range slices.Chunk(holders, render.AheadRows) {
		owners, sum := e.touchHolders(some)
		mutuals := e.ranks.Shown[rules.Mutuals]
		for _, owner := range owners[:len(some)] {
			sum += mutuals[owner]
		}
		t.Read += sum + e.Touch(e.ranks, e.profileEnds, true, owners[:len(some)])
	}
}

// aheadOfFollowers reads the data that pages show of holders.
func (e *efpRenderer) aheadOfFollowers(t *units.Scratch, holders []graph.Holder) {
	for some := range slices.Chunk(holders, render.AheadRows) {
		owners, sum := e.touchHolders(some)
		for _, owner := range owners[:len(some)] {
			sum += uint32(e.Accounts[owner][0])
		}
		t.Read += sum
	}
}

// touchHolders reads the lists and records of at most AheadRows holders. It returns the owners of the lists.
func (e *efpRenderer) touchHolders(holders []graph.Holder) (owners [render.AheadRows]uint32, sum uint32) {
	var records [render.AheadRows]uint64
	for i, h := range holders {
		owners[i] = e.Owners[h.List]
		records[i] = e.Offsets[h.List] + uint64(h.At())
	}
	for i, h := range holders {
		sum += uint32(e.Tokens[h.List][0]) + uint32(e.Added[records[i]]) + e.Records.Form(int(records[i]))
	}
	return owners, sum
}
