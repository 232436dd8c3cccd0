package site

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/followpress/followpress/site/routes"
)

// A Param is the name of a query parameter.
type Param string

// The query parameters.
const (
	ParamLimit       Param = "limit"
	ParamOffset      Param = "offset"
	paramTerm        Param = "term"
	paramIncludeTags Param = "includeTags"
	ParamCache       Param = "cache"

	// Only under APIEFP.
	ParamSort      Param = "sort"
	ParamDirection Param = "direction"
	ParamTags      Param = "tags"
	paramInclude   Param = "include"
	ParamLeader    Param = "leader"

	// Only with Config.HistoryWindow.
	ParamInterval Param = "interval"
	paramOpcode   Param = "opcode"
	ParamStart    Param = "start"
	ParamTag      Param = "tag" // also of relationships
)

// A ParamKind is the form of a parameter's values.
type ParamKind int

// The kinds of parameters.
const (
	ParamNumber ParamKind = iota // whole number of at most 18 digits, without a sign
	ParamText                    // any text; letter case and surrounding white space are ignored
	ParamBool                    // true or false
	ParamChoice                  // one of a few words
	ParamList                    // texts separated by commas; empty ones are ignored
	ParamWords                   // a ParamList of known words, which may be repeated; unknown words are ignored
	ParamUser                    // address or name
	ParamExact                   // any text, unchanged; an empty one is ignored
)

// A ParamRule defines a query parameter for Resolve, the edges, the description of the API, and purges.
type ParamRule struct {
	Kind    ParamKind
	About   string   // one-line description
	Problem *Problem // response to a bad value; nil means that bad values are ignored

	Least, Default int // bounds of a number; no default if Default < Least
	// Most is the largest number, which replaces larger ones, or the maximum size of a text in bytes. It is 0 for the
	// limit, whose maximum depends on the route.
	Most int

	Values  []string // values of ParamBool, ParamChoice and ParamWords: the values that change the answer, sorted
	Neutral string   // value that equals no parameter
	AnyCase bool     // ParamChoice ignores letter case
	// AnyCaseOf is the only value of a ParamChoice whose letter case is ignored. It keeps its letter case.
	AnyCaseOf string
}

var params = map[Param]ParamRule{
	ParamLimit:       {Kind: ParamNumber, About: "number of entries", Problem: badLimit, Least: 1, Default: DefaultLimit},
	ParamOffset:      {Kind: ParamNumber, About: "index of the first entry", Problem: badOffset, Most: maxOffset},
	paramTerm:        {Kind: ParamText, About: "part of an address or a name, letter case ignored", Problem: badTerm, Most: maxTermBytes},
	paramIncludeTags: {Kind: ParamBool, About: "false omits the tags", Problem: badIncludeTags, Values: []string{"false"}, Neutral: "true"},
	ParamCache:       {Kind: ParamChoice, About: "fresh asks for the newest data", Values: []string{"fresh"}},

	// Pages and ranked accounts share this rule: each ignores the other's words.
	ParamSort: {Kind: ParamChoice, About: "order of the entries", AnyCase: true,
		Values: []string{"blocked", "blocks", "earliest", "followers", "following", "top8"}},
	// Ranked accounts and relationships share this rule.
	ParamDirection: {Kind: ParamChoice, About: "asc reverses the order", Values: []string{directionAscending, "in", "incoming", "out", "outgoing"},
		AnyCaseOf: directionAscending},
	ParamTags: {Kind: ParamList, About: "only entries with one of these tags"},
	paramInclude: {Kind: ParamWords, About: "ens adds profiles, mutuals adds is_mutual, blocked and muted add those entries",
		Values: []string{includeBlocked, includeENS, includeMuted, includeMutuals}},
	ParamLeader: {Kind: ParamUser, About: "address or name of the account that is followed", Problem: badLeader},

	ParamInterval: {Kind: ParamChoice, About: "length of the interval, which ends at the time of the data", Values: []string{"all", "day", "hour", "month"}, Neutral: "week"},
	paramOpcode:   {Kind: ParamChoice, About: "only one kind of operation: 1 follow, 2 unfollow, 3 tag, 4 untag", Values: []string{"1", "2", "3", "4"}},
	ParamStart: {Kind: ParamNumber, About: "end of the interval, in seconds since 1970",
		Default: noStart, Most: maxStart},
	ParamTag: {Kind: ParamExact, About: "only operations with exactly this tag"},
}

// Values of paramInclude.
const (
	includeBlocked = "blocked" // also blocked entries
	includeENS     = "ens"     // profiles
	includeMuted   = "muted"   // also muted entries
	includeMutuals = "mutuals" // whether the two accounts follow each other
)

// directionAscending is the value of ParamDirection that reverses an order.
const directionAscending = "asc"

// relationshipDirection matches the values of ParamDirection for relationships.
var relationshipDirection = regexp.MustCompile("^(?:in|out)")

// noStart is Ask.Start without ParamStart.
const noStart = -1

// maxStart is the last second that RFC 3339 can express, in seconds since 1970.
const maxStart = 253402300799

// Interval returns how far back an answer's operations go, by the normal form of ParamInterval. The values are those
// of the service that defined the API.
func Interval(normal string) time.Duration {
	hours := map[string]time.Duration{"hour": 1, "day": 24, "month": 720, "all": 999}[normal]
	return cmp.Or(hours, 168) * time.Hour
}

// Params returns the table of query parameters. Callers must not modify it.
func Params() map[Param]ParamRule { return params }

// Params returns the rules of the parameters of the site's routes.
func (c Config) Params() map[Param]ParamRule {
	used := map[Param]ParamRule{}
	for _, r := range c.Routes() {
		for _, p := range r.Params {
			used[p] = params[p]
		}
	}
	return used
}

// noText replaces every text that is not valid UTF-8. It matches no name, because names are.
const noText = "\xff"

// listItems splits the value of a ParamList.
func listItems(value string) []string {
	return slices.DeleteFunc(strings.Split(value, ","), func(item string) bool { return item == "" })
}

// lowerASCII lowers A to Z only: lowering other letters could yield ASCII ones.
func lowerASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, text)
}

// normal returns the normal form of a value, or "" if it does not affect the answer. ok is false for a bad value.
// byDefault and most apply to numbers.
func (rule ParamRule) normal(value string, byDefault, most int) (normal string, ok bool) {
	switch rule.Kind {
	case ParamNumber:
		n, ok := parseNumber(value)
		if !ok || n < int64(rule.Least) {
			return "", rule.Problem == nil
		}
		if n = min(n, int64(most)); n == int64(byDefault) {
			return "", true
		}
		return strconv.FormatInt(n, 10), true
	case ParamList:
		return strings.Join(listItems(value), ","), true
	case ParamWords:
		items := listItems(value)
		return strings.Join(slices.DeleteFunc(slices.Clone(rule.Values), func(word string) bool { return !slices.Contains(items, word) }), ","), true
	case ParamExact:
		return value, true
	case ParamUser:
		user, _, _ := ParseUser(value)
		return cmp.Or(user, value), value != ""
	case ParamText:
		switch {
		case len(value) > rule.Most:
			return "", false
		case !utf8.ValidString(value):
			return noText, true
		}
		// Matching depends on the number of runes, so keep letters whose lower case changes it.
		value = norm.NFC.String(strings.TrimSpace(value))
		if folded := fold(value); utf8.RuneCountInString(folded) == utf8.RuneCountInString(value) {
			return folded, true
		}
		return value, true
	}
	if rule.AnyCase {
		value = lowerASCII(value)
	}
	if slices.Contains(rule.Values, value) || rule.AnyCaseOf != "" && lowerASCII(value) == rule.AnyCaseOf {
		return value, true
	}
	return "", value == rule.Neutral || rule.Problem == nil
}

// A query maps parameters to their normal forms. "" does not affect the answer.
type query map[Param]string

// parseQuery parses the parameters that the route supports. The first of repeated parameters wins, except for
// ParamWords. The problem is that of the first bad value.
func (c Config) parseQuery(route *Route, rawQuery string) (q query, problem *Problem) {
	for rawQuery != "" {
		var pair string
		pair, rawQuery, _ = strings.Cut(rawQuery, "&")
		name, value, _ := strings.Cut(pair, "=")
		param := Param(formDecode(name))
		if !slices.Contains(route.Params, param) {
			continue
		}
		rule := params[param]
		before, seen := q[param]
		if seen && rule.Kind != ParamWords {
			continue
		}
		byDefault, most := rule.Default, rule.Most
		if param == ParamLimit {
			byDefault, most = c.Limits(route)
		}
		value = formDecode(value)
		if rule.Kind == ParamWords {
			value += "," + before
		}
		normal, ok := rule.normal(value, byDefault, most)
		if !ok {
			return nil, rule.Problem
		}
		if q == nil {
			q = query{}
		}
		q[param] = normal
	}
	if route.ID == routes.Relationships && (q[ParamTag] == "" || !relationshipDirection.MatchString(q[ParamDirection])) {
		return nil, BadRelationships
	}
	return q, nil
}

// Limits returns the default and the maximum limit of a route. Larger limits mean the maximum.
func (c Config) Limits(r *Route) (byDefault, most int) {
	byDefault, most = cmp.Or(r.Default, DefaultLimit), cmp.Or(r.Most, pageMax)
	if r.Subject == subjectBoard || r.ID == routes.Ranked || r.ID == routes.RankedAll {
		most = c.LeaderboardMax
	}
	return min(byDefault, most), most
}

// number returns the value of a numeric parameter, or its default.
func (c Config) number(r *Route, q query, p Param) int {
	n, err := strconv.Atoi(q[p])
	switch {
	case err == nil:
		return n
	case p == ParamLimit:
		n, _ = c.Limits(r)
		return n
	}
	return params[p].Default
}

// encode returns the parameters that affect the answer, sorted by name, so that equal requests have equal queries.
func (q query) encode(r *Route) string {
	var all []string
	for _, p := range r.Params {
		if q[p] != "" {
			all = append(all, string(p)+"="+NormalForm(q[p]))
		}
	}
	return strings.Join(all, "&")
}
