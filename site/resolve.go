package site

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// An Action is the way to answer a request.
type Action int

// The ways to answer.
const (
	AnswerObject      Action = iota // with the object Resolution.Key, or as Absent says
	AnswerWithoutTags               // with the records of the object Key, their tags left out, or as Absent says
	AnswerSearch                    // with a page or a term search, as Resolution.Search says
	AnswerPreflight                 // 204 and the CORS headers
	AnswerProblem                   // with Resolution.Problem
)

// A Resolution says what answers a request.
type Resolution struct {
	Action  Action
	Route   *Route   // nil for a preflight and for a path that no route has
	Key     Key      // the object that answers, or that the answer is made of
	Absent  *Problem // what answers if there is no object Key; nil means EmptySearch
	Problem *Problem // of AnswerProblem
	Search  Search   // of AnswerSearch
	TokenID string   // of a route with a list
	Fresh   bool     // the caller asks to refresh the object first (?cache=fresh)
}

// A Search is a following search that no single object answers.
type Search struct {
	TokenID string // list to search; "" means the primary list of User
	User    string // address in lower case or name in its normal form
	Limit   int    // 1 to SearchMax
	Offset  int    // from 0
	Term    string // folded and trimmed; "" matches every entry, one that is not UTF-8 none
}

// EmptySearch is the answer to a search that finds nothing.
const EmptySearch = `{"following":[]}`

// Resolve finds the answer to a request. path is the escaped path of the URL with
// its leading slash, rawQuery what follows the question mark. Any input is
// legal; a key in the result is always one that a site can have.
func (c Config) Resolve(method, path, rawQuery string) Resolution {
	switch method {
	case http.MethodGet, http.MethodHead:
	case http.MethodOptions:
		return Resolution{Action: AnswerPreflight}
	default:
		return Resolution{Action: AnswerProblem, Problem: MethodNotAllowed}
	}
	route, segments := c.match(path)
	if route == nil {
		return Resolution{Action: AnswerProblem, Problem: NoSuchRoute}
	}
	query, problem := parseQuery(route, rawQuery)
	if problem != nil {
		return Resolution{Action: AnswerProblem, Route: route, Problem: problem}
	}
	r := c.answer(route, segments, query)
	r.Route = route
	return r
}

// match finds the route of a path and the decoded segments below the base path.
func (c Config) match(path string) (*Route, []string) {
	path = strings.TrimPrefix(path, "/")
	segments := strings.Split(path, "/")
	for i, s := range segments {
		segments[i] = percentDecode(s)
	}
	base := strings.Split(c.BasePath, "/")
	underAPI := len(segments) > len(base)
	for i := 0; underAPI && i < len(base); i++ {
		underAPI = segments[i] == base[i]
	}
	if underAPI {
		segments = segments[len(base):]
	}
	for _, r := range routes {
		if r.underAPI != underAPI {
			continue
		}
		accept := c.keySegment
		if underAPI {
			accept = requestSegment
		}
		if r.matches(segments, accept) {
			return r, segments
		}
	}
	return nil, nil
}

// requestSegment accepts what a request may put where a pattern of the API has a
// variable: a malformed list or user is that route's error, a board that is not
// there is no route.
func requestSegment(variable, value string) bool {
	return variable != "board" || value == string(Followers) || value == string(Following)
}

func (c Config) answer(route *Route, segments []string, q query) Resolution {
	switch route.ID {
	case RouteLeaderboard:
		board := Board(segments[1])
		key := c.LeaderboardKey(board)
		if limit := min(q.limit, int64(c.LeaderboardMax)); limit != DefaultLimit {
			key = LeaderboardLimitKey(board, int(limit))
		}
		return Resolution{Key: key, Absent: NoSuchRoute}
	case RouteRecords, RouteDetails, RouteBadges, RouteListSearch:
		return c.answerList(segments[1], ListObject(segments[2]), q)
	case RouteUserSearch:
		return c.answerUser(segments[1], q)
	}
	return Resolution{Key: Key(strings.Join(segments, "/")), Absent: NoSuchRoute}
}

func (c Config) answerList(tokenID string, object ListObject, q query) Resolution {
	if !ValidTokenID(tokenID) {
		return Resolution{Action: AnswerProblem, Problem: BadTokenID}
	}
	r := Resolution{Key: c.ListKey(tokenID, object), Absent: NoSuchList, TokenID: tokenID, Fresh: q.fresh}
	switch {
	case q.withoutTags:
		r.Action = AnswerWithoutTags
	case object == SearchFollowing && !q.isDefaultSearch():
		r.Action, r.Search = AnswerSearch, q.search()
		r.Search.TokenID = tokenID
	}
	return r
}

func (c Config) answerUser(text string, q query) Resolution {
	user, absent := "", (*Problem)(nil)
	if address, err := ParseAddress(text); err == nil {
		user = address.String()
	} else if name, ok := NormalizeName(text); ok {
		user, absent = name, NoSuchName
	} else {
		return Resolution{Action: AnswerProblem, Problem: NoSuchName}
	}
	r := Resolution{Key: c.UserKey(user), Absent: absent}
	if !q.isDefaultSearch() {
		r.Action, r.Search = AnswerSearch, q.search()
		r.Search.User = user
	}
	return r
}

// query holds the parameters of a request, defaults filled in.
type query struct {
	limit, offset int64
	term          string
	withoutTags   bool
	fresh         bool
}

func (q query) isDefaultSearch() bool {
	return q.limit == DefaultLimit && q.offset == 0 && q.term == ""
}

func (q query) search() Search {
	return Search{Limit: int(min(q.limit, SearchMax)), Offset: int(min(q.offset, maxOffset)), Term: q.term}
}

// noTerm stands for every term that is not UTF-8. Names are, so it matches none.
const noTerm = "\xff"

// parseQuery reads the parameters that the route understands. Of a repeated
// parameter the first counts.
func parseQuery(route *Route, rawQuery string) (query, *Problem) {
	q := query{limit: DefaultLimit}
	seen := make(map[Param]bool, 4)
	for len(rawQuery) > 0 {
		var pair string
		pair, rawQuery, _ = strings.Cut(rawQuery, "&")
		name, value, _ := strings.Cut(pair, "=")
		param := Param(formDecode(name))
		if !route.understands(param) || seen[param] {
			continue
		}
		seen[param] = true
		if problem := q.set(param, formDecode(value)); problem != nil {
			return query{}, problem
		}
	}
	return q, nil
}

func (q *query) set(param Param, value string) *Problem {
	switch param {
	case ParamLimit:
		n, ok := parseNumber(value)
		if !ok || n < 1 {
			return BadLimit
		}
		q.limit = n
	case ParamOffset:
		n, ok := parseNumber(value)
		if !ok {
			return BadOffset
		}
		q.offset = n
	case ParamTerm:
		if len(value) > MaxTermBytes {
			return BadTerm
		}
		if !utf8.ValidString(value) {
			q.term = noTerm
			break
		}
		q.term = Fold(strings.TrimSpace(value))
	case ParamIncludeTags:
		if value != "true" && value != "false" {
			return BadIncludeTags
		}
		q.withoutTags = value == "false"
	case ParamCache:
		q.fresh = value == "fresh"
	}
	return nil
}

func parseNumber(text string) (int64, bool) {
	if text == "" || len(text) > maxNumberDigits || !allDigits(text) {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// formDecode decodes a part of a query string, where a plus means a space.
func formDecode(text string) string {
	return percentDecode(strings.ReplaceAll(text, "+", " "))
}

// percentDecode decodes percent-encoding once. As in the URL standard
// (url.spec.whatwg.org, "percent-decode"), a percent sign without two
// hexadecimal digits after it means itself: what is malformed ends up as an
// unknown name or a bad number, not as a failure of its own.
func percentDecode(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	if decoded, err := url.PathUnescape(text); err == nil {
		return decoded
	}
	decoded := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			hi, okHi := hexDigit(text[i+1])
			lo, okLo := hexDigit(text[i+2])
			if okHi && okLo {
				decoded = append(decoded, hi<<4|lo)
				i += 2
				continue
			}
		}
		decoded = append(decoded, text[i])
	}
	return string(decoded)
}
