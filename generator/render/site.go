package render

import (
	"context"
	"slices"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/ranks"
	"github.com/followpress/followpress/site/rules"
)

// A Site renders the objects of a site from a graph. It is immutable: any part of the site can be
// rendered at any time, from any goroutine, with the same result.
type Site struct {
	Graph  *Graph
	ranks  *Ranks
	Config site.Config
	views  viewRenderer

	problems texts

	efp     *efpRenderer     // nil unless the API is efp
	explore *exploreRenderer // nil without the explorer
	history *historyRenderer // nil if the site has no operations
	pages   *pageRenderer    // nil without pages
	data    *dataRenderer    // nil without the graph as files

	BucketDigits  int
	TokenDigits   int       // digits of buckets of lists; 0 unless the API is efp
	addresses     partition // accounts with a primary list by bucket
	names         partition // indexes of Graph.Names by bucket
	listlessNames []string  // names of accounts without a primary list
	Kinds         []UnitKind
}

// NewSite prepares to render the site of a graph. config must have its defaults set.
func NewSite(ctx context.Context, g *Graph, r *Ranks, config site.Config, workers int) (*Site, error) {
	s := &Site{Graph: g, ranks: r, Config: config, views: viewRenderer{config, encodeEvents(g.Events)}, problems: problemTexts(config)}
	boards := UnitKind{len(config.Boards()) * config.LeaderboardMax, nil, s.renderBoard}
	if config.EFP() {
		e, err := newEFPRenderer(ctx, g, r, config, workers)
		if err != nil {
			return nil, err
		}
		s.efp, s.BucketDigits, s.TokenDigits = e, e.addressBuckets.digits, e.listBuckets.digits
		s.Kinds = append(append([]UnitKind{s.problems.kind()}, e.kinds()...), boards)
		if config.HistoryWindow > 0 {
			s.history = newHistoryRenderer(e)
			s.Kinds = append(s.Kinds, s.history.kinds()...)
		}
		if config.Pages {
			if s.pages, err = newPageRenderer(ctx, e, workers); err != nil {
				return nil, err
			}
			s.Kinds = append(s.Kinds, s.pages.kinds()...)
		}
		s.addCommon()
		return s, nil
	}
	for _, n := range g.Names {
		if g.Primary[n.Account] == None {
			s.listlessNames = append(s.listlessNames, n.Name)
		}
	}
	if err := s.fillBuckets(ctx, workers); err != nil {
		return nil, err
	}
	s.Kinds = []UnitKind{
		s.problems.kind(),
		{len(g.Tokens), func(list int) int { return g.Length(uint32(list)) }, s.renderList},
		{len(s.listlessNames), nil, s.renderEmptySearch},
		{len(s.addresses.names), nil, s.renderBucket},
		boards,
	}
	s.addCommon()
	return s, nil
}

// addCommon adds the units that both APIs may have. The explorer and the graph as files come first:
// some of their objects take long, and no worker should wait for them at the end. The package has
// the digests of the files, so it comes last.
func (s *Site) addCommon() {
	if s.Config.Explorer {
		s.explore = &exploreRenderer{graph: s.Graph, ranks: s.ranks, texts: explorerTexts(s.Config)}
		s.Kinds = append(s.explore.kinds(), s.Kinds...)
	}
	if s.Config.RanksEvery > 0 {
		s.Kinds = append(s.Kinds, UnitKind{1, nil, s.renderRanks})
	}
	if s.Config.Data {
		s.data = newDataRenderer(s.Graph, s.ranks, s.Config)
		s.Kinds = append(slices.Insert(s.Kinds, 0, s.data.kind()), s.data.packageKind())
	}
}

func (s *Site) renderRanks(_ int, _ *Scratch, emit Emitter) {
	body := s.ranks.Held
	if body == nil {
		body = ranks.Encode(s.Graph.AsOf, s.ranks.counts(s.Graph.Accounts))
	}
	emitText(emit, body, site.RanksKey)
}

// fillBuckets sorts the users into buckets. Users are addresses with a primary list, and names.
func (s *Site) fillBuckets(ctx context.Context, workers int) (err error) {
	g := s.Graph
	var accounts []uint32
	for account, primary := range g.Primary {
		if primary != None {
			accounts = append(accounts, uint32(account))
		}
	}
	s.BucketDigits = s.Config.BucketDigits(len(accounts) + len(g.Names))
	s.addresses, err = newPartition(ctx, workers, s.BucketDigits, accounts, func(account uint32) string { return g.Accounts[account].String() })
	if err != nil {
		return err
	}
	s.names, err = newPartition(ctx, workers, s.BucketDigits, numbersBelow(len(g.Names)), func(name uint32) string { return g.Names[name].Name })
	return err
}

// usersIn returns the users of a bucket, sorted.
func (s *Site) usersIn(bucket int) (users []string) {
	for _, account := range s.addresses.in(bucket) {
		users = append(users, s.Graph.Accounts[account].String())
	}
	for _, name := range s.names.in(bucket) {
		users = append(users, s.Graph.Names[name].Name)
	}
	slices.Sort(users)
	return users
}

// tokenOf returns the token ID of the primary list of a user, or "".
func (s *Site) tokenOf(user string) string {
	if account, ok := s.Graph.accountOfUser(user); ok && s.Graph.Primary[account] != None {
		return s.Graph.Tokens[s.Graph.Primary[account]]
	}
	return ""
}

// view returns the view of a list, without followers.
func (s *Site) view(t *Scratch, list uint32) *view {
	t.view.setAccount(s.Graph, s.ranks, nil, s.Graph.Owners[list], nil)
	t.view.setList(list)
	return &t.view.view
}

// renderList emits the objects of a list. A primary list includes those of its account.
func (s *Site) renderList(unit int, t *Scratch, emit Emitter) {
	s.views.renderList(t, s.view(t, uint32(unit)), emit)
}

// renderShard emits the selected search shard of a list.
func (s *Site) renderShard(unit int, t *Scratch, emit Emitter) {
	v := s.view(t, uint32(unit))
	c := t.only.cuts.get(cutTable{number: uint32(unit)}, v.records.Len(), func(i int) (isRow, isFollow bool) {
		isFollow = v.records.state(i) == rules.Follow
		return isFollow, isFollow
	})
	n := t.only.shard
	if !t.only.wantsOneOf(searchShards(c.rows)) {
		return
	}
	t.view.list.all = t.view.list.all.Part(uint64(c.starts[n]), uint64(c.starts[n+1]))
	t.follows = appendFollows(t.follows[:0], v.records)
	emitShard(v, c.rows, n, t.follows, emit)
}

func (s *Site) renderEmptySearch(unit int, _ *Scratch, emit Emitter) {
	emitText(emit, site.EmptySearch, s.Config.UserKey(s.listlessNames[unit]))
}

func (s *Site) renderBucket(unit int, _ *Scratch, emit Emitter) {
	bucket, users := s.addresses.names[unit], s.usersIn(unit)
	emit(userBytes*len(users), func(b []byte) []byte {
		return AppendUserBucket(b, bucket, users, s.tokenOf)
	}, site.UserBucketKey(bucket))
}

func (s *Site) renderBoard(unit int, t *Scratch, emit Emitter) {
	board, limit := s.Config.Boards()[unit/s.Config.LeaderboardMax], 1+unit%s.Config.LeaderboardMax
	m := BoardMeasure(board)
	first := s.ranks.First[m][:min(limit, len(s.ranks.First[m]))]
	t.leaders = t.leaders[:0]
	for _, account := range first {
		t.leaders = append(t.leaders, Leader{s.Graph.Accounts[account], s.ranks.Count[m][account]})
	}
	s.views.emitBoard(t, board, limit, t.leaders, emit)
}

// Objects returns the number of objects of the site, without manifest and root.
func (s *Site) Objects() int64 {
	g, c := s.Graph, s.Config
	n := len(c.Problems()) + len(g.Names)*NameObjects(c)
	if s.explore != nil {
		n += len(s.explore.texts)
	}
	t := Tables{BucketDigits: s.BucketDigits, TokenDigits: s.TokenDigits, Recommended: len(g.Recommended)}
	if s.efp != nil {
		t.Ranked = len(s.efp.boards.accounts)
		n += s.efp.objects() + len(s.efp.texts) + len(site.UserObjects()) // objects of an unknown address
	} else {
		for list := range g.Tokens {
			n += ListObjects(c, 0, g.countFollows(uint32(list)), g.isPrimary(uint32(list)))
		}
	}
	if s.history != nil {
		n += s.history.objects()
	}
	if s.pages != nil {
		n += s.pages.objects()
	}
	if s.data != nil {
		n += s.data.objects()
	}
	return int64(n + SharedObjects(c, t))
}
