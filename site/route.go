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
	// cacheCheck is for the entry points: clients that poll them want the newest, and
	// ETags make polling cheap.
	cacheCheck = "no-cache"
)

// NoStore is the Cache-Control of an answer that no cache may keep.
const NoStore = cacheNever

// A RouteID identifies a route.
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

// A Route is a row of the table of routes. The generator, the server, the edges, purges
// and the description of the API follow from the table.
type Route struct {
	ID           RouteID
	Pattern      string  // path; {base} is the base path, another {…} one segment or the rest of one
	Params       []Param // query parameters that it understands, by name; it ignores others
	ContentType  string
	CacheControl string
	Summary      string // one line for people

	segments []string // of Pattern without {base}
	underAPI bool     // below the base path
	subject  EdgeSubject
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
		slices.Sort(r.Params)
		pattern, underAPI := strings.CutPrefix(r.Pattern, "{base}/")
		r.segments, r.underAPI, r.subject = strings.Split(pattern, "/"), underAPI, EdgeStored
		for variable, subject := range map[string]EdgeSubject{"{board}": EdgeBoard, "{token_id}": EdgeList, "{user}": EdgeUser} {
			if underAPI && slices.Contains(r.segments, variable) {
				r.subject = subject
			}
		}
	}
	return table
}()

// Routes returns the table of routes. Callers must not change it.
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

// Route returns the row of the table with this ID.
func (id RouteID) Route() *Route { return routes[id] }

// UnderAPI reports whether the route is an endpoint of the API. Other routes are
// objects for the server, and for clients of a site without one.
func (r *Route) UnderAPI() bool { return r.underAPI }

// Path returns the pattern as a URL path with the base path filled in.
func (r *Route) Path(c Config) string {
	return "/" + strings.Replace(r.Pattern, "{base}", c.BasePath, 1)
}

// Folder returns the URL path, with a slash at its end, of the folder that holds all
// objects of the route.
func (r *Route) Folder(c Config) string {
	path, _, _ := strings.Cut(r.Path(c), "{")
	return path[:strings.LastIndex(path, "/")+1]
}

// EndpointFolder returns the folder of an endpoint that a URL path is in, such as
// /api/v1/lists/. Any other path comes back unchanged.
func EndpointFolder(path string) string {
	segments, endpoints := strings.Split(path, "/"), APIFolders()
	for i, s := range segments {
		if slices.Contains(endpoints, s) {
			return strings.Join(segments[:i+1], "/") + "/"
		}
	}
	return path
}

// RouteOf finds the route of a key. ok is false if no object of a site can have the
// key.
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

// HeaderRules returns, by pattern, a digest of the headers that the objects of each
// route are stored with. Where the rules of two sites differ, objects with equal bytes
// differ in their headers.
func HeaderRules() map[string]MD5 {
	rules := make(map[string]MD5, len(routes))
	for _, r := range routes {
		rules[r.Pattern] = Sum([]byte(r.ContentType + "\t" + r.CacheControl))
	}
	return rules
}

// matches compares a path with the pattern; accept says which values a variable may
// have.
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

// keySegment reports whether a variable has a value that keys can have. keyExpression
// is the same as a regular expression.
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
