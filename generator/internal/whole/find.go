package whole

import (
	"slices"
	"strings"

	"github.com/followpress/followpress/generator/internal/graph"
	"github.com/followpress/followpress/generator/internal/units"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
)

// This file finds the renderer of a key. It uses the key alone, so it takes no memory, whatever the
// number of objects.

// RenderObject emits the object with a key of a route, if it exists. It may emit other objects of
// its unit.
func (s *Site) RenderObject(route *site.Route, key site.Key, t *units.Scratch, cuts *render.Cuts, emit render.Emitter) {
	unit, only := s.find(route, key)
	if unit.Render == nil {
		return
	}
	only.Cuts = cuts
	t.Only = only
	unit.Render(unit.Unit, t, emit)
}

// find finds the unit of a key of a route, and selects the object.
func (s *Site) find(route *site.Route, key site.Key) (units.Found, render.Selection) {
	only := render.Selection{}
	segments := s.segments(route, key)
	only.Object = site.ListObject(segments[len(segments)-1])
	switch route.ID {
	case routes.Error:
		return s.problems.Find(key), only
	case routes.Index, routes.Explorer, routes.ExplorerWorker, routes.ExplorerScript, routes.ExplorerStyle,
		routes.Top, routes.Start, routes.Network:
		return s.explore.find(key), only
	case routes.Ranks:
		return units.Found{Render: s.renderRanks}, only
	case routes.NotificationsShard, routes.OlderNotifications, routes.ActivityShard, routes.OlderActivity, routes.Recent, routes.Active, routes.Growth:
		return s.history.find(route, segments), only
	case routes.Page, routes.PageStyle, routes.Sitemap, routes.SitemapPart, routes.Robots, routes.Badge, routes.DarkBadge, routes.Card, routes.Embed, routes.PageTop:
		return s.pages.Find(route, key), only
	case routes.DataFile, routes.DataPackage:
		return s.data.Find(route, key), only
	case routes.Reports, routes.ReportPage, routes.ReportData,
		routes.Note, routes.NextNote, routes.NextRoot, routes.NextManifest, routes.NextDelta, routes.KeptIndex, routes.KeptPiece,
		routes.RefreshedDetails, routes.RefreshedBadges, routes.RefreshedCopy:
		return units.Found{}, only // not part of a site
	case routes.Leaderboard:
		return s.findBoard(segments[1], site.DefaultLimit), only
	case routes.LeaderboardLimit:
		return s.findBoard(segments[2], units.Number(strings.TrimPrefix(segments[3], "limit="))), only
	case routes.SearchShard, routes.FollowersShard:
		only.Object, only.Shard = render.ShardObject, units.Number(segments[3])
	case routes.ListHead, routes.FollowersHead:
		only.Object, only.Shard = render.ShardObject, render.HeadShard
	}
	if s.efp != nil {
		return s.efp.find(route, key, segments, &only), only
	}
	switch route.ID {
	case routes.UserBucket:
		return s.addresses.Find(segments[2], s.renderBucket), only
	case routes.UserSearch:
		return s.findUserSearch(segments[1]), only
	case routes.SearchShard:
		return s.findList(segments[2], s.renderShard), only
	}
	return s.findList(segments[1], s.renderList), only
}

// segments returns the segments of a key without the base path, as in the pattern of its route.
func (s *Site) segments(route *site.Route, key site.Key) []string {
	path := string(key)
	if route.UnderAPI() {
		path = strings.TrimPrefix(path, s.Config.BasePath+"/")
	}
	return strings.Split(path, "/")
}

func (s *Site) findBoard(board string, limit int) units.Found {
	n, most := slices.Index(s.Config.Boards(), site.Board(board)), s.Config.LeaderboardMax
	if n < 0 || limit > most {
		return units.Found{}
	}
	return units.Among(len(s.Config.Boards())*most, n*most+limit-1, s.renderBoard)
}

func (s *Site) findList(tokenID string, render units.Render) units.Found {
	list, ok := s.Graph.Lists.Find(tokenID)
	if !ok {
		return units.Found{}
	}
	return units.Found{Render: render, Unit: int(list)}
}

// findUserSearch finds the search of a user, which is the search of the primary list.
func (s *Site) findUserSearch(user string) units.Found {
	account, ok := s.Graph.AccountOfUser(user)
	if !ok {
		return units.Found{}
	}
	if primary := s.Graph.Primary[account]; primary != graph.None {
		return units.Found{Render: s.renderList, Unit: int(primary)}
	}
	unit, ok := slices.BinarySearch(s.listlessNames, user)
	if !ok {
		return units.Found{}
	}
	return units.Found{Render: s.renderEmptySearch, Unit: unit}
}

// find finds objects that only the API efp has, and selects the list.
func (e *efpRenderer) find(route *site.Route, key site.Key, segments []string, only *render.Selection) units.Found {
	last := segments[len(segments)-1]
	switch route.ID {
	case routes.UserBucket:
		return e.addressBuckets.Find(last, e.renderUserBucket)
	case routes.TokenBucket:
		return e.listBuckets.Find(last, e.renderTokenBucket)
	case routes.RankedShard:
		return units.Among(e.boards.Shards(), units.Number(last), e.renderRankedShard)
	case routes.RankedOrder:
		order, shards := slices.Index(site.RankedSorts(), segments[2]), e.boards.OrderShards()
		if order < 0 || units.Number(last) >= shards {
			return units.Found{}
		}
		return units.Among(len(site.RankedSorts())*shards, order*shards+units.Number(last), e.renderRankedOrder)
	case routes.RecommendedShard:
		return units.Among(render.UsualShards(len(e.Recommended)), units.Number(last), e.renderRecommendedShard)
	case routes.Unknown:
		return units.Found{Render: func(_ int, t *units.Scratch, emit render.Emitter) { e.RenderUnknown(&t.Scratch, emit) }}
	case routes.Ranked, routes.RankedCount, routes.Stats, routes.Discover, routes.DiscoverShard:
		return units.Found{Render: e.renderSummaries}
	case routes.OpenAPI, routes.Script, routes.ScriptTypes:
		return e.texts.Find(key)
	case routes.FollowersShard, routes.FollowersHead:
		return e.findUser(segments[2])
	case routes.SearchShard, routes.ListHead:
		return e.findListOf(segments[2], only)
	}
	if segments[0] == "users" {
		return e.findUser(segments[1])
	}
	return e.findListOf(segments[1], only)
}

func (e *efpRenderer) findUser(user string) units.Found {
	account, ok := e.AccountOfUser(user)
	if !ok {
		return units.Found{}
	}
	return units.Found{Render: e.renderAccount, Unit: int(account)}
}

func (e *efpRenderer) findListOf(tokenID string, only *render.Selection) units.Found {
	list, ok := e.Lists.Find(tokenID)
	if !ok {
		return units.Found{}
	}
	only.List, only.Token = list, tokenID
	return units.Found{Render: e.renderAccount, Unit: int(e.Owners[list])}
}
