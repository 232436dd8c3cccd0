package preview

import (
	"bytes"
	"html/template"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/followpress/followpress/client/examples"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/data"
	"github.com/followpress/followpress/site/page"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/templates"
	"github.com/followpress/followpress/templates/openapi"
)

var english = message.NewPrinter(language.English)

var startPage = template.Must(template.New("start").Funcs(template.FuncMap{
	"count": func(n int) string { return english.Sprint(n) },
	"moment": func(asOf string) (string, error) {
		t, err := time.Parse(time.RFC3339, asOf)
		return templates.Moment(t), err
	},
}).Parse(templates.Start))

// startPath is the page of the API. It is not a key of a site.
const startPath = "/_preview"

var explorerPath = site.ExplorerPageKey.URLPath()

// withPages adds a page for programmers, the description of the API, and below that page complete example
// pages. / is the explorer, or that page if the site has no explorer. The two link to each other.
func withPages(api *server.Handler, store server.Store, found sample, log *slog.Logger) http.Handler {
	shown := func(r row) row { return withAnswers(api, r) }
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		root := api.Root()
		explores := root.Config.Explorer
		switch reads := r.Method == http.MethodGet || r.Method == http.MethodHead; {
		case reads && explores && slices.Contains([]string{"/", "/_explore", "/_explore/"}, r.URL.Path):
			http.Redirect(w, r, explorerPath, http.StatusFound)
		case reads && (r.URL.Path == "/" || r.URL.Path == startPath):
			writePage(w, r, log, func(page *bytes.Buffer) error {
				return startPage.Execute(page, map[string]any{
					"Library": root.Config.API == site.APIEFP, // the example needs it
					"Root":    root, "Description": "/" + string(site.OpenAPIKey), "First": firstLinks(root, found, shown), "Groups": groups(root, found, shown),
					"Explorer": map[bool]string{true: explorerPath}[explores],
					"Data":     map[bool]string{true: data.PackageKey.URLPath()}[root.Config.Data],
				})
			})
		case reads && r.URL.Path == explorerPath && explores:
			writePage(w, r, log, func(page *bytes.Buffer) error {
				body, err := store.Get(r.Context(), site.ExplorerPageKey)
				_, _ = page.Write(withStart(body)) // never fails
				return err
			})
		case reads && strings.HasPrefix(r.URL.Path, startPath+"/") && !strings.HasSuffix(r.URL.Path, "/"):
			http.StripPrefix(startPath, http.FileServerFS(examples.Pages)).ServeHTTP(w, r)
		default:
			api.ServeHTTP(w, r)
		}
	})
}

// withStart adds the address of the API's start page to the explorer's page, which then links
// there.
func withStart(page []byte) []byte {
	first := []byte("<meta ")
	return bytes.Replace(page, first, append([]byte(`<meta name="followpress-start" content="..`+startPath+`">`+"\n"), first...), 1)
}

func writePage(w http.ResponseWriter, r *http.Request, log *slog.Logger, render func(*bytes.Buffer) error) {
	var page bytes.Buffer
	if err := render(&page); err != nil {
		log.Error("page failed", "path", r.URL.Path, "error", err)
		http.Error(w, "cannot show this page", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", site.RouteBy(routes.Explorer).ContentType)
	w.Header().Set("Cache-Control", site.NoStore)
	_, _ = page.WriteTo(w) // the client may be gone
}

type group struct {
	Title string
	Rows  []row
}

// A row is a route with links to answers.
type row struct {
	Route *site.Route
	Path  string // including variables
	Links []link
	Posts []link // for a route that takes a body
}

// A link is an example of a request.
type link struct {
	URL  string // path and query
	Text string
	Body string
}

// titles are the titles of endpoint groups, in the order of the page.
var titles = []struct{ section, title string }{
	{"leaderboard", "Leaderboards"}, {"lists", "Lists"}, {"users", "Users"}, {"graph", "The whole graph"},
}

// groups returns all endpoints, and the objects for clients without a server, with links this site answers.
func groups(root *site.Root, x sample, shown func(row) row) []group {
	var all []group
	for _, t := range titles {
		g := group{Title: t.title}
		for _, r := range root.Config.Routes() {
			if r.UnderAPI() && openapi.Section(r) == t.section {
				g.Rows = append(g.Rows, shown(endpoint(root.Config, r, x)))
			}
		}
		if len(g.Rows) > 0 {
			all = append(all, g)
		}
	}
	return append(all, group{Title: "Objects for clients without a server", Rows: objects(root, x)})
}

// endpoint returns the row of an endpoint: its path with example values, and examples of its parameters.
func endpoint(c site.Config, r *site.Route, x sample) row {
	out := row{Route: r, Path: r.Path(c)}
	required, queries := exampleQueries(r, x)
	paths := examplePaths(c, r, x)
	for i, path := range paths {
		if r.Post {
			out.Posts = append(out.Posts, link{URL: path, Text: path, Body: `["` + x.Other + `"]`})
			continue
		}
		if required != "" {
			path += "?" + required
		}
		out.Links = append(out.Links, link{URL: path, Text: path})
		if i < len(paths)-1 && !strings.Contains(r.Pattern, "{board}") {
			continue
		}
		for _, query := range queries {
			separator := "?"
			if required != "" {
				separator = "&"
			}
			out.Links = append(out.Links, link{URL: path + separator + query, Text: separator + query})
		}
	}
	if r.ID == routes.UserDetails && x.Listless != "" {
		path := strings.Replace(out.Path, "{user}", x.Listless, 1)
		out.Links = append(out.Links, link{URL: path, Text: path + " (no primary list: null)"})
	}
	return out
}

// nothing matches answers without rows.
var nothing = regexp.MustCompile(`(^|:)\[\]\}?$`)

// withAnswers drops the links with empty answers, except the first link.
func withAnswers(api http.Handler, r row) row {
	empty := make([]bool, len(r.Links))
	var all sync.WaitGroup
	for i, l := range r.Links {
		all.Go(func() {
			if strings.HasSuffix(l.URL, "cache=fresh") { // keep it: the answer shows fresh data
				return
			}
			answer := httptest.NewRecorder()
			api.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, l.URL, nil))
			empty[i] = i > 0 && nothing.Match(bytes.TrimSpace(answer.Body.Bytes()))
		})
	}
	all.Wait()
	var links []link
	for i, l := range r.Links {
		if !empty[i] {
			links = append(links, l)
		}
	}
	r.Links = links
	return r
}

// examplePaths fills in the variables of an endpoint, users by address and by name. It returns nothing if a
// variable has no value.
func examplePaths(c site.Config, r *site.Route, x sample) []string {
	values := map[string][]string{"{token_id}": {x.TokenID}, "{user}": {x.Address}, "{other}": {x.Other}}
	if x.Name != "" {
		values["{user}"] = append(values["{user}"], x.Name)
	}
	for _, board := range c.Boards() {
		values["{board}"] = append(values["{board}"], string(board))
	}
	paths := []string{""}
	for segment := range strings.SplitSeq(strings.TrimPrefix(r.Path(c), "/"), "/") {
		options, isVariable := values[segment]
		if !isVariable {
			options = []string{segment}
		}
		var longer []string
		for _, path := range paths {
			for _, option := range options {
				if option != "" {
					longer = append(longer, path+"/"+url.PathEscape(option))
				}
			}
		}
		paths = longer
	}
	return paths
}

// exampleQueries returns example queries for a route: its required one, and others.
func exampleQueries(r *site.Route, x sample) (required string, queries []string) {
	var page []string
	for _, p := range r.Params {
		rule := site.Params()[p]
		name, value := string(p), ""
		switch {
		case r.ID == routes.Relationships && (p == site.ParamTag || p == site.ParamDirection):
			required = "direction=outgoing&tag=top8"
		case p == site.ParamStart: // the newest operations are the usual question
		case p == site.ParamLeader:
			value = x.Other
		case p == site.ParamTags, p == site.ParamTag:
			value = "top8"
		case p == site.ParamSort:
			value = "followers"
		case rule.Kind == site.ParamNumber:
			page = append(page, name+"=3")
		case rule.Kind == site.ParamText:
			value = x.Term
		case len(rule.Values) > 0:
			value = rule.Values[0]
		}
		if value != "" {
			queries = append(queries, name+"="+url.QueryEscape(value))
		}
	}
	if len(page) > 0 {
		queries = slices.Insert(queries, 0, strings.Join(page, "&"))
	}
	return required, queries
}

// objects returns the rows of objects without an endpoint, as far as the site is known to have them.
func objects(root *site.Root, x sample) []row {
	keys := map[routes.ID]site.Key{
		routes.LeaderboardLimit: site.LeaderboardLimitKey(site.Followers, 3),
		routes.Error:            site.NoSuchList.Key(),
		routes.Manifest:         site.ManifestKey(site.HashPrefixes(root.ShardDigits)[0]),
		routes.Root:             site.RootKey,
	}
	if x.TokenID != "" {
		keys[routes.UserBucket] = site.UserBucketKey(site.UserBucket(x.Address, root.BucketDigits))
		if x.Sharded {
			keys[routes.SearchShard] = site.SearchShardKey(x.TokenID, 0)
		}
	}
	if root.Config.EFP() {
		keys[routes.RecommendedShard] = site.RecommendedShardKey(0)
		keys[routes.DiscoverShard] = site.DiscoverShardKey
		keys[routes.Unknown] = site.UnknownKey(site.Account)
		keys[routes.OpenAPI] = site.OpenAPIKey
		keys[routes.Script] = site.ClientKey("followpress.js")
		keys[routes.ScriptTypes] = site.ClientKey("followpress.d.ts")
		if x.TokenID != "" {
			keys[routes.TokenBucket] = site.TokenBucketKey(site.UserBucket(x.TokenID, root.TokenDigits))
			keys[routes.RankedShard] = site.RankedShardKey(0)
		}
	}
	if root.Config.Pages {
		keys[routes.Sitemap], keys[routes.Robots], keys[routes.Embed], keys[routes.PageTop] = page.SitemapKey, page.RobotsKey, page.EmbedKey, page.TopKey
		if x.Name != "" {
			address, err := site.ParseAddress(x.Address)
			if own := page.Name(x.Name, address); err == nil {
				keys[routes.Page], keys[routes.Badge], keys[routes.DarkBadge], keys[routes.Card] = page.Key(own), page.BadgeKey(own), page.DarkBadgeKey(own), page.CardKey(own)
			}
		}
	}
	var rows []row
	for _, r := range root.Config.Routes() {
		if key, ok := keys[r.ID]; ok {
			path := (&url.URL{Path: "/" + string(key)}).EscapedPath()
			rows = append(rows, row{Route: r, Path: r.Path(root.Config), Links: []link{{URL: path, Text: path}}})
		}
	}
	return rows
}

// first are the endpoints to start with.
var first = []routes.ID{
	routes.Leaderboard, routes.Records, routes.Details, routes.Badges, routes.ListSearch, routes.UserSearch,
	routes.UserAccount, routes.UserFollowers, routes.CommonFollowers,
}

// firstLinks returns the requests that the command prints and the page starts with, one per endpoint in first.
func firstLinks(root *site.Root, x sample, shown func(row) row) []string {
	var urls []string
	for _, r := range root.Config.Routes() {
		if !slices.Contains(first, r.ID) {
			continue
		}
		if links := shown(endpoint(root.Config, r, x)).Links; len(links) > 0 {
			urls = append(urls, links[len(links)-1].URL)
		}
	}
	return urls
}
