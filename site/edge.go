package site

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// An EdgeAction is what an edge (a cache or a CDN before the bucket) does with a
// request.
type EdgeAction int

// The things an edge can do.
const (
	EdgeObject    EdgeAction = iota // answer with the object EdgeAnswer.Key, or as Absent says
	EdgeFallback                    // ask the fallback for EdgeAnswer.Forward
	EdgePreflight                   // answer 204 and the CORS headers
	EdgeProblem                     // answer with the body of EdgeAnswer.Problem
)

// An EdgeAnswer says where a request goes at an edge.
type EdgeAnswer struct {
	Action  EdgeAction
	Route   *Route   // nil for a preflight and for a path that no route has
	Key     Key      // of EdgeObject; and what an edge without a fallback answers with instead
	Absent  *Problem // what answers if there is no object Key; nil means EmptySearch
	Problem *Problem // of EdgeProblem
	Forward string   // of EdgeFallback: path and query in their normal form, which is also the key of a cache
	Fresh   bool     // the answer must not come out of a cache, nor go into one
}

// AtEdge says where a request goes. It is Resolve, told as an edge can do it: what
// Resolve makes out of objects, an edge has the fallback make. Edges cannot call it:
// they have the same decision as text, from Config.Edge, and tests hold them to this.
func (c Config) AtEdge(method, path, rawQuery string) EdgeAnswer {
	r := c.Resolve(method, path, rawQuery)
	a := EdgeAnswer{Route: r.Route, Key: r.Key, Absent: r.Absent, Problem: r.Problem, Fresh: r.Fresh}
	switch {
	case r.Action == AnswerPreflight:
		a.Action = EdgePreflight
	case r.Action == AnswerProblem:
		a.Action = EdgeProblem
	case r.Action == AnswerWithoutTags, r.Action == AnswerSearch, r.Fresh:
		a.Action, a.Forward = EdgeFallback, r.Key.escapedPath()+"?"+r.query().Encode()
	}
	return a
}

// query holds the parameters that tell the request from others of its path.
// Defaults are left out, so that equal requests have equal queries.
func (r Resolution) query() url.Values {
	values := url.Values{}
	set := func(p Param, value string, isDefault bool) {
		if !isDefault {
			values.Set(string(p), value)
		}
	}
	set(ParamIncludeTags, "false", r.Action != AnswerWithoutTags)
	set(ParamCache, "fresh", !r.Fresh)
	if r.Action == AnswerSearch {
		set(ParamLimit, strconv.Itoa(r.Search.Limit), r.Search.Limit == DefaultLimit)
		set(ParamOffset, strconv.Itoa(r.Search.Offset), r.Search.Offset == 0)
		set(ParamTerm, r.Search.Term, r.Search.Term == "")
	}
	return values
}

// escapedPath is the path of a URL whose decoded path is the key.
func (k Key) escapedPath() string {
	segments := strings.Split(string(k), "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return "/" + strings.Join(segments, "/")
}

// An Edge is the table of routes as edges need it: in regular expressions and
// text. The configurations of all edges are made of it.
//
// Paths and values are brought into a normal form first: each segment, and each
// value, percent-encoded once, with upper-case digits, but for letters, digits and
// -._~= which stand for themselves. Texts are the same bytes if their normal forms
// are.
type Edge struct {
	Routes   []EdgeRoute          `json:"routes"`
	Params   map[Param]EdgeParam  `json:"params"`
	Problems map[string]EdgeError `json:"problems"`
	Space    string               `json:"space"`  // white space, which at the ends of a term does not count
	Unsafe   string               `json:"unsafe"` // what no name holds

	Every     []EdgeHeader `json:"every"`          // headers of every answer
	Preflight []EdgeHeader `json:"preflight"`      // and of those to OPTIONS
	Empty     EdgeBody     `json:"empty,omitzero"` // EmptySearch
}

// An EdgeHeader is a header, its name in lower case.
type EdgeHeader struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// An EdgeBody is an answer that an edge gives by itself.
type EdgeBody struct {
	Body string `json:"body"`
	ETag string `json:"etag"`
}

// An EdgeError is the answer to a problem: the body is the object _errors/{name}.
type EdgeError struct {
	Status  int          `json:"status"`
	Title   string       `json:"title"`
	Detail  string       `json:"detail"`
	Caching string       `json:"caching"` // Cache-Control
	Headers []EdgeHeader `json:"-"`
	Body    string       `json:"-"`
}

// An EdgeSubject is what the variable of a path stands for.
type EdgeSubject string

// The subjects.
const (
	EdgeBoard  EdgeSubject = "board"
	EdgeList   EdgeSubject = "list"
	EdgeUser   EdgeSubject = "user"
	EdgeStored EdgeSubject = "stored" // none: the path is the key
)

// An EdgeRoute is a row of the table.
type EdgeRoute struct {
	Route   *Route      `json:"-"`
	Path    string      `json:"path"` // matches a whole path without its first slash; the group is the variable
	Subject EdgeSubject `json:"subject"`
	Legal   string      `json:"legal,omitempty"` // matches the variable of a request that is no Problem
	Problem string      `json:"problem,omitempty"`
	Caching string      `json:"caching,omitempty"` // Cache-Control
	Absent  string      `json:"absent,omitempty"`  // name of the problem that answers if there is no object
	Params  []Param     `json:"params,omitempty"`
	Most    int         `json:"most,omitempty"` // the largest limit
	// Variant is the key of the object with another limit than the default, {board} and {limit} to be filled in.
	Variant string `json:"variant,omitempty"`
}

// An EdgeParam is what a query parameter may be. One that has its default value, or
// a value other than Only, makes no difference.
type EdgeParam struct {
	Legal   string `json:"legal"` // matches the values that are no Problem
	Problem string `json:"problem,omitempty"`
	Number  bool   `json:"number,omitempty"`
	Least   int    `json:"least,omitempty"` // of a number
	Most    int    `json:"most,omitempty"`  // a larger number means this one; 0 for the limit, where the route says it
	Default int    `json:"default,omitempty"`
	Only    string `json:"only,omitempty"` // the one value that makes a difference
}

// Edge is the table of the site's routes.
func (c Config) Edge() Edge {
	e := Edge{
		Params: edgeParams(), Problems: map[string]EdgeError{},
		Space: "(?:" + edgeSpace() + ")", Unsafe: edgeUnsafe(),
		Every: edgeHeaders(EveryHeader()), Preflight: edgeHeaders(PreflightHeaders()),
		Empty: EdgeBody{EmptySearch, `"` + Sum([]byte(EmptySearch)).String() + `"`},
	}
	for _, r := range routes {
		e.Routes = append(e.Routes, c.edgeRoute(r))
	}
	for _, p := range Problems() {
		e.Problems[p.Name] = edgeError(p)
	}
	return e
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
		e.Headers = append(e.Headers, EdgeHeader{"allow", AllowedMethods})
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		e.Headers = append(e.Headers, EdgeHeader{"retry-after", strconv.Itoa(int(RetryAfter.Seconds()))})
	}
	return e
}

func edgeParams() map[Param]EdgeParam {
	number := "^[0-9]{1," + strconv.Itoa(maxNumberDigits) + "}$"
	return map[Param]EdgeParam{
		ParamLimit:       {Legal: number, Problem: BadLimit.Name, Number: true, Least: 1, Default: DefaultLimit},
		ParamOffset:      {Legal: number, Problem: BadOffset.Name, Number: true, Most: maxOffset},
		ParamTerm:        {Legal: "^(?:[^%]|%..){0," + strconv.Itoa(MaxTermBytes) + "}$", Problem: BadTerm.Name},
		ParamIncludeTags: {Legal: "^(?:true|false)$", Problem: BadIncludeTags.Name, Only: "false"},
		ParamCache:       {Legal: "", Only: "fresh"},
	}
}

func (c Config) edgeRoute(r *Route) EdgeRoute {
	e := EdgeRoute{Route: r, Subject: EdgeStored, Caching: r.CacheControl, Absent: NoSuchRoute.Name, Params: r.Params}
	accept := c.keyExpression
	switch r.ID {
	case RouteLeaderboard:
		e.Subject, e.Most, e.Variant = EdgeBoard, c.LeaderboardMax, RouteLeaderboardLimit.Route().Pattern
	case RouteRecords, RouteDetails, RouteBadges, RouteListSearch:
		e.Subject, e.Absent, e.Most = EdgeList, NoSuchList.Name, SearchMax
		e.Legal, e.Problem = "^(?:"+c.keyExpression("token_id")+")$", BadTokenID.Name
		accept = func(string) string { return "[^/]*" } // a malformed list is this route's problem
	case RouteUserSearch:
		e.Subject, e.Absent, e.Most = EdgeUser, NoSuchName.Name, SearchMax
		accept = func(string) string { return "[^/]*" }
	}
	segments := slices.Clone(r.segments)
	for i, s := range segments {
		fixed, variable, isVariable := strings.Cut(s, "{")
		segments[i] = regexp.QuoteMeta(fixed)
		if isVariable {
			segments[i] += "(" + accept(strings.TrimSuffix(variable, "}")) + ")"
		}
	}
	path := strings.Join(segments, "/")
	if r.underAPI {
		path = regexp.QuoteMeta(c.BasePath) + "/" + path
	}
	e.Path = "^" + path + "$"
	return e
}

// keyExpression is keySegment as a regular expression.
func (c Config) keyExpression(variable string) string {
	switch variable {
	case "board":
		return alternatives(Boards(), func(b Board) string { return string(b) })
	case "token_id":
		return "0|[1-9][0-9]{0," + strconv.Itoa(MaxTokenIDDigits-1) + "}"
	case "limit":
		return upTo(strconv.Itoa(c.LeaderboardMax))
	case "number":
		return "0|[1-9][0-9]{0," + strconv.Itoa(maxNumberDigits-1) + "}"
	case "hash":
		return "[0-9a-f]{1," + strconv.Itoa(maxHashDigits) + "}"
	case "problem":
		return alternatives(Problems(), func(p *Problem) string { return p.Name })
	}
	panic("site: no expression for the variable {" + variable + "}")
}

func alternatives[T any](all []T, text func(T) string) string {
	quoted := make([]string, len(all))
	for i, a := range all {
		quoted[i] = regexp.QuoteMeta(text(a))
	}
	return strings.Join(quoted, "|")
}

// upTo matches the canonical decimals from 1 to a number: all that are shorter,
// and for each of its digits those that are less there and equal before.
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

// normalForms matches the normal form of any character of a set. Those that differ in
// the last digit only share an alternative: CloudFront counts the bytes.
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
