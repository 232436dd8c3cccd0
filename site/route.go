package site

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/followpress/followpress/site/routes"
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
	contentGzip    = "application/gzip" // for whoever reads it: no encoding that a server or a client would undo
	contentScript  = "text/javascript"
	contentHTML    = "text/html; charset=utf-8"
	contentStyle   = "text/css; charset=utf-8"
	contentText    = "text/plain; charset=utf-8"
	contentSVG     = "image/svg+xml"
	contentPNG     = "image/png"
	contentAtom    = "application/atom+xml; charset=utf-8"
	contentBytes   = "application/octet-stream"
	contentXML     = "application/xml"
	contentZstd    = "application/zstd" // for whoever reads it, as contentGzip
	contentParquet = "application/vnd.apache.parquet"
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
	// cacheForever is for objects whose name changes with their bytes.
	cacheForever = "public, max-age=31536000, immutable"
)

// NoStore is the Cache-Control of an answer that no cache may keep.
const NoStore = cacheNever

// A Route is a row of the table of routes. The generator, the server, the edges, purges
// and the description of the API follow from the table.
type Route struct {
	ID           routes.ID
	Pattern      string  // path; {base} is the base path, another {…} one segment or a part of one
	Params       []Param // query parameters that it understands, by name; it ignores others
	ContentType  string
	CacheControl string
	Summary      string // one line for people

	// Computed says that no object answers a request without parameters. Requests with
	// parameters are computed anyway, but for the variants of leaderboards.
	Computed bool
	Fixed    bool // its objects depend on the configuration only
	Post     bool // its method is POST, not GET
	Redirect bool // its answer has status 302 and leads to the URL that is computed
	Ranges   bool // parts of its objects can be read: requests may have the header Range
	// Default and Most are the default and the largest limit; 0 stands for DefaultLimit, and
	// for pageMax, SearchMax or Config.LeaderboardMax.
	Default, Most int

	// Subject is the variable of an endpoint that its answers are about: board, token_id or user; "" for the
	// whole graph.
	Subject string

	segments []string  // of Pattern without {base}
	cut      []segment // the same, around their variables
	underAPI bool      // below the base path
}

// Routes returns the table of the site's routes, in the order of their IDs. Callers must not change it.
func (c Config) Routes() []*Route {
	return routesOf[routeSet{c.EFP(), c.Explorer, c.RanksEvery > 0, c.HistoryWindow > 0, c.Pages, c.Data}]
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

// RouteBy returns the row of the table with an ID.
func RouteBy(id routes.ID) *Route { return allRoutes[id] }

// Kept reports whether the objects of the route are no part of the site: they appear and change in a bucket
// without a new one. Reports stay there whatever site is published.
func (r *Route) Kept() bool { return r.segments[0] == reportsFolder || r.isBeside() }

// isBeside reports whether the objects of the route are put beside a site, by who publishes it or refreshes it.
func (r *Route) isBeside() bool {
	return slices.Contains([]string{nextFolder, keptFolder, refreshFolder, string(NoteKey)}, r.segments[0])
}

// UnderAPI reports whether the route is an endpoint of the API. Other routes are
// objects for the server, and for clients of a site without one.
func (r *Route) UnderAPI() bool { return r.underAPI }

// Path returns the pattern as a URL path with the base path filled in.
func (r *Route) Path(c Config) string {
	return "/" + strings.Replace(r.Pattern, "{base}", c.BasePath, 1)
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
		if r.isBeside() {
			continue // sites that were generated before there was such a thing have the same headers
		}
		headers := r.ContentType + "\t" + r.CacheControl
		if c.Tags != "" {
			headers += "\ttags for " + c.Tags
		}
		rules[r.Pattern] = Sum([]byte(headers))
	}
	return rules
}

// matches compares a path with the pattern; accept says which values a variable may
// have.
func (r *Route) matches(segments []string, accept func(variable, value string) bool) bool {
	if len(segments) != len(r.segments) {
		return false
	}
	for i, want := range r.cut { // first what takes no time
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

// A segment is one of a pattern, cut around its variable, which is "" if there is none.
type segment struct{ before, variable, after string }

func cutVariable(text string) (s segment) {
	s.before, text, _ = strings.Cut(text, "{")
	s.variable, s.after, _ = strings.Cut(text, "}")
	return s
}

// value is what the variable has in a text. ok is false if the text differs around it.
func (s segment) value(text string) (value string, ok bool) {
	if s.variable == "" {
		return "", text == s.before
	}
	rest, begins := strings.CutPrefix(text, s.before)
	value, ends := strings.CutSuffix(rest, s.after)
	return value, begins && ends
}

// The values of some variables, as regular expressions.
const (
	assetName  = "[a-z]{1,32}-[A-Z0-9]{8}" // of a bundle: a name and a hash of its bytes
	reportDate = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
	pageName   = "[0-9a-z][0-9a-z.-]{0,99}" // with .svg it is still a name of a file
	dataName   = "(?:accounts|badges|edges|follows|ops)(?:-[0-9]{4})?"
)

var (
	isAssetName  = regexp.MustCompile("^" + assetName + "$").MatchString
	isDataName   = regexp.MustCompile("^" + dataName + "$").MatchString
	isPageName   = regexp.MustCompile("^" + pageName + "$").MatchString
	isReportDate = regexp.MustCompile("^" + reportDate + "$").MatchString
)

// keySegment reports whether a variable has a value that keys can have. Expression is the same as a
// regular expression.
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

// Expression is a regular expression for the values of a variable of a route that keys can have.
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

// upTo matches the canonical decimals from 1 to most: all shorter ones, and for each
// digit of most those that are smaller there and equal before.
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

// words lists the values of a variable that has only a few; nil for others.
func (c Config) words(variable string) []string {
	switch variable {
	case "board":
		return texts(c.Boards())
	case "object":
		return texts(UserObjects())
	case "sort":
		return RankedSorts()
	case "script":
		return Scripts()
	case "types":
		return ScriptTypes()
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
