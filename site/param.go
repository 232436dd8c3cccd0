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
	ParamTerm        Param = "term"
	ParamIncludeTags Param = "includeTags"
	ParamCache       Param = "cache"

	// Only under APIEFP.
	ParamSort      Param = "sort"
	ParamDirection Param = "direction"
	ParamTags      Param = "tags"
	ParamInclude   Param = "include"
	ParamLeader    Param = "leader"

	// Only with Config.HistoryWindow.
	ParamInterval Param = "interval"
	ParamOpcode   Param = "opcode"
	ParamStart    Param = "start"
	ParamTag      Param = "tag" // of relationships too
)

// A ParamKind is the form of a parameter's values.
type ParamKind int

// The kinds of parameters.
const (
	ParamNumber ParamKind = iota // whole number of at most 18 digits, without a sign
	ParamText                    // any text; letter case and surrounding white space make no difference
	ParamBool                    // true or false
	ParamChoice                  // one of a few words
	ParamList                    // texts with commas between them; empty ones make no difference
	ParamWords                   // a ParamList of known words, which may be repeated; other words are ignored
	ParamUser                    // address or name
	ParamExact                   // any text, as it is; an empty one makes no difference
)

// A ParamRule defines a query parameter. Resolve, the edges, the description of the
// API and purges follow from it.
type ParamRule struct {
	Kind    ParamKind
	About   string   // one line for people
	Problem *Problem // answers a bad value; nil means to ignore the value

	Least, Default int // of a number; a Default below Least is none
	// Most is the largest number, which stands for all larger ones, or the longest
	// text in bytes. 0 is for the limit, whose largest value depends on the route.
	Most int

	Values  []string // of ParamBool, ParamChoice and ParamWords: the values that change the answer, sorted
	Neutral string   // the value that means the same as no parameter
	AnyCase bool     // of ParamChoice: letter case makes no difference
	// AnyCaseOf is the only value of a ParamChoice whose letter case makes no difference. It stays as it was sent.
	AnyCaseOf string
}

var params = map[Param]ParamRule{
	ParamLimit:       {Kind: ParamNumber, About: "number of entries", Problem: BadLimit, Least: 1, Default: DefaultLimit},
	ParamOffset:      {Kind: ParamNumber, About: "index of the first entry", Problem: BadOffset, Most: maxOffset},
	ParamTerm:        {Kind: ParamText, About: "part of an address or a name, letter case ignored", Problem: BadTerm, Most: maxTermBytes},
	ParamIncludeTags: {Kind: ParamBool, About: "false leaves the tags out", Problem: BadIncludeTags, Values: []string{"false"}, Neutral: "true"},
	ParamCache:       {Kind: ParamChoice, About: "fresh asks for the newest data", Values: []string{"fresh"}},

	// One rule for pages and for ranked accounts: each ignores the other's words.
	ParamSort: {Kind: ParamChoice, About: "order of the entries", AnyCase: true,
		Values: []string{"blocked", "blocks", "earliest", "followers", "following", "top8"}},
	// One rule for ranked accounts and for relationships too.
	ParamDirection: {Kind: ParamChoice, About: "asc reverses the order", Values: []string{directionAscending, "in", "incoming", "out", "outgoing"},
		AnyCaseOf: directionAscending},
	ParamTags: {Kind: ParamList, About: "only entries with one of these tags"},
	ParamInclude: {Kind: ParamWords, About: "ens adds names and texts, mutuals whether both follow each other, blocked and muted show such entries",
		Values: []string{includeBlocked, includeENS, includeMuted, includeMutuals}},
	ParamLeader: {Kind: ParamUser, About: "address or name of the account that is followed", Problem: BadLeader},

	ParamInterval: {Kind: ParamChoice, About: "how far back from the date of the data", Values: []string{"all", "day", "hour", "month"}, Neutral: "week"},
	ParamOpcode:   {Kind: ParamChoice, About: "only operations of a kind: 1 follow, 2 unfollow, 3 tag, 4 untag", Values: []string{"1", "2", "3", "4"}},
	ParamStart: {Kind: ParamNumber, About: "only operations until then, in seconds since 1970; the interval ends there too",
		Default: NoStart, Most: maxStart},
	ParamTag: {Kind: ParamExact, About: "only operations with exactly this tag"},
}

// Values of ParamInclude.
const (
	includeBlocked = "blocked" // entries that are blocked, too
	includeENS     = "ens"     // profiles
	includeMuted   = "muted"   // entries that are muted, too
	includeMutuals = "mutuals" // whether the two accounts follow each other
)

// directionAscending is the value of ParamDirection that reverses an order.
const directionAscending = "asc"

// relationshipDirection matches the values of ParamDirection that relationships take.
var relationshipDirection = regexp.MustCompile("^(?:in|out)")

// NoStart is Ask.Start without ParamStart.
const NoStart = -1

// maxStart is the last second that a time in RFC 3339 can have.
const maxStart = 253402300799

// Interval returns how far back the operations of an answer go, by the normal form of ParamInterval. These are the intervals of the
// service that the API is from.
func Interval(normal string) time.Duration {
	hours := map[string]time.Duration{"hour": 1, "day": 24, "month": 720, "all": 999}[normal]
	return cmp.Or(hours, 168) * time.Hour
}

// Params is the table of query parameters. Callers must not change it.
func Params() map[Param]ParamRule { return params }

// Params are the rules of the parameters of the site's routes.
func (c Config) Params() map[Param]ParamRule {
	used := map[Param]ParamRule{}
	for _, r := range c.Routes() {
		for _, p := range r.Params {
			used[p] = params[p]
		}
	}
	return used
}

// noText stands for every text that is not UTF-8. Names are, so it matches none.
const noText = "\xff"

// listItems splits the value of a ParamList.
func listItems(value string) []string {
	return slices.DeleteFunc(strings.Split(value, ","), func(item string) bool { return item == "" })
}

// lowerASCII lowers the letters from A to Z: other letters have lower forms among them too.
func lowerASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, text)
}

// normal returns the normal form of a value, "" if it makes no difference. ok is false
// for a bad value. byDefault and most are those of a number.
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
		// A short text finds nothing, so letters stay as they are if lowering them changes how many there are.
		value = norm.NFC.String(strings.TrimSpace(value))
		if folded := Fold(value); utf8.RuneCountInString(folded) == utf8.RuneCountInString(value) {
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

// A query holds the parameters of a request in their normal form, "" for one that makes
// no difference.
type query map[Param]string

// parseQuery reads the parameters that the route understands. Of a repeated
// parameter the first counts, unless it is a ParamWords; of several bad ones the first is the problem.
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

// Limits returns the default limit of a route, and the one that stands for all larger ones.
func (c Config) Limits(r *Route) (byDefault, most int) {
	byDefault, most = cmp.Or(r.Default, DefaultLimit), cmp.Or(r.Most, pageMax)
	if r.Subject == subjectBoard || r.ID == routes.Ranked || r.ID == routes.RankedAll {
		most = c.LeaderboardMax
	}
	return min(byDefault, most), most
}

// number returns the value of a numeric parameter of a route.
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

// encode writes the parameters that make a difference, by name. Equal requests have equal
// queries then.
func (q query) encode(r *Route) string {
	var all []string
	for _, p := range r.Params {
		if q[p] != "" {
			all = append(all, string(p)+"="+NormalForm(q[p]))
		}
	}
	return strings.Join(all, "&")
}
