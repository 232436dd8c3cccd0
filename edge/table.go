package edge

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/site/settings"
)

// A Table holds routes and parameters as text and regular expressions, for the configurations of all edges.
//
// The expressions match normal forms (site.NormalForm).
type Table struct {
	Routes   []Row                `json:"routes"`
	Params   map[site.Param]Param `json:"params"`
	Problems map[string]Problem   `json:"problems"`
	Space    string               `json:"space"`  // matches a white-space character, which is trimmed from texts
	Unsafe   string               `json:"unsafe"` // matches a character that no name has

	Every     Headers `json:"every"`          // headers of every answer
	Preflight Headers `json:"preflight"`      // headers of an answer to OPTIONS
	Empty     Answer  `json:"empty,omitzero"` // EmptySearch

	// Lookup means that names have no objects: only the fallback can answer for them.
	Lookup bool `json:"lookup,omitempty"`
}

// Direct returns the routes that have Row.Direct, the most popular first.
func (e Table) Direct() []Row {
	var users, lists, others []Row
	for _, r := range e.Routes {
		switch {
		case r.Direct == "":
		case r.Subject == SubjectUser:
			users = append(users, r)
		case r.Subject == SubjectList:
			lists = append(lists, r)
		default:
			others = append(others, r)
		}
	}
	return slices.Concat(users, lists, others)
}

// A Header is a header. Its name is in lower case.
type Header struct{ Name, Value string }

// Headers are headers in their order. As JSON they are an object.
type Headers []Header

// MarshalJSON returns an object with a member for each header.
func (h Headers) MarshalJSON() ([]byte, error) {
	all := map[string]string{}
	for _, header := range h {
		all[header.Name] = header.Value
	}
	return json.Marshal(all)
}

// An Answer is an answer that the edge holds in its configuration.
type Answer struct {
	Body string `json:"body"`
	ETag string `json:"etag,omitempty"`
}

// A Problem is the answer to a problem: the body is the object _errors/{name}.
type Problem struct {
	Status  int      `json:"status"`
	Title   string   `json:"title,omitempty"`
	Detail  string   `json:"detail"`
	Caching string   `json:"caching,omitempty"` // Cache-Control
	Headers []Header `json:"-"`
	Body    string   `json:"-"`
}

// A Subject is the kind of thing that the variable of a path identifies.
type Subject string

// The subjects.
const (
	SubjectBoard  Subject = "board"
	SubjectList   Subject = "list"
	SubjectUser   Subject = "user"
	SubjectWhole  Subject = "whole"  // the whole graph
	SubjectStored Subject = "stored" // an object: the path is the key
)

// A Row is a row of the table. Under APIEFP it stands for all routes that edges treat alike; Route
// is the first of them.
type Row struct {
	Route   *site.Route  `json:"-"`
	Path    string       `json:"path"` // matches a whole path without its first slash; the first group is the variable
	Subject Subject      `json:"subject,omitempty"`
	Legal   string       `json:"legal,omitempty"`   // matches a legal variable
	Problem string       `json:"problem,omitempty"` // the answer to any other value
	Caching string       `json:"caching,omitempty"` // Cache-Control
	Absent  string       `json:"absent,omitempty"`  // name of the problem that answers if the object does not exist
	Params  []site.Param `json:"params,omitempty"`
	Tagged  bool         `json:"tagged,omitempty"` // without a tag and a direction the answer is BadRelationships
	Most    int          `json:"most,omitempty"`   // largest limit
	// Variant is the key of the object with another limit than the default. It has the
	// variables {board} and {limit}.
	Variant string `json:"variant,omitempty"`

	Computed bool   `json:"computed,omitempty"` // the fallback answers, or without one Empty or the problem Unavailable
	Post     bool   `json:"post,omitempty"`     // its method is POST, and its body is for the fallback
	Ranges   bool   `json:"ranges,omitempty"`   // parts of the object can be read
	Other    bool   `json:"other,omitempty"`    // the second group of Path is another user
	Unknown  bool   `json:"unknown,omitempty"`  // an address without an object has the object UnknownKey, filled in
	Default  int    `json:"default,omitempty"`  // limit, if it is not Param.Default
	Empty    Answer `json:"empty,omitzero"`     // answer without a fallback

	// Direct matches URL paths, with the first slash, that equal keys. For users it matches addresses alone, because names
	// have several spellings, and nothing if EmptySearch may answer for an address.
	Direct string `json:"-"`
	// Variants are the objects of Variant, by board.
	Variants []Variant `json:"-"`
}

// A Variant describes the objects of a board with another limit than the default. The path of each is Folder and the
// query of the request.
type Variant struct {
	Board  site.Board
	URI    string // matches path and query of requests for one of these objects
	Folder string // URL path
}

// anyVariable matches a variable that Legal or the edge itself checks.
const anyVariable = "[^/]*"

// PathOf matches the URL paths of the route, first slash included, whose user or list
// matches an expression.
func (r Row) PathOf(variable string) string {
	path := "/" + strings.TrimSuffix(strings.TrimPrefix(r.Path, "^"), "$")
	before, after, _ := strings.Cut(path, "("+anyVariable+")")
	return before + "(" + variable + ")" + after
}

// A Param defines a query parameter. Default is the default of a number; that of a text is empty.
type Param struct {
	Legal   string `json:"legal,omitempty"`   // matches a legal value; empty matches any
	Problem string `json:"problem,omitempty"` // answers any other
	Number  bool   `json:"number,omitempty"`
	Least   int    `json:"least,omitempty"` // smallest number
	Most    int    `json:"most,omitempty"`  // stands for all larger numbers; 0 means Row.Most
	Default int    `json:"default,omitempty"`
	Only    string `json:"only,omitempty"` // matches the values that make a difference; empty for numbers and texts

	// Only under APIEFP.
	AnyCase bool     `json:"anyCase,omitempty"` // Only is compared with the value in lower case
	List    bool     `json:"list,omitempty"`    // texts with encoded commas between them; empty ones make no difference
	Words   []string `json:"words,omitempty"`   // a list of these; it may be repeated, and other words make no difference
	User    bool     `json:"user,omitempty"`    // address or name
	Exact   bool     `json:"exact,omitempty"`   // any text, as it is
	// Selects means that the parameter selects entries. So an edge without a fallback must not ignore it.
	Selects bool `json:"selects,omitempty"`
}

// TableOf returns the table of a site's routes and parameters.
func TableOf(c site.Config) Table {
	e := Table{
		Params: map[site.Param]Param{}, Problems: map[string]Problem{},
		Space: "(?:" + space() + ")", Unsafe: unsafe(),
		Every:     headersOf(append(site.EveryHeader(), site.Header{Name: settings.Header, Value: settings.Digest(c)})),
		Preflight: headersOf(c.PreflightHeaders()),
		Empty:     bodyOf(site.EmptySearch),
	}
	for _, r := range c.Routes() {
		e.Routes = append(e.Routes, rowOf(c, r))
	}
	if c.EFP() {
		e.Routes, e.Lookup = groupAlike(e.Routes), c.Names == site.NamesLookup
	}
	for name, rule := range c.Params() {
		p := paramOf(rule)
		p.Selects = c.EFP() && selects(name, rule)
		e.Params[name] = p
	}
	for _, p := range c.Problems() {
		e.Problems[p.Name] = problemOf(p)
	}
	return e
}

func bodyOf(body string) Answer {
	return Answer{body, `"` + site.Sum([]byte(body)).String() + `"`}
}

func headersOf(headers []site.Header) Headers {
	lower := make([]Header, len(headers))
	for i, h := range headers {
		lower[i] = Header{strings.ToLower(h.Name), h.Value}
	}
	return lower
}

func problemOf(p *site.Problem) Problem {
	e := Problem{Status: p.Status, Title: p.Title(), Detail: p.Detail, Caching: p.CacheControl, Body: string(p.Body())}
	e.Headers = []Header{{"content-type", site.RouteBy(routes.Error).ContentType}, {"cache-control", p.CacheControl}}
	switch p.Status {
	case site.MethodNotAllowed.Status:
		e.Headers = append(e.Headers, Header{"allow", p.Allow()})
	case site.Unavailable.Status, site.TooManyRefreshes.Status:
		e.Headers = append(e.Headers, Header{"retry-after", strconv.Itoa(int(site.RetryAfter.Seconds()))})
	}
	return e
}

func paramOf(rule site.ParamRule) Param {
	e := Param{Least: rule.Least, Default: rule.Default}
	if rule.Problem != nil {
		e.Problem = rule.Problem.Name
	}
	switch rule.Kind {
	case site.ParamNumber:
		e.Number, e.Most, e.Legal = true, rule.Most, "^[0-9]{1,"+strconv.Itoa(site.MaxNumberDigits)+"}$"
	case site.ParamText:
		e.Legal = "^(?:[^%]|%..){0," + strconv.Itoa(rule.Most) + "}$"
	case site.ParamList:
		e.List = true
	case site.ParamWords:
		e.Words = rule.Values
	case site.ParamExact:
		e.Exact = true
	case site.ParamUser:
		e.User, e.Legal = true, "."
	default:
		e.AnyCase = rule.AnyCase
		e.Only = "^" + alternatives(rule.Values, site.NormalForm) + "$"
		if word := rule.AnyCaseOf; word != "" {
			e.Only = strings.Replace(e.Only, word, anyCase(word), 1)
		}
		if rule.Problem != nil {
			e.Legal = "^" + alternatives(append([]string{rule.Neutral}, rule.Values...), site.NormalForm) + "$"
		}
	}
	return e
}

// anyCase matches a word of letters from a to z in any letter case.
func anyCase(word string) string {
	var expression strings.Builder
	for _, letter := range word {
		fmt.Fprintf(&expression, "[%c%c]", unicode.ToUpper(letter), letter)
	}
	return expression.String()
}

func rowOf(c site.Config, r *site.Route) Row {
	e := Row{Route: r, Subject: subjectOf(r), Caching: r.CacheControl, Absent: site.NoSuchRoute.Name, Params: r.Params, Ranges: r.Ranges}
	accept, legal := c.Expression, ""
	switch e.Subject {
	case SubjectBoard:
		e.Variant, e.Variants = site.RouteBy(routes.LeaderboardLimit).Pattern, variants(c)
	case SubjectList:
		e.Absent = site.NoSuchList.Name
		legal = "(?:" + c.Expression("token_id") + ")"
		e.Legal, e.Problem = "^"+legal+"$", site.BadTokenID.Name
	case SubjectUser:
		e.Absent = site.NoSuchName.Name
	}
	if slices.Contains(r.Params, site.ParamLimit) {
		e.Default, e.Most = c.Limits(r)
		if e.Default == site.DefaultLimit {
			e.Default = 0
		}
	}
	if c.EFP() {
		e.Computed, e.Post, e.Unknown = r.Computed, r.Post, r.HasUnknown()
		e.Other, e.Tagged = strings.Contains(r.Pattern, "/{other}/"), r.ID == routes.Relationships
		if empty, ok := emptyPages[r.ID]; ok {
			e.Empty = bodyOf(empty)
		}
	}
	if e.Subject == SubjectList || e.Subject == SubjectUser {
		accept = func(string) string { return anyVariable } // a malformed one is this route's problem
	}
	segments := strings.Split(strings.TrimPrefix(r.Pattern, "{base}/"), "/")
	for i, s := range segments {
		before, rest, _ := strings.Cut(s, "{")
		variable, after, _ := strings.Cut(rest, "}")
		segments[i] = regexp.QuoteMeta(before)
		switch variable {
		case "":
		case "other":
			segments[i] += "(" + anyVariable + ")"
		default:
			segments[i] += "(" + accept(variable) + ")" + regexp.QuoteMeta(after)
		}
	}
	path := strings.Join(segments, "/")
	if r.UnderAPI() {
		path = regexp.QuoteMeta(c.BasePath) + "/" + path
	}
	e.Path = "^" + path + "$"
	if e.Unknown {
		legal = c.Expression("address")
	}
	if !e.Computed && (e.Subject != SubjectUser || e.Unknown) {
		e.Direct = "/" + strings.Replace(path, "("+anyVariable+")", legal, 1)
	}
	return e
}

func subjectOf(r *site.Route) Subject {
	switch {
	case !r.UnderAPI():
		return SubjectStored
	case r.Subject == "":
		return SubjectWhole
	}
	return map[string]Subject{"board": SubjectBoard, "token_id": SubjectList, "user": SubjectUser}[r.Subject]
}

func alternatives(all []string, text func(string) string) string {
	quoted := make([]string, len(all))
	for i, a := range all {
		quoted[i] = regexp.QuoteMeta(text(a))
	}
	if len(quoted) == 1 {
		return quoted[0]
	}
	return "(?:" + strings.Join(quoted, "|") + ")"
}

func variants(c site.Config) []Variant {
	var all []Variant
	for _, board := range c.Boards() {
		key := site.LeaderboardLimitKey(board, 1).URLPath()
		all = append(all, Variant{
			Board:  board,
			URI:    regexp.QuoteMeta(c.LeaderboardKey(board).URLPath()) + `\?` + string(site.ParamLimit) + "=(?:" + c.Expression("limit") + ")",
			Folder: key[:strings.LastIndex(key, "/")+1],
		})
	}
	return all
}

var (
	space  = sync.OnceValue(func() string { return normalForms(unicode.IsSpace) })
	unsafe = sync.OnceValue(func() string { return normalForms(site.UnsafeInName) })
)

// oneDigit matches a set of one digit, which the digit alone can replace.
var oneDigit = regexp.MustCompile(`\[(.)\]`)

// normalForms matches the normal form of any character of a set. For CloudFront's limit, characters that differ only in
// the last digit share an alternative.
func normalForms(in func(rune) bool) string {
	var all []string
	for r := range unicode.MaxRune {
		if !in(r) {
			continue
		}
		form := site.NormalForm(string(r))
		prefix, digit := form[:len(form)-1], form[len(form)-1:]
		if last := len(all) - 1; last >= 0 && strings.HasPrefix(all[last], prefix+"[") {
			all[last] = strings.TrimSuffix(all[last], "]") + digit + "]"
		} else {
			all = append(all, prefix+"["+digit+"]")
		}
	}
	short := strings.NewReplacer("[0123456789ABCDEF]", ".", "0123456789", "0-9").Replace(strings.Join(all, "|"))
	return oneDigit.ReplaceAllString(short, "$1")
}
