// Package whole renders the site of a whole graph, unit by unit or a single object.
package whole

import (
	"context"
	"slices"

	"github.com/followpress/followpress/generator/internal/graph"
	"github.com/followpress/followpress/generator/internal/pages"
	"github.com/followpress/followpress/generator/internal/tables"
	"github.com/followpress/followpress/generator/internal/units"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/ranks"
	"github.com/followpress/followpress/site/rules"
)

// A Site renders the objects of a site from a graph. It is immutable: any part of the site can be
// rendered at any time, from any goroutine, with the same result.
type Site struct {
	Graph  *graph.Graph
	ranks  *graph.Ranks
	Config site.Config
	views  render.Views

	problems units.Texts

	efp     *efpRenderer     // nil unless the API is efp
	explore *exploreRenderer // nil without the explorer
	history *historyRenderer // nil if the site has no operations
	pages   *pages.Renderer  // nil without pages
	data    *tables.Renderer // nil without the graph as files

	BucketDigits  int
	TokenDigits   int             // digits of buckets of lists; 0 unless the API is efp
	addresses     units.Partition // accounts with a primary list by bucket
	names         units.Partition // indexes of Graph.Names by bucket
	listlessNames []string        // names of accounts without a primary list
	Kinds         []units.Kind
}

// NewSite prepares to render the site of a graph. config must have its defaults set.
func NewSite(ctx context.Context, g *graph.Graph, r *graph.Ranks, config site.Config, workers int) (*Site, error) {
	s := &Site{Graph: g, ranks: r, Config: config, views: render.NewViews(config, g.Events), problems: render.ProblemTexts(config)}
	boards := units.Kind{Units: len(config.Boards()) * config.LeaderboardMax, Render: s.renderBoard}
	if config.EFP() {
		e, err := newEFPRenderer(ctx, g, r, config, workers)
		if err != nil {
			return nil, err
		}
		s.efp, s.BucketDigits, s.TokenDigits = e, e.addressBuckets.Digits, e.listBuckets.Digits
		s.Kinds = append(append([]units.Kind{s.problems.Kind()}, e.kinds()...), boards)
		if config.HistoryWindow > 0 {
			s.history = newHistoryRenderer(e)
			s.Kinds = append(s.Kinds, s.history.kinds()...)
		}
		if config.Pages {
			if s.pages, err = pages.NewRenderer(ctx, e.Relations, r, config, workers); err != nil {
				return nil, err
			}
			s.Kinds = append(s.Kinds, s.pages.Kinds()...)
		}
		s.addCommon()
		return s, nil
	}
	for _, n := range g.Names {
		if g.Primary[n.Account] == graph.None {
			s.listlessNames = append(s.listlessNames, n.Name)
		}
	}
	if err := s.fillBuckets(ctx, workers); err != nil {
		return nil, err
	}
	s.Kinds = []units.Kind{
		s.problems.Kind(),
		{Units: len(g.Tokens), Records: func(list int) int { return g.Length(uint32(list)) }, Render: s.renderList},
		{Units: len(s.listlessNames), Render: s.renderEmptySearch},
		{Units: len(s.addresses.Names), Render: s.renderBucket},
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
		s.explore = &exploreRenderer{graph: s.Graph, ranks: s.ranks, texts: render.ExplorerTexts(s.Config)}
		s.Kinds = append(s.explore.kinds(), s.Kinds...)
	}
	if s.Config.RanksEvery > 0 {
		s.Kinds = append(s.Kinds, units.Kind{Units: 1, Render: s.renderRanks})
	}
	if s.Config.Data {
		s.data = tables.New(s.Graph, s.ranks, s.Config)
		s.Kinds = append(slices.Insert(s.Kinds, 0, s.data.Kind()), s.data.PackageKind())
	}
}

func (s *Site) renderRanks(_ int, _ *units.Scratch, emit render.Emitter) {
	body := s.ranks.Held
	if body == nil {
		body = ranks.Encode(s.Graph.AsOf, s.ranks.Counts(s.Graph.Accounts))
	}
	render.EmitText(emit, body, site.RanksKey)
}

// fillBuckets sorts the users into buckets. Users are addresses with a primary list, and names.
func (s *Site) fillBuckets(ctx context.Context, workers int) (err error) {
	g := s.Graph
	var accounts []uint32
	for account, primary := range g.Primary {
		if primary != graph.None {
			accounts = append(accounts, uint32(account))
		}
	}
	s.BucketDigits = s.Config.BucketDigits(len(accounts) + len(g.Names))
	s.addresses, err = units.NewPartition(ctx, workers, s.BucketDigits, accounts, func(account uint32) string { return g.Accounts[account].String() })
	if err != nil {
		return err
	}
	s.names, err = units.NewPartition(ctx, workers, s.BucketDigits, graph.NumbersBelow(len(g.Names)), func(name uint32) string { return g.Names[name].Name })
	return err
}

// usersIn returns the users of a bucket, sorted.
func (s *Site) usersIn(bucket int) (users []string) {
	for _, account := range s.addresses.In(bucket) {
		users = append(users, s.Graph.Accounts[account].String())
	}
	for _, name := range s.names.In(bucket) {
		users = append(users, s.Graph.Names[name].Name)
	}
	slices.Sort(users)
	return users
}

// tokenOf returns the token ID of the primary list of a user, or "".
func (s *Site) tokenOf(user string) string {
	if account, ok := s.Graph.AccountOfUser(user); ok && s.Graph.Primary[account] != graph.None {
		return s.Graph.Tokens[s.Graph.Primary[account]]
	}
	return ""
}

// view returns the view of a list, without followers.
func (s *Site) view(t *units.Scratch, list uint32) *render.View {
	t.View.SetAccount(s.Graph, s.ranks, nil, s.Graph.Owners[list], nil)
	t.View.SetList(list)
	return &t.View.View
}

// renderList emits the objects of a list. A primary list includes those of its account.
func (s *Site) renderList(unit int, t *units.Scratch, emit render.Emitter) {
	s.views.RenderList(&t.Scratch, s.view(t, uint32(unit)), emit)
}

// renderShard emits the selected search shard of a list.
func (s *Site) renderShard(unit int, t *units.Scratch, emit render.Emitter) {
	v := s.view(t, uint32(unit))
	c := t.Only.Cuts.Get(render.CutTable{Number: uint32(unit)}, v.Records.Len(), func(i int) (isRow, isFollow bool) {
		isFollow = v.Records.State(i) == rules.Follow
		return isFollow, isFollow
	})
	n := t.Only.Shard
	if !t.Only.WantsOneOf(render.SearchShards(c.Rows)) {
		return
	}
	t.View.List.All = t.View.List.All.Part(uint64(c.Starts[n]), uint64(c.Starts[n+1]))
	render.EmitShard(&t.Scratch, v, c.Rows, n, emit)
}

func (s *Site) renderEmptySearch(unit int, _ *units.Scratch, emit render.Emitter) {
	render.EmitText(emit, site.EmptySearch, s.Config.UserKey(s.listlessNames[unit]))
}

func (s *Site) renderBucket(unit int, _ *units.Scratch, emit render.Emitter) {
	bucket, users := s.addresses.Names[unit], s.usersIn(unit)
	emit(render.UserBytes*len(users), func(b []byte) []byte {
		return render.AppendUserBucket(b, bucket, users, s.tokenOf)
	}, site.UserBucketKey(bucket))
}

func (s *Site) renderBoard(unit int, t *units.Scratch, emit render.Emitter) {
	board, limit := s.Config.Boards()[unit/s.Config.LeaderboardMax], 1+unit%s.Config.LeaderboardMax
	m := render.BoardMeasure(board)
	first := s.ranks.First[m][:min(limit, len(s.ranks.First[m]))]
	t.Leaders = t.Leaders[:0]
	for _, account := range first {
		t.Leaders = append(t.Leaders, render.Leader{Address: s.Graph.Accounts[account], Count: s.ranks.Count[m][account]})
	}
	s.views.EmitBoard(&t.Scratch, board, limit, t.Leaders, emit)
}

// Objects returns the number of objects of the site, without manifest and root.
func (s *Site) Objects() int64 {
	g, c := s.Graph, s.Config
	n := len(c.Problems()) + len(g.Names)*render.NameObjects(c)
	if s.explore != nil {
		n += len(s.explore.texts)
	}
	t := render.Tables{BucketDigits: s.BucketDigits, TokenDigits: s.TokenDigits, Recommended: len(g.Recommended)}
	if s.efp != nil {
		t.Ranked = len(s.efp.boards.Accounts)
		n += s.efp.objects() + len(s.efp.texts) + len(site.UserObjects()) // objects of an unknown address
	} else {
		for list := range g.Tokens {
			n += render.ListObjects(c, 0, g.CountFollows(uint32(list)), g.IsPrimary(uint32(list)))
		}
	}
	if s.history != nil {
		n += s.history.objects()
	}
	if s.pages != nil {
		n += s.pages.Objects()
	}
	if s.data != nil {
		n += s.data.Objects()
	}
	return int64(n + render.SharedObjects(c, t))
}
