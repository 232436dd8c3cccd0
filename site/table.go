package site

import (
	"slices"
	"strings"

	"github.com/followpress/followpress/site/routes"
)

// has reports whether a configuration includes a route.
func has(id routes.ID, set routeSet) bool {
	switch {
	case id < routes.UserAccount:
		return true
	case id < routes.Index:
		return set.efp
	case id < routes.Ranks:
		return set.explorer
	case id == routes.Ranks:
		return set.ranks
	case id < routes.Recent:
		return set.history
	case id < routes.Page:
		return set.history && set.explorer
	case id < routes.DataFile:
		return set.pages
	}
	return set.data
}

// Values of Route.Subject.
const (
	subjectBoard = "board"
	subjectList  = "token_id"
	subjectUser  = "user"
)

// A routeSet is the set of features that decide which routes a site has.
type routeSet struct{ efp, explorer, ranks, history, pages, data bool }

// routesOf maps each set to its routes.
var routesOf = func() map[routeSet][]*Route {
	sets := map[routeSet][]*Route{}
	for n := range 64 {
		set := routeSet{n&1 != 0, n&2 != 0, n&4 != 0, n&8 != 0, n&16 != 0, n&32 != 0}
		for _, r := range allRoutes {
			if has(r.ID, set) {
				sets[set] = append(sets[set], r)
			}
		}
	}
	return sets
}()

// allRoutes is the table of routes. has decides which of them a site includes.
var allRoutes = func() []*Route {
	search := []Param{ParamLimit, ParamOffset, paramTerm}
	page := []Param{paramInclude, ParamLimit, ParamOffset, ParamSort, ParamTags}
	part := []Param{ParamLimit, ParamOffset}
	events := []Param{ParamInterval, ParamLimit, ParamOffset, paramOpcode, ParamStart, ParamTag}
	table := []*Route{
		{ID: routes.Leaderboard, Pattern: "{base}/leaderboard/{board}", Params: []Param{ParamLimit}, CacheControl: cacheBoard,
			Summary: "accounts with the most followers, or that follow the most"},
		{ID: routes.Records, Pattern: "{base}/lists/{token_id}/records", Params: []Param{paramIncludeTags}, CacheControl: cacheData,
			Summary: "records of a list, in the list's order"},
		{ID: routes.Details, Pattern: "{base}/lists/{token_id}/details", Params: []Param{ParamCache}, CacheControl: cacheData,
			Summary: "address, profile, ranks and primary list of a list's account"},
		{ID: routes.Badges, Pattern: "{base}/lists/{token_id}/badges", Params: []Param{ParamCache}, CacheControl: cacheData,
			Summary: "event badges of a list's account"},
		{ID: routes.ListSearch, Pattern: "{base}/lists/{token_id}/searchFollowing", Params: search, Most: searchMax, CacheControl: cacheData,
			Summary: "search within the accounts that a list follows"},
		{ID: routes.UserSearch, Pattern: "{base}/users/{user}/searchFollowing", Params: search, Most: searchMax, CacheControl: cacheData,
			Summary: "search within the accounts that a user follows"},
		{ID: routes.LeaderboardLimit, Pattern: "_variants/leaderboard/{board}/limit={limit}", CacheControl: cacheBoard,
			Summary: "a leaderboard with another limit"},
		{ID: routes.SearchShard, Pattern: "_search/lists/{token_id}/{number}", CacheControl: cacheData,
			Summary: "a search shard of a list"},
		{ID: routes.UserBucket, Pattern: "_search/users/{hash}", CacheControl: cacheData,
			Summary: "the lists of the users of a bucket"},
		{ID: routes.Error, Pattern: "_errors/{problem}", Fixed: true, ContentType: contentProblem, CacheControl: cacheError,
			Summary: "the body of an error answer"},
		{ID: routes.Manifest, Pattern: "_manifest/{hash}", ContentType: contentGzip, CacheControl: cacheCheck,
			Summary: "a shard or an index of the manifest"},
		{ID: routes.ManifestDelta, Pattern: "_manifest/delta/{hash}", ContentType: contentGzip, CacheControl: cacheCheck,
			Summary: "changes of shards of the manifest since they were put"},
		{ID: routes.Root, Pattern: "_site", CacheControl: cacheCheck,
			Summary: "the root of the site"},
		{ID: routes.Note, Pattern: "_site.note", ContentType: contentText, CacheControl: cacheCheck, Summary: "the signed note of the site"},
		{ID: routes.NextNote, Pattern: "_next/_site.note", ContentType: contentText, CacheControl: cacheCheck,
			Summary: "during a publish, the signed notes of the next site and of interrupted publishes"},
		{ID: routes.NextRoot, Pattern: "_next/{number}/_site", CacheControl: cacheCheck, Summary: "during a publish, the root of the next site"},
		{ID: routes.NextManifest, Pattern: "_next/{number}/_manifest/{hash}", ContentType: contentGzip, CacheControl: cacheCheck,
			Summary: "during a publish, a shard or an index of the next manifest"},
		{ID: routes.NextDelta, Pattern: "_next/{number}/_manifest/delta/{hash}", ContentType: contentGzip, CacheControl: cacheCheck,
			Summary: "during a publish, changes of shards in the next manifest"},
		{ID: routes.KeptIndex, Pattern: "_snapshot/index/{sha256}", CacheControl: cacheCheck, Summary: "the list of pieces with the inputs of a site"},
		{ID: routes.KeptPiece, Pattern: "_snapshot/{sha256}", ContentType: contentZstd, CacheControl: cacheForever,
			Summary: "a piece of the inputs of sites"},
		{ID: routes.RefreshedDetails, Pattern: "_refresh/details/{token_id}", CacheControl: cacheCheck, Summary: "a refresh of a list's details"},
		{ID: routes.RefreshedBadges, Pattern: "_refresh/badges/{token_id}", CacheControl: cacheCheck, Summary: "a refresh of a list's badges"},
		{ID: routes.RefreshedCopy, Pattern: "_refresh/copies/{sha256}", CacheControl: cacheCheck,
			Summary: "a refresh of another object with the same data"},
		{ID: routes.UserAccount, Pattern: "{base}/users/{user}/account", Summary: "address and profile of a user"},
		{ID: routes.ListAccount, Pattern: "{base}/lists/{token_id}/account", Summary: "address and profile of a list's account, and its primary list"},
		{ID: routes.UserDetails, Pattern: "{base}/users/{user}/details", Params: []Param{ParamCache},
			Summary: "address, profile, ranks and primary list of a user"},
		{ID: routes.UserBadges, Pattern: "{base}/users/{user}/badges", Params: []Param{ParamCache}, Summary: "event badges of a user"},
		{ID: routes.UserStats, Pattern: "{base}/users/{user}/stats", Summary: "numbers of followers and followed accounts of a user"},
		{ID: routes.ListStats, Pattern: "{base}/lists/{token_id}/stats", Summary: "numbers of followers and followed accounts of a list's account"},
		{ID: routes.UserLists, Pattern: "{base}/users/{user}/lists", Summary: "the lists of a user"},
		{ID: routes.UserPrimaryList, Pattern: "{base}/users/{user}/primary-list", Computed: true, Summary: "the primary list of a user"},
		{ID: routes.UserENS, Pattern: "{base}/users/{user}/ens", Computed: true, Summary: "the name of a user, with its texts"},
		{ID: routes.UserSimpleProfile, Pattern: "{base}/users/{user}/simple-profile", Computed: true, Summary: "name, picture and counts of a user"},
		{ID: routes.UserRecords, Pattern: "{base}/users/{user}/list-records", Computed: true, Summary: "records of a user's primary list"},
		{ID: routes.UserFollowing, Pattern: "{base}/users/{user}/following", Params: page, Summary: "accounts that a user follows"},
		{ID: routes.ListFollowing, Pattern: "{base}/lists/{token_id}/following", Params: page, Summary: "accounts that a list follows"},
		{ID: routes.UserAllFollowing, Pattern: "{base}/users/{user}/allFollowing", Params: page, Computed: true,
			Summary: "accounts on a user's list, blocked and muted accounts too"},
		{ID: routes.ListAllFollowing, Pattern: "{base}/lists/{token_id}/allFollowing", Params: page, Computed: true,
			Summary: "accounts on a list, blocked and muted accounts too"},
		{ID: routes.UserFollowers, Pattern: "{base}/users/{user}/followers", Params: page, Summary: "followers of a user"},
		{ID: routes.ListFollowers, Pattern: "{base}/lists/{token_id}/followers", Params: page, Summary: "followers of a list's account"},
		{ID: routes.UserAllFollowers, Pattern: "{base}/users/{user}/allFollowers", Params: page, Computed: true,
			Summary: "accounts that follow, block or mute a user"},
		{ID: routes.ListAllFollowers, Pattern: "{base}/lists/{token_id}/allFollowers", Params: page, Computed: true,
			Summary: "accounts that follow, block or mute a list's account"},
		{ID: routes.UserLatestFollowers, Pattern: "{base}/users/{user}/latestFollowers", Params: part, Computed: true,
			Summary: "newest followers of a user"},
		{ID: routes.ListLatestFollowers, Pattern: "{base}/lists/{token_id}/latestFollowers", Params: part, Computed: true,
			Summary: "newest followers of a list's account"},
		{ID: routes.UserSearchFollowers, Pattern: "{base}/users/{user}/searchFollowers", Params: search, Most: searchMax, Computed: true,
			Summary: "search within the followers of a user"},
		{ID: routes.ListSearchFollowers, Pattern: "{base}/lists/{token_id}/searchFollowers", Params: search, Most: searchMax, Computed: true,
			Summary: "search within the followers of a list's account"},
		{ID: routes.UserFollowingAddresses, Pattern: "{base}/users/{user}/allFollowingAddresses", Computed: true,
			Summary: "addresses that a user's list holds"},
		{ID: routes.ListFollowingAddresses, Pattern: "{base}/lists/{token_id}/allFollowingAddresses", Computed: true,
			Summary: "addresses that a list holds"},
		{ID: routes.ExportState, Pattern: "{base}/exportState/{token_id}", Computed: true, Summary: "all follows of a list"},
		{ID: routes.UserTags, Pattern: "{base}/users/{user}/tags", Summary: "the tags that a user gives"},
		{ID: routes.ListTags, Pattern: "{base}/lists/{token_id}/tags", Summary: "the tags that a list gives"},
		{ID: routes.UserTaggedAs, Pattern: "{base}/users/{user}/taggedAs", Summary: "the tags that others give a user"},
		{ID: routes.ListTaggedAs, Pattern: "{base}/lists/{token_id}/taggedAs", Summary: "the tags that others give a list's account"},
		{ID: routes.UserFollowerState, Pattern: "{base}/users/{user}/{other}/followerState", Computed: true,
			Summary: "whether another account follows, blocks or mutes a user"},
		{ID: routes.ListFollowerState, Pattern: "{base}/lists/{token_id}/{other}/followerState", Computed: true,
			Summary: "whether another account follows, blocks or mutes a list's account"},
		{ID: routes.UserButtonState, Pattern: "{base}/users/{user}/{other}/buttonState", Computed: true,
			Summary: "whether a user follows, blocks or mutes another account"},
		{ID: routes.ListButtonState, Pattern: "{base}/lists/{token_id}/{other}/buttonState", Computed: true,
			Summary: "whether a list follows, blocks or mutes another account"},
		{ID: routes.ButtonStateBatch, Pattern: "{base}/lists/{token_id}/buttonStateBatch", Post: true, Computed: true, CacheControl: cacheNever,
			Summary: "whether a list follows, blocks or mutes each of many accounts"},
		{ID: routes.CommonFollowers, Pattern: "{base}/users/{user}/commonFollowers", Params: []Param{ParamLeader, ParamLimit, ParamOffset},
			Default: pageMax, Computed: true, Summary: "accounts that a user follows and that follow another account"},
		{ID: routes.Ranked, Pattern: "{base}/leaderboard/ranked", Params: []Param{ParamDirection, ParamLimit, ParamOffset, ParamSort}, CacheControl: cacheBoard,
			Default: RankedLimit, Summary: "accounts with all counts and ranks, ordered by one rank"},
		{ID: routes.RankedSearch, Pattern: "{base}/leaderboard/search", Params: search, CacheControl: cacheBoard,
			Default: pageMax, Computed: true, Summary: "search within the ranked accounts"},
		{ID: routes.RankedCount, Pattern: "{base}/leaderboard/count", CacheControl: cacheBoard, Summary: "number of ranked accounts"},
		{ID: routes.Stats, Pattern: "{base}/stats", CacheControl: cacheBoard, Summary: "sizes of the graph"},
		{ID: routes.UserRecommended, Pattern: "{base}/users/{user}/recommended", Params: part, Computed: true,
			Summary: "recommended accounts that a user's list does not hold"},
		{ID: routes.ListRecommended, Pattern: "{base}/lists/{token_id}/recommended", Params: part, Computed: true,
			Summary: "recommended accounts that a list does not hold"},
		{ID: routes.UserRecommendedDetails, Pattern: "{base}/users/{user}/recommended/details", Params: part, Computed: true,
			Summary: "recommended accounts for a user, with counts and ranks"},
		{ID: routes.ListRecommendedDetails, Pattern: "{base}/lists/{token_id}/recommended/details", Params: part, Computed: true,
			Summary: "recommended accounts for a list, with counts and ranks"},
		{ID: routes.Discover, Pattern: "{base}/discover", Params: part, CacheControl: cacheBoard, Summary: "recently followed accounts"},
		{ID: routes.UserQR, Pattern: "{base}/users/{user}/qr", ContentType: contentSVG, Computed: true,
			Summary: "a QR code of a user's page"},
		{ID: routes.ListQR, Pattern: "{base}/lists/{token_id}/qr", ContentType: contentSVG, Computed: true,
			Summary: "a QR code of the page of a list's account"},
		{ID: routes.RankedAll, Pattern: "{base}/leaderboard/all", Params: []Param{ParamDirection, ParamLimit, ParamOffset, ParamSort}, CacheControl: cacheBoard,
			Default: RankedLimit, Computed: true, Summary: "the same answer as leaderboard/ranked"},
		{ID: routes.Relationship, Pattern: "{base}/users/{user}/{other}/relationship", Computed: true,
			Summary: "whether two accounts follow, block or mute each other"},
		{ID: routes.Relationships, Pattern: "{base}/users/{user}/relationships", Params: []Param{ParamDirection, ParamLimit, ParamOffset, ParamTag},
			Default: relationshipsLimit, Computed: true, Summary: "accounts that a user's list tags, or whose lists tag the user"},
		{ID: routes.UserMutuals, Pattern: "{base}/users/{user}/mutuals", Params: page, Computed: true,
			Summary: "followers that a user follows back"},
		{ID: routes.UserAvatar, Pattern: "{base}/users/{user}/ens/avatar", Computed: true, Redirect: true,
			Summary: "redirects to the picture of a user"},
		{ID: routes.TokenBucket, Pattern: "_search/tokens/{hash}", Summary: "the accounts of the lists of a bucket"},
		{ID: routes.ListHead, Pattern: "_search/lists/{token_id}/head", Summary: "the first entries of a long list in each order"},
		{ID: routes.FollowersShard, Pattern: "_search/followers/{address}/{number}", Summary: "a shard of the followers of an account"},
		{ID: routes.FollowersHead, Pattern: "_search/followers/{address}/head", Summary: "the first followers of a large account in each order"},
		{ID: routes.RankedShard, Pattern: "_search/ranked/{number}", CacheControl: cacheBoard, Summary: "a shard of the ranked accounts"},
		{ID: routes.RankedOrder, Pattern: "_search/ranked/{sort}/{number}", CacheControl: cacheBoard, Summary: "a shard of another order of the ranked accounts"},
		{ID: routes.RecommendedShard, Pattern: "_search/recommended/{number}", CacheControl: cacheBoard, Summary: "a shard of the recommended accounts"},
		{ID: routes.DiscoverShard, Pattern: "_search/discover", CacheControl: cacheBoard, Summary: "all entries of discover"},
		{ID: routes.Unknown, Pattern: "_unknown/{object}", Fixed: true, Summary: "the answer for an address that the graph does not know"},
		{ID: routes.OpenAPI, Pattern: "openapi.json", Fixed: true, Summary: "the description of the API (OpenAPI 3.1)"},
		{ID: routes.Script, Pattern: "_client/{script}", Fixed: true, ContentType: contentScript, Summary: "the client library for browsers"},
		{ID: routes.ScriptTypes, Pattern: "_client/{types}", Fixed: true, ContentType: contentText, Summary: "the types of the client library"},
		{ID: routes.Index, Pattern: "index.html", Fixed: true, ContentType: contentHTML, CacheControl: cacheCheck, Summary: "leads a browser to the explorer"},
		{ID: routes.Explorer, Pattern: "_explore/index.html", Fixed: true, ContentType: contentHTML, CacheControl: cacheCheck, Summary: "the explorer, a page for people"},
		{ID: routes.ExplorerWorker, Pattern: "_explore/sw.js", Fixed: true, ContentType: contentScript, CacheControl: cacheCheck,
			Summary: "the explorer's service worker"},
		{ID: routes.ExplorerScript, Pattern: "_explore/{asset}.js", Fixed: true, ContentType: contentScript, CacheControl: cacheForever, Summary: "a script of the explorer"},
		{ID: routes.ExplorerStyle, Pattern: "_explore/{asset}.css", Fixed: true, ContentType: contentStyle, CacheControl: cacheForever, Summary: "a style sheet of the explorer"},
		{ID: routes.Top, Pattern: "_explore/top", CacheControl: cacheBoard, Summary: "the accounts with the most followers, for search while typing"},
		{ID: routes.Start, Pattern: "_explore/start", CacheControl: cacheBoard, Summary: "the first of these accounts, for the start page"},
		{ID: routes.Network, Pattern: "_explore/network", CacheControl: cacheBoard, Summary: "sizes and distributions of the whole graph"},
		{ID: routes.Reports, Pattern: "_reports/index", CacheControl: cacheCheck, Summary: "the list of the published reports"},
		{ID: routes.ReportPage, Pattern: "_reports/{date}.html", ContentType: contentHTML, CacheControl: cacheCheck, Summary: "a report, as a page"},
		{ID: routes.ReportData, Pattern: "_reports/{date}.json", CacheControl: cacheCheck, Summary: "a report, as data"},
		{ID: routes.Ranks, Pattern: "_ranks", ContentType: contentBytes, CacheControl: cacheCheck,
			Summary: "the counts behind held ranks"},
		{ID: routes.UserNotifications, Pattern: "{base}/users/{user}/notifications", Params: events, Computed: true,
			Summary: "recent operations on a user"},
		{ID: routes.NotificationsFeed, Pattern: "{base}/users/{user}/notifications.atom", Params: events, Default: feedLimit, Computed: true,
			ContentType: contentAtom, Summary: "recent operations on a user, as a feed"},
		{ID: routes.ListActivity, Pattern: "{base}/lists/{token_id}/activity", Params: events, Computed: true,
			Summary: "recent operations of a list"},
		{ID: routes.NotificationsShard, Pattern: "_search/notifications/{address}", Summary: "the newest operations about an account"},
		{ID: routes.OlderNotifications, Pattern: "_search/notifications/older/{address}/{number}", Summary: "a shard of older operations about an account"},
		{ID: routes.ActivityShard, Pattern: "_search/activity/{token_id}", Summary: "the newest operations of a list"},
		{ID: routes.OlderActivity, Pattern: "_search/activity/older/{token_id}/{number}", Summary: "a shard of older operations of a list"},
		{ID: routes.Recent, Pattern: "_explore/recent", Summary: "the newest operations of the whole graph"},
		{ID: routes.Active, Pattern: "_explore/active", Summary: "the most recently active primary lists"},
		{ID: routes.Growth, Pattern: "_explore/growth", CacheControl: cacheBoard, Summary: "new and ended follows of each day"},
		{ID: routes.Page, Pattern: "u/{page}/index.html", ContentType: contentHTML, Summary: "the page of an account, without JavaScript"},
		{ID: routes.PageStyle, Pattern: "u/_page.css", Fixed: true, ContentType: contentStyle, Summary: "the style sheet of the pages of accounts"},
		{ID: routes.Sitemap, Pattern: "sitemap.xml", ContentType: contentXML, Summary: "the sitemaps of all pages of accounts"},
		{ID: routes.SitemapPart, Pattern: "u/_sitemap-{hash}.xml", ContentType: contentXML, Summary: "a sitemap of pages of accounts"},
		{ID: routes.Robots, Pattern: "robots.txt", Fixed: true, ContentType: contentText, Summary: "robots.txt, which names the sitemaps"},
		{ID: routes.Badge, Pattern: "_badge/{page}.svg", ContentType: contentSVG, Summary: "a badge with the follower count of an account"},
		{ID: routes.DarkBadge, Pattern: "_badge/dark/{page}.svg", ContentType: contentSVG, Summary: "the same badge for dark pages"},
		{ID: routes.Embed, Pattern: "embed.js", Fixed: true, ContentType: contentScript, Summary: "the element <follow-card> for any page"},
		{ID: routes.Card, Pattern: "_card/{page}.png", ContentType: contentPNG, Summary: "a picture of an account, for previews of its page"},
		{ID: routes.PageTop, Pattern: "u/_top.html", ContentType: contentHTML, CacheControl: cacheBoard, Summary: "links to the most followed accounts, without JavaScript"},
		{ID: routes.DataFile, Pattern: "_data/{data}.parquet", ContentType: contentParquet, Ranges: true, Summary: "a table of the graph as a Parquet file, or a part of one"},
		{ID: routes.DataPackage, Pattern: "_data/datapackage.json", Summary: "the files of the graph's tables, their columns and digests"},
	}
	for i, r := range table {
		if r.ID != routes.ID(i) {
			panic("site/table.go: lacks a row before " + r.Pattern + ", by the order of site/routes/routes.go")
		}
		if r.ContentType == "" {
			r.ContentType = contentJSON
		}
		if r.CacheControl == "" {
			r.CacheControl = cacheData
		}
		slices.Sort(r.Params)
		pattern, underAPI := strings.CutPrefix(r.Pattern, "{base}/")
		r.segments, r.underAPI = strings.Split(pattern, "/"), underAPI
		for _, text := range r.segments {
			r.cut = append(r.cut, cutVariable(text))
		}
		for _, variable := range []string{subjectBoard, subjectList, subjectUser} {
			if underAPI && slices.Contains(r.segments, "{"+variable+"}") {
				r.Subject = variable
			}
		}
	}
	return table
}()
