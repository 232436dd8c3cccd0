package render

import (
	"slices"
	"strings"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
)

// This file finds the renderer of a key. It uses the key alone, so it takes no memory, whatever the
// number of objects.

// RenderObject emits the object with a key of a route, if it exists. It may emit other objects of
// its unit.
func (s *Site) RenderObject(route *site.Route, key site.Key, t *Scratch, cuts *Cuts, emit Emitter) {
	unit, only := s.find(route, key)
	if unit.render == nil {
		return
	}
	only.cuts = cuts
	t.only = only
	unit.render(unit.unit, t, emit)
}

// find finds the unit of a key of a route, and selects the object.
func (s *Site) find(route *site.Route, key site.Key) (foundUnit, selection) {
	only := selection{list: None}
	segments := s.segments(route, key)
	only.object = site.ListObject(segments[len(segments)-1])
	switch route.ID {
	case routes.Error:
		return s.problems.find(key), only
	case routes.Index, routes.Explorer, routes.ExplorerWorker, routes.ExplorerScript, routes.ExplorerStyle,
		routes.Top, routes.Start, routes.Network:
		return s.explore.find(key), only
	case routes.Ranks:
		return foundUnit{s.renderRanks, 0}, only
	case routes.NotificationsShard, routes.OlderNotifications, routes.ActivityShard, routes.OlderActivity, routes.Recent, routes.Active, routes.Growth:
		return s.history.find(route, segments), only
	case routes.Page, routes.PageStyle, routes.Sitemap, routes.SitemapPart, routes.Robots, routes.Badge, routes.DarkBadge, routes.Card, routes.Embed, routes.PageTop:
		return s.pages.find(route, key), only
	case routes.DataFile, routes.DataPackage:
		return s.data.find(route, key), only
	case routes.Reports, routes.ReportPage, routes.ReportData,
		routes.Note, routes.NextNote, routes.NextRoot, routes.NextManifest, routes.NextDelta, routes.KeptIndex, routes.KeptPiece,
		routes.RefreshedDetails, routes.RefreshedBadges, routes.RefreshedCopy:
		return foundUnit{}, only // not part of a site
	case routes.Leaderboard:
		return s.findBoard(segments[1], site.DefaultLimit), only
	case routes.LeaderboardLimit:
		return s.findBoard(segments[2], number(strings.TrimPrefix(segments[3], "limit="))), only
	case routes.SearchShard, routes.FollowersShard:
		only.object, only.shard = shardObject, number(segments[3])
	case routes.ListHead, routes.FollowersHead:
		only.object, only.shard = shardObject, headShard
	}
	if s.efp != nil {
		return s.efp.find(route, key, segments, &only), only
	}
	switch route.ID {
	case routes.UserBucket:
		return s.addresses.find(segments[2], s.renderBucket), only
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

func (s *Site) findBoard(board string, limit int) foundUnit {
	n, most := slices.Index(s.Config.Boards(), site.Board(board)), s.Config.LeaderboardMax
	if n < 0 || limit > most {
		return foundUnit{}
	}
	return among(len(s.Config.Boards())*most, n*most+limit-1, s.renderBoard)
}

func (s *Site) findList(tokenID string, render unitRenderer) foundUnit {
	list, ok := s.Graph.Lists.Find(tokenID)
	if !ok {
		return foundUnit{}
	}
	return foundUnit{render, int(list)}
}

// findUserSearch finds the search of a user, which is the search of the primary list.
func (s *Site) findUserSearch(user string) foundUnit {
	account, ok := s.Graph.accountOfUser(user)
	if !ok {
		return foundUnit{}
	}
	if primary := s.Graph.Primary[account]; primary != None {
		return foundUnit{s.renderList, int(primary)}
	}
	unit, ok := slices.BinarySearch(s.listlessNames, user)
	if !ok {
		return foundUnit{}
	}
	return foundUnit{s.renderEmptySearch, unit}
}

// find finds objects that only the API efp has, and selects the list.
func (e *efpRenderer) find(route *site.Route, key site.Key, segments []string, only *selection) foundUnit {
	last := segments[len(segments)-1]
	switch route.ID {
	case routes.UserBucket:
		return e.addressBuckets.find(last, e.renderUserBucket)
	case routes.TokenBucket:
		return e.listBuckets.find(last, e.renderTokenBucket)
	case routes.RankedShard:
		return among(e.boards.shards(), number(last), e.renderRankedShard)
	case routes.RankedOrder:
		order, shards := slices.Index(site.RankedSorts(), segments[2]), e.boards.orderShards()
		if order < 0 || number(last) >= shards {
			return foundUnit{}
		}
		return among(len(site.RankedSorts())*shards, order*shards+number(last), e.renderRankedOrder)
	case routes.RecommendedShard:
		return among(shardCount(len(e.Recommended)), number(last), e.renderRecommendedShard)
	case routes.Unknown:
		return foundUnit{func(_ int, t *Scratch, emit Emitter) { e.renderUnknown(t, emit) }, 0}
	case routes.Ranked, routes.RankedCount, routes.Stats, routes.Discover, routes.DiscoverShard:
		return foundUnit{e.renderSummaries, 0}
	case routes.OpenAPI, routes.Script, routes.ScriptTypes:
		return e.texts.find(key)
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

func (e *efpRenderer) findUser(user string) foundUnit {
	account, ok := e.accountOfUser(user)
	if !ok {
		return foundUnit{}
	}
	return foundUnit{e.renderAccount, int(account)}
}

func (e *efpRenderer) findListOf(tokenID string, only *selection) foundUnit {
	list, ok := e.Lists.Find(tokenID)
	if !ok {
		return foundUnit{}
	}
	only.list, only.token = list, tokenID
	return foundUnit{e.renderAccount, int(e.Owners[list])}
}
