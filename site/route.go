package site

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/followpress/followpress/site/routes"
)

// Values of the Allow header: for GET routes, for POST routes, and for both.
const (
	allowedMethods = "GET, HEAD, OPTIONS"
	postMethods    = "OPTIONS, POST"
	allMethods     = allowedMethods + ", POST"
)

// Content types of objects.
const (
	contentJSON    = "application/json"
	contentProblem = "application/problem+json"
	contentGzip    = "application/gzip" // the content itself is compressed: not a Content-Encoding, which servers or clients would undo
	contentScript  = "text/javascript"
	contentHTML    = "text/html; charset=utf-8"
	contentStyle   = "text/css; charset=utf-8"
	contentText    = "text/plain; charset=utf-8"
	contentSVG     = "image/svg+xml"
	contentPNG     = "image/png"
	contentAtom    = "application/atom+xml; charset=utf-8"
	contentBytes   = "application/octet-stream"
	contentXML     = "application/xml"
	contentZstd    = "application/zstd" // see contentGzip
	contentParquet = "application/vnd.apache.parquet"
)

// Cache-Control values. A snapshot is hours old anyway, so minutes in browsers and at the edge do not matter, and an
// edge without its origin may continue for a day.
const (
	cacheData  = "public, max-age=300, stale-while-revalidate=3600, stale-if-error=86400"
	cacheBoard = "public, max-age=60, stale-while-revalidate=600, stale-if-error=86400"
	cacheError = "public, max-age=60"
	cacheNever = "no-store"
	// cacheCheck is for entry points, where clients that poll want the newest version. ETags make polling cheap.
	cacheCheck = "no-cache"
	// cacheForever is for objects whose name depends on their content.
	cacheForever = "public, max-age=31536000, immutable"
)

// NoStore is the Cache-Control of responses that must not be cached.
const NoStore = cacheNever

// A Route is a row of the table of routes, from which the generator, the server, the edges, purges and the
// description of the API follow.
type Route struct {
	ID           routes.ID
	Pattern      string  // path; {base} is the base path, any other {…} a segment or part of one
	Params       []Param // supported query parameters, sorted by name; others are ignored
	ContentType  string
	CacheControl string
	Summary      string // one-line description

	// Computed means that requests without parameters are computed. Requests with parameters always are, except for
	// variants of leaderboards.
	Computed bool
	Fixed    bool // objects depend on the configuration only
	Post     bool // POST instead of GET
	Redirect bool // answers 302 with a computed URL
	Ranges   bool // supports the Range header
	// Default and Most are the default and the maximum limit. 0 means DefaultLimit, and pageMax or
	// Config.LeaderboardMax.
	Default, Most int

	// Subject is the path variable that the answers are about: board, token_id or user; "" means the whole graph.
	Subject string

	segments []string  // segments of Pattern, without {base}
	cut      []segment // segments, split around their variables
	underAPI bool      // below the base path
}

// Routes returns the site's routes, sorted by ID. Callers must not modify the result.
func (c Config) Routes() []*Route {
	return routesOf[routeSet{c.EFP(), c.Explorer, c.RanksEvery > 0, c.HistoryWindow > 0, c.Pages, c.Data}]
}

// APIFolders returns the first segments of all endpoints, below the base path.
func APIFolders() []string {
	var folders []string
	for _, r := range allRoutes {
		if r.underAPI && !slices.Contains(folders, r.segments[0]) {
			folders = append(folders, r.segments[0])
		}
	}
	return folders
}

// RouteBy returns the route with an ID.
func RouteBy(id routes.ID) *Route { return allRoutes[id] }

// Kept reports whether the route's objects are stored next to the site: they appear and change without a new site.
// Reports stay whatever site is published.
func (r *Route) Kept() bool { return r.segments[0] == reportsFolder || r.isBeside() }

// isBeside reports whether publishers or refreshes store the route's objects next to a site.
func (r *Route) isBeside() bool {
	return slices.Contains([]string{nextFolder, keptFolder, refreshFolder, string(NoteKey)}, r.segments[0])
}

// UnderAPI reports whether the route is an endpoint of the API. Other routes are objects for the server, and for
// clients of a site without one.
func (r *Route) UnderAPI() bool { return r.underAPI }

// Path returns the pattern as a URL path, with the base path filled in.
func (r *Route) Path(c Config) string {
	return "/" + strings.Replace(r.Pattern, "{base}", c.BasePath, 1)
}

// RouteOf returns the route of a key. ok is false if a site cannot have the key.
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

// HeaderRules returns a digest of the headers of each route's objects, keyed by pattern. If the digests of two sites
// differ, equal objects have different headers.
func (c Config) HeaderRules() map[string]MD5 {
	rules := map[string]MD5{}
	for _, r := range c.Routes() {
		if r.isBeside() {
			continue // newer than the format; older sites must get the same rules
		}
		headers := r.ContentType + "\t" + r.CacheControl
		if c.Tags != "" {
			headers += "\ttags for " + c.Tags
		}
		rules[r.Pattern] = Sum([]byte(headers))
	}
	return rules
}

// matches reports whether a path matches the pattern. accept reports whether a variable may have a value.
func (r *Route) matches(segments []string, accept func(variable, value string) bool) bool {
	if len(segments) != len(r.segments) {
		return false
	}
	for i, want := range r.cut { // cheap comparisons first
		if _, ok := want.value(segments[i]); !ok {
			return false
		}
	}
	for i, want := range r.cut {
		if value, _ := want.value(segments[i]); want.variable != "" && !accept(want.variable, value) {
			return false
		}
	}
	return true
}

// A segment is one of a pattern, split around its variable, which may be "".
type segment struct{ before, variable, after string }

func cutVariable(text string) (s segment) {
	s.before, text, _ = strings.Cut(text, "{")
	s.variable, s.after, _ = strings.Cut(text, "}")
	return s
}

// value returns the variable's value in a text. ok is false if the text around it differs.
func (s segment) value(text string) (value string, ok bool) {
	if s.variable == "" {
		return "", text == s.before
	}
	rest, begins := strings.CutPrefix(text, s.before)
	value, ends := strings.CutSuffix(rest, s.after)
	return value, begins && ends
}

// Regular expressions for the values of some variables.
const (
	assetName  = "[a-z]{1,32}-[A-Z0-9]{8}" // asset of a bundle: a name and a hash of its content
	reportDate = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
	pageName   = "[0-9a-z][0-9a-z.-]{0,99}" // still a valid file name with .svg
	dataName   = "(?:accounts|badges|edges|follows|ops)(?:-[0-9]{4})?"
)

var (
	isAssetName  = regexp.MustCompile("^" + assetName + "$").MatchString
	isDataName   = regexp.MustCompile("^" + dataName + "$").MatchString
	isPageName   = regexp.MustCompile("^" + pageName + "$").MatchString
	isReportDate = regexp.MustCompile("^" + reportDate + "$").MatchString
)

// keySegment reports whether a variable may have a value in a key. Expression defines the same set as a regular
// expression.
func (c Config) keySegment(variable, value string) bool {
	if words := c.words(variable); words != nil {
		return slices.Contains(words, value)
	}
	switch variable {
	case "token_id":
		return ValidTokenID(value)
	case "user", "other":
		return LookupName(value) || isAddressKey(value)
	case "address":
		return isAddressKey(value)
	case "limit":
		limit, ok := parseNumber(value)
		return ok && ValidTokenID(value) && 1 <= limit && limit <= int64(c.LeaderboardMax)
	case "number":
		return ValidTokenID(value) && len(value) <= MaxNumberDigits
	case "asset":
		return isAssetName(value)
	case "date":
		return isReportDate(value)
	case "sha256":
		return isHex(value, 2*len(SHA256{}), 2*len(SHA256{}))
	case "page":
		return isPageName(value)
	case "data":
		return isDataName(value)
	case "hash":
		return isHex(value, 1, maxHashDigits)
	}
	panic("site: no rule for the variable {" + variable + "}")
}

func isHex(value string, least, most int) bool {
	return least <= len(value) && len(value) <= most && strings.Trim(value, "0123456789abcdef") == ""
}

// Expression returns a regular expression for the values of a route variable in keys.
func (c Config) Expression(variable string) string {
	if words := c.words(variable); words != nil {
		for i, word := range words {
			words[i] = regexp.QuoteMeta(word)
		}
		return strings.Join(words, "|")
	}
	switch variable {
	case "token_id":
		return "0|[1-9][0-9]{0," + strconv.Itoa(maxTokenIDDigits-1) + "}"
	case "address":
		return "0x[0-9a-f]{40}"
	case "limit":
		return upTo(strconv.Itoa(c.LeaderboardMax))
	case "number":
		return "0|[1-9][0-9]{0," + strconv.Itoa(MaxNumberDigits-1) + "}"
	case "asset":
		return assetName
	case "date":
		return reportDate
	case "sha256":
		return "[0-9a-f]{" + strconv.Itoa(2*len(SHA256{})) + "}"
	case "page":
		return pageName
	case "data":
		return dataName
	case "hash":
		return "[0-9a-f]{1," + strconv.Itoa(maxHashDigits) + "}"
	}
	panic("site: no expression for the variable {" + variable + "}")
}

// upTo returns an expression for the canonical decimals from 1 to most: all shorter ones, and for
// each digit of most the numbers with an equal prefix and a smaller digit there.
func upTo(most string) string {
	var all []string
	for digits := 1; digits < len(most); digits++ {
		all = append(all, "[1-9][0-9]{"+strconv.Itoa(digits-1)+"}")
	}
	for i := range len(most) {
		least := byte('0')
		if i == 0 {
			least = '1'
		}
		if most[i] > least {
			all = append(all, fmt.Sprintf("%s[%c-%c][0-9]{%d}", most[:i], least, most[i]-1, len(most)-i-1))
		}
	}
	return strings.Join(append(all, most), "|")
}

// words returns the values of a variable with a fixed set of values; nil for others.
func (c Config) words(variable string) []string {
	switch variable {
	case "board":
		return texts(c.Boards())
	case "object":
		return texts(UserObjects())
	case "sort":
		return RankedSorts()
	case "script":
		return slices.Clone(clientScripts)
	case "types":
		return slices.Clone(clientTypes)
	case "problem":
		var names []string
		for _, p := range c.Problems() {
			names = append(names, p.Name)
		}
		return names
	}
	return nil
}

func texts[T ~string](all []T) []string {
	list := make([]string, len(all))
	for i, a := range all {
		list[i] = string(a)
	}
	return list
}

func isAddressKey(text string) bool {
	address, err := ParseAddress(text)
	return err == nil && address.String() == text
}

// UserObjects returns the objects that every address of the graph has under APIEFP, and that UnknownKey has for other
// addresses. It omits SearchFollowing, which only names and users with a primary list have.
func UserObjects() []ListObject { return userObjects }

var userObjects = slices.DeleteFunc(Config{API: APIEFP}.objectsOf(subjectUser), func(o ListObject) bool { return o == SearchFollowing })

// ListObjects returns the objects that every list has.
func (c Config) ListObjects() []ListObject { return listObjects[c.EFP()] }

var listObjects = map[bool][]ListObject{
	false: Config{API: APISpec}.objectsOf(subjectList), true: Config{API: APIEFP}.objectsOf(subjectList),
}

// objectsOf returns the objects of lists or users, according to the table of routes.
func (c Config) objectsOf(subject string) (objects []ListObject) {
	for _, r := range c.Routes() {
		if r.Subject == subject && !r.Computed {
			objects = append(objects, r.object())
		}
	}
	return objects
}

// Summaries returns the keys of the objects that exist once and describe the whole graph.
func (c Config) Summaries() (keys []Key) {
	for _, r := range c.Routes() {
		if !r.Computed && !r.Fixed && !r.Kept() && r.ID != routes.Root && !strings.Contains(r.Path(c), "{") {
			keys = append(keys, Key(r.Path(c)[1:]))
		}
	}
	return keys
}

// A Header is an HTTP header of a response.
type Header struct{ Name, Value string }

// EveryHeader returns the headers of every response of the fallback and of edges. They let pages of any origin read
// it (CORS) and keep browsers from guessing its type.
func EveryHeader() []Header {
	return []Header{
		{"Access-Control-Allow-Origin", "*"},
		{"Access-Control-Expose-Headers", "ETag, X-Refresh, X-Request-Id, Retry-After, X-As-Of, X-Heads, X-Finalized, Accept-Ranges, Content-Range"},
		{"X-Content-Type-Options", "nosniff"},
	}
}

// PreflightHeaders returns the headers of responses to OPTIONS, in addition to EveryHeader.
func (c Config) PreflightHeaders() []Header {
	methods := allowedMethods
	if c.EFP() {
		methods = allMethods
	}
	return []Header{
		{"Allow", methods},
		{"Access-Control-Allow-Methods", methods},
		{"Access-Control-Allow-Headers", "*"},
		{"Access-Control-Max-Age", "86400"},
		{"Cache-Control", "public, max-age=86400"},
	}
}

// RetryAfter is the value of Retry-After in a 503 response.
const RetryAfter = 5 * time.Second
