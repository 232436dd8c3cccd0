package site

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// AtEdge is Resolve from an edge's point of view: computed answers and refreshes are
// forwarded to the fallback. Edges run the equivalent table from Config.Edge; tests
// compare the two.
//
// forward is the path and query for the fallback in their normal form, which is also the
// cache key; "" means that the edge answers as the resolution says. An edge without a
// fallback never forwards: it answers as WithoutFallback says.
func (c Config) AtEdge(method, path, rawQuery string) (r Resolution, forward string) {
	r = c.Resolve(method, path, rawQuery)
	switch {
	case r.Query != "":
		forward = r.Key.URLPath() + "?" + r.Query
	case r.Action == AnswerComputed:
		forward = r.Key.URLPath()
	}
	return r, forward
}

// URLPath returns the URL path of the object, its slashes and the normal forms of the
// segments between them. Edges use it as cache key.
func (k Key) URLPath() string {
	return "/" + strings.ReplaceAll(normalForm(string(k)), "%2F", "/")
}

// An Edge is the table of routes and parameters as text and regular expressions. The
// configurations of all edges are rendered from it.
//
// The expressions match normal forms. In the normal form of a path segment or of a
// value, letters, digits and -._~= stand for themselves, and every other byte is
// percent-encoded with upper-case digits. Equal texts have equal normal forms.
type Edge struct {
	Routes   []EdgeRoute          `json:"routes"`
	Params   map[Param]EdgeParam  `json:"params"`
	Problems map[string]EdgeError `json:"problems"`
	Space    string               `json:"space"`  // matches one white space; a text is trimmed of it
	Unsafe   string               `json:"unsafe"` // matches a character that no name has

	Every     []EdgeHeader `json:"every"`          // headers of every answer
	Preflight []EdgeHeader `json:"preflight"`      // headers of an answer to OPTIONS
	Empty     EdgeBody     `json:"empty,omitzero"` // EmptySearch

	// Lookup says that names have no objects: only the fallback can answer for them.
	Lookup bool `json:"lookup,omitempty"`
}

// Direct returns the routes that have EdgeRoute.Direct, the most popular first.
func (e Edge) Direct() []EdgeRoute {
	var users, lists, others []EdgeRoute
	for _, r := range e.Routes {
		switch {
		case r.Direct == "":
		case r.Subject == EdgeUser:
			users = append(users, r)
		case r.Subject == EdgeList:
			lists = append(lists, r)
		default:
			others = append(others, r)
		}
	}
	return slices.Concat(users, lists, others)
}

// An EdgeHeader is a header. Its name is in lower case.
type EdgeHeader struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// An EdgeBody is an answer that the edge holds in its configuration.
type EdgeBody struct {
	Body string `json:"body"`
	ETag string `json:"etag"`
}

// An EdgeError is the answer to a problem: the body is the object _errors/{name}.
type EdgeError struct {
	Status  int          `json:"status"`
	Title   string       `json:"title,omitempty"`
	Detail  string       `json:"detail"`
	Caching string       `json:"caching,omitempty"` // Cache-Control
	Headers []EdgeHeader `json:"-"`
	Body    string       `json:"-"`
}

// An EdgeSubject is what the variable in a path identifies.
type EdgeSubject string

// The subjects.
const (
	EdgeBoard  EdgeSubject = "board"
	EdgeList   EdgeSubject = "list"
	EdgeUser   EdgeSubject = "user"
	EdgeWhole  EdgeSubject = "whole"  // the whole graph
	EdgeStored EdgeSubject = "stored" // an object: the path is the key
)

// An EdgeRoute is a row of the table. Under APIEFP it stands for all routes that edges treat
// alike, and Route is the first of them.
type EdgeRoute struct {
	Route   *Route      `json:"-"`
	Path    string      `json:"path"` // matches a whole path without its first slash; the first group is the variable
	Subject EdgeSubject `json:"subject,omitempty"`
	Legal   string      `json:"legal,omitempty"`   // matches a legal variable
	Problem string      `json:"problem,omitempty"` // answers any other
	Caching string      `json:"caching,omitempty"` // Cache-Control
	Absent  string      `json:"absent,omitempty"`  // name of the problem that answers if the object does not exist
	Params  []Param     `json:"params,omitempty"`
	Most    int         `json:"most,omitempty"` // largest limit
	// Variant is the key of the object with another limit than the default. It has the
	// variables {board} and {limit}.
	Variant string `json:"variant,omitempty"`

	Computed bool     `json:"computed,omitempty"` // the fallback answers, or without one Empty or the problem Unavailable
	Post     bool     `json:"post,omitempty"`     // its method is POST, and its body is for the fallback
	Other    bool     `json:"other,omitempty"`    // the second group of Path is another user
	Unknown  bool     `json:"unknown,omitempty"`  // an address without an object has the object UnknownKey, filled in
	Default  int      `json:"default,omitempty"`  // limit, if it is not EdgeParam.Default
	Empty    EdgeBody `json:"empty,omitzero"`     // what Config.WithoutFallback answers

	// Direct matches the URL paths, first slash included, that are keys as they stand. Names have
	// several spellings, so for users it matches addresses, and nothing where an address may
	// be answered by EmptySearch.
	Direct string `json:"-"`
	// Variants are the objects of Variant, by board.
	Variants []EdgeVariant `json:"-"`
}

// An EdgeVariant is the leaderboards of one board with another limit than the default.
// The path of each is Folder and the query of the request.
type EdgeVariant struct {
	Board  Board
	URI    string // matches path and query of a request that one of them answers
	Folder string // URL path
}

// anyVariable matches a variable that Legal or the edge itself checks.
const anyVariable = "[^/]*"

// PathOf matches the URL paths of the route, first slash included, whose user or list
// matches an expression.
func (r EdgeRoute) PathOf(variable string) string {
	before, after := r.AroundVariable()
	return before + "(" + variable + ")" + after
}

// AroundVariable returns the expressions for the parts of a URL path before and after
// the user or list.
func (r EdgeRoute) AroundVariable() (before, after string) {
	path := "/" + strings.TrimSuffix(strings.TrimPrefix(r.Path, "^"), "$")
	before, after, _ = strings.Cut(path, "("+anyVariable+")")
	return before, after
}

// An EdgeParam defines a query parameter. A value that is its default makes no
// difference; a number is Default then, a text is empty.
type EdgeParam struct {
	Legal   string `json:"legal"`             // matches a legal value
	Problem string `json:"problem,omitempty"` // answers any other
	Number  bool   `json:"number,omitempty"`
	Least   int    `json:"least,omitempty"` // of a number
	Most    int    `json:"most,omitempty"`  // stands for all larger numbers; 0 means EdgeRoute.Most
	Default int    `json:"default,omitempty"`
	Only    string `json:"only,omitempty"` // matches the values that make a difference; empty for numbers and texts

	// Only under APIEFP.
	AnyCase bool `json:"anyCase,omitempty"` // Only is compared with the value in lower case
	List    bool `json:"list,omitempty"`    // texts with encoded commas between them; empty ones make no difference
	Flag    bool `json:"flag,omitempty"`    // may be repeated; it makes a difference if any of its values matches Only
	User    bool `json:"user,omitempty"`    // address or name; a request without one has the problem
	// Selects says that the answer without the parameter has other entries than the one with it.
	// So an edge without a fallback must not give the former for the latter.
	Selects bool `json:"selects,omitempty"`
}

// Edge returns the table of the site's routes and parameters.
func (c Config) Edge() Edge {
	e := Edge{
		Params: map[Param]EdgeParam{}, Problems: map[string]EdgeError{},
		Space: "(?:" + edgeSpace() + ")", Unsafe: edgeUnsafe(),
		Every: edgeHeaders(EveryHeader()), Preflight: edgeHeaders(c.PreflightHeaders()),
		Empty: edgeBody(EmptySearch),
	}
	for _, r := range c.Routes() {
		e.Routes = append(e.Routes, c.edgeRoute(r))
	}
	if c.EFP() {
		e.Routes, e.Lookup = GroupAlike(e.Routes), c.Names == NamesLookup
	}
	for name, rule := range c.Params() {
		p := edgeParam(rule)
		p.Selects = c.EFP() && selects(name, rule)
		e.Params[name] = p
	}
	for _, p := range c.Problems() {
		e.Problems[p.Name] = edgeError(p)
	}
	return e
}

func edgeBody(body string) EdgeBody {
	return EdgeBody{body, `"` + Sum([]byte(body)).String() + `"`}
}

func edgeHeaders(headers []Header) []EdgeHeader {
	lower := make([]EdgeHeader, len(headers))
	for i, h := range headers {
		lower[i] = EdgeHeader{strings.ToLower(h.Name), h.Value}
	}
	return lower
}

func edgeError(p *Problem) EdgeError {
	e := EdgeError{Status: p.Status, Title: http.StatusText(p.Status), Detail: p.Detail, Caching: p.CacheControl, Body: string(p.Body())}
	e.Headers = []EdgeHeader{{"content-type", contentProblem}, {"cache-control", p.CacheControl}}
	switch p.Status {
	case http.StatusMethodNotAllowed:
		e.Headers = append(e.Headers, EdgeHeader{"allow", p.Allow()})
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		e.Headers = append(e.Headers, EdgeHeader{"retry-after", strconv.Itoa(int(RetryAfter.Seconds()))})
	}
	return e
}

func edgeParam(rule ParamRule) EdgeParam {
	e := EdgeParam{Least: rule.Least, Default: rule.Default}
	if rule.Problem != nil {
		e.Problem = rule.Problem.Name
	}
	switch rule.Kind {
	case ParamNumber:
		e.Number, e.Most, e.Legal = true, rule.Most, "^[0-9]{1,"+strconv.Itoa(maxNumberDigits)+"}$"
	case ParamText:
		e.Legal = "^(?:[^%]|%..){0," + strconv.Itoa(rule.Most) + "}$"
	case ParamList:
		e.List = true
	case ParamFlag:
		e.Flag, e.Only = true, "(?:^|%2C)"+normalForm(rule.Values[0])+"(?:%2C|$)"
	case ParamUser:
		e.User, e.Legal = true, "."
	default:
		e.AnyCase = rule.AnyCase
		e.Only = "^(?:" + alternatives(rule.Values, normalForm) + ")$"
		if rule.Problem != nil {
			e.Legal = "^(?:" + alternatives(append([]string{rule.Neutral}, rule.Values...), normalForm) + ")$"
		}
	}
	return e
}

func (c Config) edgeRoute(r *Route) EdgeRoute {
	e := EdgeRoute{Route: r, Subject: r.subject, Caching: r.CacheControl, Absent: NoSuchRoute.Name, Params: r.Params}
	accept, legal := c.keyExpression, ""
	switch r.subject {
	case EdgeBoard:
		e.Variant, e.Variants = RouteLeaderboardLimit.Route().Pattern, c.edgeVariants()
	case EdgeList:
		e.Absent = NoSuchList.Name
		legal = "(?:" + c.keyExpression("token_id") + ")"
		e.Legal, e.Problem = "^"+legal+"$", BadTokenID.Name
	case EdgeUser:
		e.Absent = NoSuchName.Name
	}
	if slices.Contains(r.Params, ParamLimit) {
		e.Default, e.Most = c.Limits(r)
		if e.Default == DefaultLimit {
			e.Default = 0
		}
	}
	if c.EFP() {
		c.edgeEFP(&e)
	}
	if e.Subject == EdgeList || e.Subject == EdgeUser {
		accept = func(string) string { return anyVariable } // a malformed one is this route's problem
	}
	segments := slices.Clone(r.segments)
	for i, s := range segments {
		before, variable, after := cutVariable(s)
		segments[i] = regexp.QuoteMeta(before)
		if variable != "" {
			segments[i] += "(" + accept(variable) + ")" + regexp.QuoteMeta(after)
		}
	}
	path := strings.Join(segments, "/")
	if r.underAPI {
		path = regexp.QuoteMeta(c.BasePath) + "/" + path
	}
	e.Path = "^" + path + "$"
	if e.Unknown {
		legal = c.keyExpression("address")
	}
	if !e.Computed && (e.Subject != EdgeUser || e.Unknown) {
		e.Direct = "/" + strings.Replace(path, "("+anyVariable+")", legal, 1)
	}
	return e
}

func (c Config) edgeVariants() []EdgeVariant {
	var all []EdgeVariant
	for _, board := range c.Boards() {
		key := LeaderboardLimitKey(board, 1).URLPath()
		all = append(all, EdgeVariant{
			Board:  board,
			URI:    regexp.QuoteMeta(c.LeaderboardKey(board).URLPath()) + `\?` + string(ParamLimit) + "=(?:" + c.keyExpression("limit") + ")",
			Folder: key[:strings.LastIndex(key, "/")+1],
		})
	}
	return all
}

// keyExpression is keySegment as a regular expression.
func (c Config) keyExpression(variable string) string {
	if words := c.words(variable); words != nil {
		return alternatives(words, strings.Clone)
	}
	switch variable {
	case "token_id":
		return "0|[1-9][0-9]{0," + strconv.Itoa(MaxTokenIDDigits-1) + "}"
	case "address":
		return "0x[0-9a-f]{40}"
	case "other":
		return anyVariable
	case "limit":
		return upTo(strconv.Itoa(c.LeaderboardMax))
	case "number":
		return "0|[1-9][0-9]{0," + strconv.Itoa(maxNumberDigits-1) + "}"
	case "asset":
		return assetName
	case "date":
		return reportDate
	case "hash":
		return "[0-9a-f]{1," + strconv.Itoa(maxHashDigits) + "}"
	}
	panic("site: no expression for the variable {" + variable + "}")
}

func alternatives(all []string, text func(string) string) string {
	quoted := make([]string, len(all))
	for i, a := range all {
		quoted[i] = regexp.QuoteMeta(text(a))
	}
	return strings.Join(quoted, "|")
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

var (
	edgeSpace  = sync.OnceValue(func() string { return normalForms(unicode.IsSpace) })
	edgeUnsafe = sync.OnceValue(func() string { return normalForms(unsafeInName) })
)

// normalForms matches the normal form of any character of a set. Characters that differ
// only in the last digit share an alternative, because CloudFront limits the length.
func normalForms(in func(rune) bool) string {
	var all []string
	for r := range unicode.MaxRune {
		if !in(r) {
			continue
		}
		form := normalForm(string(r))
		prefix, digit := form[:len(form)-1], form[len(form)-1:]
		if last := len(all) - 1; last >= 0 && strings.HasPrefix(all[last], prefix+"[") {
			all[last] = strings.TrimSuffix(all[last], "]") + digit + "]"
		} else {
			all = append(all, prefix+"["+digit+"]")
		}
	}
	return strings.ReplaceAll(strings.Join(all, "|"), "[0123456789ABCDEF]", ".")
}

// normalForm returns the normal form that Edge describes.
func normalForm(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; plainPath(text[i:i+1]) && c != '/' || c == '~' || c == '=' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
