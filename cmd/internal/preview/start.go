package preview

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/templates"
)

// withStartPage adds a page for people at / and the description of the API.
func withStartPage(api *server.Handler, examples server.Examples, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			api.ServeHTTP(w, r)
			return
		}
		root := api.Root()
		var page bytes.Buffer
		var err error
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			err = templates.StartPage{Root: *root, Groups: linkGroups(root, examples)}.Render(&page)
		case "/openapi.json":
			w.Header().Set("Content-Type", "application/json")
			var body []byte
			body, err = templates.OpenAPI(root)
			page.Write(body)
		default:
			api.ServeHTTP(w, r)
			return
		}
		if err != nil {
			log.Error("page failed", "path", r.URL.Path, "error", err)
			http.Error(w, "this page cannot be shown", http.StatusInternalServerError)
			return
		}
		_, _ = page.WriteTo(w) // the client may be gone
	})
}

// linkGroups lists the routes with links that this site answers.
func linkGroups(root *site.Root, x server.Examples) []templates.LinkGroup {
	c := root.Config
	links := map[site.RouteID][]string{}
	add := func(id site.RouteID, key site.Key, queries ...string) {
		path := (&url.URL{Path: "/" + string(key)}).EscapedPath()
		links[id] = append(links[id], path)
		for _, query := range queries {
			links[id] = append(links[id], path+"?"+query)
		}
	}
	for _, board := range c.Boards() {
		add(site.RouteLeaderboard, c.LeaderboardKey(board), "limit=3")
		add(site.RouteLeaderboardLimit, site.LeaderboardLimitKey(board, 3))
	}
	if x.TokenID != "" {
		add(site.RouteRecords, c.ListKey(x.TokenID, site.Records), "includeTags=false")
		add(site.RouteDetails, c.ListKey(x.TokenID, site.Details), "cache=fresh")
		add(site.RouteBadges, c.ListKey(x.TokenID, site.Badges))
		searches := []string{"limit=3&offset=3"}
		if x.Term != "" {
			searches = append(searches, "term="+url.QueryEscape(x.Term))
		}
		add(site.RouteListSearch, c.ListKey(x.TokenID, site.SearchFollowing), searches...)
		add(site.RouteUserSearch, c.UserKey(x.Address))
		if x.Name != "" {
			add(site.RouteUserSearch, c.UserKey(x.Name), searches...)
		}
		add(site.RouteUserBucket, site.UserBucketKey(site.UserBucket(x.Address, root.BucketDigits)))
		if x.Sharded {
			add(site.RouteSearchShard, site.SearchShardKey(x.TokenID, 0))
		}
	}
	add(site.RouteError, site.NoSuchList.Key())
	add(site.RouteManifest, site.ManifestKey(site.HashPrefixes(root.ShardDigits)[0]))
	add(site.RouteRoot, site.RootKey)

	var groups []templates.LinkGroup
	for _, route := range c.Routes() {
		if len(links[route.ID]) > 0 {
			groups = append(groups, templates.LinkGroup{
				Pattern: route.Path(c), Summary: route.Summary, API: route.UnderAPI(), Links: links[route.ID],
			})
		}
	}
	return groups
}

// firstPaths are the paths that the command prints: one for each endpoint.
func firstPaths(root *site.Root, x server.Examples) []string {
	var paths []string
	for _, group := range linkGroups(root, x) {
		if group.API {
			paths = append(paths, group.Links[len(group.Links)-1])
		}
	}
	return paths
}
