package site

import (
	"slices"
	"strings"
)

// AllowedMethods is the value of the Allow header.
const AllowedMethods = "GET, HEAD, OPTIONS"

// Content types of objects.
const (
	contentJSON    = "application/json"
	contentProblem = "application/problem+json"
)

// Cache-Control values. A snapshot is a day old anyway: minutes in a browser and
// at the edge cost nothing, and an edge that lost its origin may go on for a day.
const (
	cacheData  = "public, max-age=300, stale-while-revalidate=3600, stale-if-error=86400"
	cacheBoard = "public, max-age=60, stale-while-revalidate=600, stale-if-error=86400"
	cacheError = "public, max-age=60"
	cacheNever = "no-store"
	// cacheCheck is for the entry points: those who poll them want the newest,
	// and a matching ETag makes that cheap.
	cacheCheck = "no-cache"
)

// NoStore is the Cache-Control of an answer that no cache may keep.
const NoStore = cacheNever

// A Param is a query parameter that a route understands; others are ignored.
type Param string

// The query parameters.
const (
	ParamLimit       Param = "limit"
	ParamOffset      Param = "offset"
	ParamTerm        Param = "term"
	ParamIncludeTags Param = "includeTags"
	ParamCache       Param = "cache"
)

// A RouteID tells routes apart.
type RouteID int

// The routes, in the order of the table.
const (
	RouteLeaderboard RouteID = iota
	RouteRecords
	RouteDetails
	RouteBadges
	RouteListSearch
	RouteUserSearch
	RouteLeaderboardLimit
	RouteSearchShard
	RouteUserBucket
	RouteError
	RouteManifest
	RouteRoot
)

// A Route is a row of the table of routes: what the site holds, what a request
// may ask for, and the headers that go with it.
type Route struct {
	ID           RouteID
	Pattern      string  // path; {base} is the base path, other {…} stand for one segment, or the rest of one
	Params       []Param // query parameters with a meaning
	ContentType  string
	CacheControl string
	Summary      string // one line for people

	segments []string // of Pattern without {base}
	underAPI bool     // below the base path
}

var routes = func() []*Route {
	search := []Param{ParamLimit, ParamOffset, ParamTerm}
	table := []*Route{
		{ID: RouteLeaderboard, Pattern: "{base}/leaderboard/{board}", Params: []Param{ParamLimit}, CacheControl: cacheBoard,
			Summary: "accounts with the most followers, or that follow the most"},
		{ID: RouteRecords, Pattern: "{base}/lists/{token_id}/records", Params: []Param{ParamIncludeTags}, CacheControl: cacheData,
			Summary: "records of a list, in the list's order"},
		{ID: RouteDetails, Pattern: "{base}/lists/{token_id}/details", Params: []Param{ParamCache}, CacheControl: cacheData,
			Summary: "address, profile, ranks and primary list of a list's account"},
		{ID: RouteBadges, Pattern: "{base}/lists/{token_id}/badges", Params: []Param{ParamCache}, CacheControl: cacheData,
			Summary: "event badges of a list's account"},
		{ID: RouteListSearch, Pattern: "{base}/lists/{token_id}/searchFollowing", Params: search, CacheControl: cacheData,
			Summary: "search within the accounts that a list follows"},
		{ID: RouteUserSearch, Pattern: "{base}/users/{user}/searchFollowing", Params: search, CacheControl: cacheData,
			Summary: "search within the accounts that a user follows"},
		{ID: RouteLeaderboardLimit, Pattern: "_variants/leaderboard/{board}/limit={limit}", CacheControl: cacheBoard,
			Summary: "a leaderboard with another limit"},
		{ID: RouteSearchShard, Pattern: "_search/lists/{token_id}/{number}", CacheControl: cacheData,
			Summary: "a search shard of a list"},
		{ID: RouteUserBucket, Pattern: "_search/users/{hash}", CacheControl: cacheData,
			Summary: "the lists of the users of a bucket"},
		{ID: RouteError, Pattern: "_errors/{problem}", ContentType: contentProblem, CacheControl: cacheError,
			Summary: "the body of an error answer"},
		{ID: RouteManifest, Pattern: "_manifest/{hash}", CacheControl: cacheCheck,
			Summary: "a shard of the manifest"},
		{ID: RouteRoot, Pattern: "_site", CacheControl: cacheCheck,
			Summary: "the root of the site"},
	}
	for i, r := range table {
		if r.ID != RouteID(i) {
			panic("site: the table of routes is out of order")
		}
		if r.ContentType == "" {
			r.ContentType = contentJSON
		}
		pattern, underAPI := strings.CutPrefix(r.Pattern, "{base}/")
		r.segments, r.underAPI = strings.Split(pattern, "/"), underAPI
	}
	return table
}()

// Routes is the table of routes. Callers must not change it.
func Routes() []*Route { return routes }

// APIFolders lists the first segments of the endpoints, below the base path.
func APIFolders() []string {
	var folders []string
	for _, r := range routes {
		if r.underAPI && !slices.Contains(folders, r.segments[0]) {
			folders = append(folders, r.segments[0])
		}
	}
	return folders
}

// Route is the row of the table with this ID.
func (id RouteID) Route() *Route { return routes[id] }

// UnderAPI reports whether the route is one of the interface's endpoints; the
// others are objects that clients of a site without a server read.
func (r *Route) UnderAPI() bool { return r.underAPI }

// Path is the route's pattern as a URL path, the base path filled in.
func (r *Route) Path(c Config) string {
	return "/" + strings.Replace(r.Pattern, "{base}", c.BasePath, 1)
}

func (r *Route) understands(p Param) bool { return slices.Contains(r.Params, p) }

// RouteOf finds the route whose object a key is; ok is false where no object of
// a site can have this key.
func (c Config) RouteOf(key Key) (route *Route, ok bool) {
	path, underAPI := strings.CutPrefix(string(key), c.BasePath+"/")
	segments := strings.Split(path, "/")
	for _, r := range routes {
		if r.underAPI == underAPI && r.matches(segments, c.keySegment) {
			return r, true
		}
	}
	return nil, false
}

// HeaderRules is a digest for each route, by its pattern, of the headers that its
// objects are stored with. Where two sites differ in it, objects with equal bytes
// still differ.
func HeaderRules() map[string]MD5 {
	rules := make(map[string]MD5, len(routes))
	for _, r := range routes {
		rules[r.Pattern] = Sum([]byte(r.ContentType + "\t" + r.CacheControl))
	}
	return rules
}

// matches compares a path with the pattern; accept decides about the segments
// that stand for a variable.
func (r *Route) matches(segments []string, accept func(variable, value string) bool) bool {
	if len(segments) != len(r.segments) {
		return false
	}
	for i, want := range r.segments {
		fixed, variable, isVariable := strings.Cut(want, "{")
		rest, ok := strings.CutPrefix(segments[i], fixed)
		if !ok || !isVariable && rest != "" {
			return false
		}
		if isVariable && !accept(strings.TrimSuffix(variable, "}"), rest) {
			return false
		}
	}
	return true
}

// keySegment reports whether a variable segment of a key has the form that the
// keys of a site have.
func (c Config) keySegment(variable, value string) bool {
	switch variable {
	case "board":
		return slices.Contains(Boards(), Board(value))
	case "token_id":
		return ValidTokenID(value)
	case "user":
		address, err := ParseAddress(value)
		return LookupName(value) || err == nil && address.String() == value
	case "limit":
		limit, ok := parseNumber(value)
		return ok && ValidTokenID(value) && 1 <= limit && limit <= int64(c.LeaderboardMax)
	case "number":
		return ValidTokenID(value) && len(value) <= maxNumberDigits
	case "hash":
		return value != "" && len(value) <= maxHashDigits && strings.Trim(value, "0123456789abcdef") == ""
	case "problem":
		return slices.ContainsFunc(Problems(), func(p *Problem) bool { return p.Name == value })
	}
	panic("site: no rule for the variable {" + variable + "}")
}
