package site

import (
	"slices"
	"strings"
)

// Values of the Allow header: of routes that are read, of those that take a body, and of both.
const (
	AllowedMethods = "GET, HEAD, OPTIONS"
	PostMethods    = "OPTIONS, POST"
	allMethods     = AllowedMethods + ", POST"
)

// Content types of objects.
const (
	contentJSON    = "application/json"
	contentProblem = "application/problem+json"
	contentScript  = "text/javascript"
	contentText    = "text/plain; charset=utf-8"
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

// A Route is a row of the table of routes. The generator, the server, the edges, purges
// and the description of the API follow from the table.
type Route struct {
	ID           RouteID
	Pattern      string  // path; {base} is the base path, another {…} one segment or the rest of one
	Params       []Param // query parameters that it understands, by name; it ignores others
	ContentType  string
	CacheControl string
	Summary      string // one line for people

	// Computed says that no object answers a request without parameters. Requests with
	// parameters are computed anyway, but for the variants of leaderboards.
	Computed bool
	Post     bool // its method is POST, not GET
	// Default and Most are the default and the largest limit; 0 stands for DefaultLimit, and
	// for PageMax, SearchMax or Config.LeaderboardMax.
	Default, Most int

	segments []string // of Pattern without {base}
	underAPI bool     // below the base path
	subject  EdgeSubject
}

// Routes returns the table of the site's routes, in the order of their IDs. Callers must not change it.
func (c Config) Routes() []*Route {
	if c.EFP() {
		return allRoutes
	}
	return allRoutes[:RouteUserAccount]
}

// APIFolders lists the first segments of the endpoints, below the base path.
func APIFolders() []string {
	var folders []string
	for _, r := range allRoutes {
		if r.underAPI && !slices.Contains(folders, r.segments[0]) {
			folders = append(folders, r.segments[0])
		}
	}
	return folders
}

// Route returns the row of the table with this ID.
func (id RouteID) Route() *Route { return allRoutes[id] }

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
	for i, s := range segments[:len(segments)-1] {
		if slices.Contains(endpoints, s) {
			return strings.Join(segments[:i+1], "/") + "/"
		}
	}
	return path
}

// RouteOf finds the route of a key. ok is false if no path of a site's API and no object can have
// the key.
func (c Config) RouteOf(key Key) (route *Route, ok bool) {
	path, underAPI := strings.CutPrefix(string(key), c.BasePath+"/")
	segments := strings.Split(path, "/")
	for _, r := range c.Routes() {
		if r.underAPI == underAPI && r.matches(segments, c.keySegment) {
			return r, true
		}
	}
	return nil, false
}

// HeaderRules returns, by pattern, a digest of the headers that the objects of each
// route are stored with. Where the rules of two sites differ, objects with equal bytes
// differ in their headers.
func (c Config) HeaderRules() map[string]MD5 {
	rules := map[string]MD5{}
	for _, r := range c.Routes() {
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
		return slices.Contains(c.Boards(), Board(value))
	case "token_id":
		return ValidTokenID(value)
	case "user", "other":
		address, err := ParseAddress(value)
		return LookupName(value) || err == nil && address.String() == value
	case "address":
		address, err := ParseAddress(value)
		return err == nil && address.String() == value
	case "object":
		return slices.Contains(UserObjects(), ListObject(value))
	case "sort":
		return slices.Contains(RankedSorts(), value)
	case "script":
		return slices.Contains(Scripts(), value)
	case "types":
		return slices.Contains(ScriptTypes(), value)
	case "limit":
		limit, ok := parseNumber(value)
		return ok && ValidTokenID(value) && 1 <= limit && limit <= int64(c.LeaderboardMax)
	case "number":
		return ValidTokenID(value) && len(value) <= maxNumberDigits
	case "hash":
		return value != "" && len(value) <= maxHashDigits && strings.Trim(value, "0123456789abcdef") == ""
	case "problem":
		return slices.ContainsFunc(c.Problems(), func(p *Problem) bool { return p.Name == value })
	}
	panic("site: no rule for the variable {" + variable + "}")
}
