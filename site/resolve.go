package site

import (
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// An Action is a way to answer a request.
type Action int

// The actions.
const (
	AnswerObject      Action = iota // send the object Resolution.Key, or Absent
	AnswerWithoutTags               // send the records in the object Key without their tags, or Absent
	AnswerSearch                    // compute Resolution.Ask from search shards, or Absent
	AnswerPreflight                 // send status 204 and the CORS headers
	AnswerProblem                   // send Resolution.Problem
	AnswerComputed                  // compute Resolution.Ask; only under APIEFP
)

// A Resolution describes the response to a request.
type Resolution struct {
	Action  Action
	Route   *Route   // nil for a preflight and for an unknown path
	Key     Key      // the object to send, or to compute the answer from
	Absent  *Problem // response if the object Key does not exist; nil means EmptySearch, or Unknown
	Problem *Problem // for AnswerProblem
	Ask     Ask      // for AnswerSearch and AnswerComputed
	// Unknown is the object to send if Key does not exist, with UnknownAddress replaced by Address; "" means none.
	Unknown Key
	Address string
	TokenID string // token ID in a list route
	Fresh   bool   // refresh the object first (?cache=fresh)

	// Query has the parameters that Key does not cover, in normal form and sorted by name, without default values.
	// Equal requests have equal queries.
	Query string
}

// An Ask describes an answer that must be computed from other objects.
type Ask struct {
	TokenID string // the list in the path, or ""
	User    string // the user in the path, as a lower-case address or a normalized name, or ""
	Other   string // the second user in the path, in the same form
	Leader  string // the user of ?leader; unchanged if it is not a valid user; "" means User

	Limit     int    // at least 1
	Offset    int    // at least 0
	Term      string // folded and trimmed; "" matches every entry, invalid UTF-8 none
	TermRunes int    // length of the composed term in code points, before its letters are lowered
	Sort      string // in lower case; "" means the default
	Ascending bool   // reverse order
	Tags      string // separated by commas; entries need one of them; "" means all
	Incoming  bool   // relationships of the lists that hold the user, instead of the user's list

	// Additions by ?include: profiles, whether both accounts follow each other, and blocked or muted entries.
	ENS, Mutuals, Blocked, Muted bool

	// For operations, with Config.HistoryWindow.
	Interval time.Duration // how far back from the root's AsOf or from Start, whichever is earlier; the start is included
	Opcode   int           // 1 to 4; 0 means all
	Start    int           // latest time in seconds since 1970; -1 means no limit
	Tag      string        // exact tag, perhaps invalid UTF-8; "" means all; also for relationships
}

// EmptySearch is the answer to a search that finds nothing.
const EmptySearch = `{"following":[]}`

// Resolve determines the response to a request. path is the escaped path of the URL with its leading slash, rawQuery
// the part after the question mark. Any input is allowed. Keys in the result are always valid keys of a site.
func (c Config) Resolve(method, path, rawQuery string) Resolution {
	if method == http.MethodOptions {
		return Resolution{Action: AnswerPreflight}
	}
	route, segments := c.match(path)
	reads := method == http.MethodGet || method == http.MethodHead
	switch {
	case route == nil && (reads || c.EFP()):
		return Resolution{Action: AnswerProblem, Problem: NoSuchRoute}
	case route == nil || !route.Post && !reads:
		return Resolution{Action: AnswerProblem, Problem: MethodNotAllowed}
	case route.Post && method != http.MethodPost:
		return Resolution{Action: AnswerProblem, Problem: PostOnly}
	}
	query, problem := c.parseQuery(route, rawQuery)
	if problem != nil {
		return Resolution{Action: AnswerProblem, Route: route, Problem: problem}
	}
	return c.answer(route, segments, query)
}

// match finds the route of a path, and returns the decoded segments below the base path.
func (c Config) match(path string) (*Route, []string) {
	path = strings.TrimPrefix(path, "/")
	segments := strings.Split(path, "/")
	for i, s := range segments {
		segments[i] = percentDecode(s)
	}
	if c.Pages {
		segments = c.pageSegments(segments)
	}
	base := strings.Split(c.BasePath, "/")
	underAPI := len(segments) > len(base)
	for i := 0; underAPI && i < len(base); i++ {
		underAPI = segments[i] == base[i]
	}
	if underAPI {
		segments = segments[len(base):]
	}
	for _, r := range c.Routes() {
		if r.underAPI != underAPI {
			continue
		}
		accept := c.keySegment
		if underAPI {
			accept = c.requestSegment
		}
		if r.matches(segments, accept) {
			return r, segments
		}
	}
	return nil, nil
}

// requestSegment reports whether a value of a path variable leads to a route. A malformed list or user is an error of
// the route; an unknown board does not match.
func (c Config) requestSegment(variable, value string) bool {
	return variable != "board" || slices.Contains(c.Boards(), Board(value))
}

func (c Config) answer(route *Route, segments []string, q query) Resolution {
	r := Resolution{Route: route, Query: q.encode(route), Absent: NoSuchRoute}
	if !route.underAPI {
		r.Key = Key(strings.Join(segments, "/"))
		return r
	}
	segments = slices.Clone(segments)
	ask := c.ask(route, q)
	for i, variable := range route.segments {
		var problem *Problem
		switch variable {
		case "{token_id}":
			problem = r.forList(segments[i])
			ask.TokenID = segments[i]
		case "{user}":
			segments[i], problem = r.forUser(segments[i])
			ask.User = segments[i]
		case "{other}":
			user, _, ok := ParseUser(segments[i])
			if !ok {
				problem = NoSuchName
			}
			segments[i], ask.Other = user, user
		}
		if problem != nil {
			return Resolution{Action: AnswerProblem, Route: route, Problem: problem}
		}
	}
	r.Key = Key(c.BasePath + "/" + strings.Join(segments, "/"))
	r.Fresh = q[ParamCache] != ""
	c.compute(&r, q, ask)
	return r
}

// forList records the list in the path.
func (r *Resolution) forList(tokenID string) *Problem {
	if !ValidTokenID(tokenID) {
		return BadTokenID
	}
	r.TokenID, r.Absent = tokenID, NoSuchList
	return nil
}

// forUser records the user in the path, and returns the user in the form of keys.
func (r *Resolution) forUser(text string) (user string, problem *Problem) {
	user, isAddress, ok := ParseUser(text)
	switch {
	case !ok:
		return "", NoSuchName
	case !isAddress:
		r.Absent = NoSuchName
	default:
		r.Absent, r.Address = nil, user
		if r.Route.HasUnknown() {
			r.Unknown = UnknownKey(r.Route.object())
		}
	}
	return user, nil
}

// object returns the last segment of a list or user route.
func (r *Route) object() ListObject { return ListObject(r.segments[len(r.segments)-1]) }

// HasUnknown reports whether the route's answers for unknown addresses come from an object.
func (r *Route) HasUnknown() bool {
	return r.Subject == subjectUser && !r.Computed && slices.Contains(UserObjects(), r.object())
}

// ParseUser parses an address in any letter case, or a name. user is in the form of keys. ok is false if the text is
// neither.
func ParseUser(text string) (user string, isAddress, ok bool) {
	if address, err := ParseAddress(text); err == nil {
		return address.String(), true, true
	}
	user, ok = normalizeName(text)
	return user, false, ok
}

// compute decides whether to send the object at the path, a variant of it, or a computed answer.
func (c Config) compute(r *Resolution, q query, ask Ask) {
	route := r.Route
	switch {
	case route.Subject == subjectBoard:
		// Each limit has its own object.
		if limit := q[ParamLimit]; limit != "" && r.Query == string(ParamLimit)+"="+limit {
			board := Board(path.Base(string(r.Key)))
			r.Key, r.Query = LeaderboardLimitKey(board, ask.Limit), ""
		}
	case q[paramIncludeTags] != "":
		r.Action = AnswerWithoutTags
	case c.Names == NamesLookup && r.Absent == NoSuchName, c.EFP() && !r.Fresh && (route.Computed || r.Query != ""):
		r.Action, r.Ask = AnswerComputed, ask
	case r.Fresh:
	case r.Query != "":
		r.Action, r.Ask = AnswerSearch, ask
	}
}

func (c Config) ask(route *Route, q query) Ask {
	term := q[paramTerm]
	if term != noText {
		term = fold(term)
	}
	opcode, _ := strconv.Atoi(q[paramOpcode]) // 0 if missing
	include := strings.Split(q[paramInclude], ",")
	return Ask{
		Limit: c.number(route, q, ParamLimit), Offset: c.number(route, q, ParamOffset), Term: term, TermRunes: utf8.RuneCountInString(q[paramTerm]),
		Sort: q[ParamSort], Ascending: lowerASCII(q[ParamDirection]) == directionAscending, Incoming: strings.HasPrefix(q[ParamDirection], "in"),
		ENS: slices.Contains(include, includeENS), Mutuals: slices.Contains(include, includeMutuals),
		Blocked: slices.Contains(include, includeBlocked), Muted: slices.Contains(include, includeMuted),
		Leader: q[ParamLeader], Tags: q[ParamTags],
		Interval: Interval(q[ParamInterval]), Opcode: opcode, Start: c.number(route, q, ParamStart), Tag: q[ParamTag],
	}
}

func parseNumber(text string) (int64, bool) {
	if text == "" || len(text) > MaxNumberDigits || !allDigits(text) {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// formDecode decodes a part of a query string, where a plus sign means a space.
func formDecode(text string) string {
	return percentDecode(strings.ReplaceAll(text, "+", " "))
}

// percentDecode decodes percent-encoding once. As in the URL standard (url.spec.whatwg.org, "percent-decode"), a
// percent sign without two hexadecimal digits stands for itself. So malformed encoding leads to an unknown name or a
// bad number.
func percentDecode(text string) string {
	if !strings.Contains(text, "%") {
		return text
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
