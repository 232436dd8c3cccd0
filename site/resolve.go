package site

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// An Action is the way to answer a request.
type Action int

// The ways to answer.
const (
	AnswerObject      Action = iota // the object Resolution.Key, or Absent
	AnswerWithoutTags               // the records in the object Key without their tags, or Absent
	AnswerSearch                    // the search Resolution.Search, or Absent
	AnswerPreflight                 // status 204 and the CORS headers
	AnswerProblem                   // Resolution.Problem
)

// A Resolution says what answers a request.
type Resolution struct {
	Action  Action
	Route   *Route   // nil for a preflight and for a path that no route has
	Key     Key      // the object that answers, or that the answer is computed from
	Absent  *Problem // answers if the object Key does not exist; nil means EmptySearch
	Problem *Problem // of AnswerProblem
	Search  Search   // of AnswerSearch
	TokenID string   // of a route with a list
	Fresh   bool     // the caller asks to refresh the object first (?cache=fresh)

	// Query holds the parameters that Key does not answer, in their normal form: those
	// with another value than the default, by name. Equal requests have equal queries.
	Query string
}

// A Search is a following search that must be computed.
type Search struct {
	TokenID string // list to search; "" means the primary list of User
	User    string // address in lower case or name in its normal form
	Limit   int    // 1 to SearchMax
	Offset  int    // from 0
	Term    string // folded and trimmed; "" matches every entry, one that is not UTF-8 none
}

// EmptySearch is the answer to a search that finds nothing.
const EmptySearch = `{"following":[]}`

// Resolve says what answers a request. path is the escaped path of the URL with its
// leading slash, rawQuery what follows the question mark. Any input is legal. A key in
// the result is always one that a site can have.
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
	query, problem := c.parseQuery(route, rawQuery)
	if problem != nil {
		return Resolution{Action: AnswerProblem, Route: route, Problem: problem}
	}
	return c.answer(route, segments, query)
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

// requestSegment says which values of a variable lead a request to a route of the API:
// a malformed list or user is an error of the route, an unknown board is no route.
func requestSegment(variable, value string) bool {
	return variable != "board" || value == string(Followers) || value == string(Following)
}

func (c Config) answer(route *Route, segments []string, q query) Resolution {
	r := Resolution{Route: route, Query: q.encode(route), Absent: NoSuchRoute}
	switch route.subject {
	case EdgeBoard:
		board := Board(segments[1])
		r.Key = c.LeaderboardKey(board)
		// Each limit has an object of its own.
		if limit := q[ParamLimit]; limit != "" && r.Query == string(ParamLimit)+"="+limit {
			r.Key, r.Query = LeaderboardLimitKey(board, q.number(ParamLimit)), ""
		}
		return r
	case EdgeList:
		return c.answerList(r, segments[1], ListObject(segments[2]), q)
	case EdgeUser:
		return c.answerUser(r, segments[1], q)
	}
	r.Key = Key(strings.Join(segments, "/"))
	return r
}

func (c Config) answerList(r Resolution, tokenID string, object ListObject, q query) Resolution {
	if !ValidTokenID(tokenID) {
		return Resolution{Action: AnswerProblem, Route: r.Route, Problem: BadTokenID}
	}
	r.Key, r.Absent, r.TokenID, r.Fresh = c.ListKey(tokenID, object), NoSuchList, tokenID, q[ParamCache] != ""
	switch {
	case q[ParamIncludeTags] != "":
		r.Action = AnswerWithoutTags
	case object == SearchFollowing && r.Query != "":
		r.Action, r.Search = AnswerSearch, q.search()
		r.Search.TokenID = tokenID
	}
	return r
}

func (c Config) answerUser(r Resolution, text string, q query) Resolution {
	user := ""
	if address, err := ParseAddress(text); err == nil {
		user, r.Absent = address.String(), nil
	} else if name, ok := NormalizeName(text); ok {
		user, r.Absent = name, NoSuchName
	} else {
		return Resolution{Action: AnswerProblem, Route: r.Route, Problem: NoSuchName}
	}
	r.Key = c.UserKey(user)
	if r.Query != "" {
		r.Action, r.Search = AnswerSearch, q.search()
		r.Search.User = user
	}
	return r
}

func (q query) search() Search {
	return Search{Limit: q.number(ParamLimit), Offset: q.number(ParamOffset), Term: q[ParamTerm]}
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
// (url.spec.whatwg.org, "percent-decode"), a percent sign without two hexadecimal
// digits after it stands for itself. So malformed encoding is not an error of its own:
// it leads to an unknown name or a bad number.
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
