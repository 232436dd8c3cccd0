package site

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
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
)

// A ParamKind is the form of a parameter's values.
type ParamKind int

// The kinds of parameters.
const (
	ParamNumber ParamKind = iota // whole number of at most 18 digits, without a sign
	ParamText                    // any text; letter case and surrounding white space make no difference
	ParamBool                    // true or false
	ParamChoice                  // one of a few words
)

// A ParamRule defines a query parameter. Resolve, the edges, the description of the
// API and purges follow from it.
type ParamRule struct {
	Kind    ParamKind
	About   string   // one line for people
	Problem *Problem // answers a bad value; nil means to ignore the value

	Least, Default int // of a number
	// Most is the largest number, which stands for all larger ones, or the longest
	// text in bytes. 0 is for the limit, whose largest value depends on the route.
	Most int

	Values  []string // of ParamBool and ParamChoice: the values that change the answer
	Neutral string   // the value that means the same as no parameter
}

var params = map[Param]ParamRule{
	ParamLimit:       {Kind: ParamNumber, About: "number of entries", Problem: BadLimit, Least: 1, Default: DefaultLimit},
	ParamOffset:      {Kind: ParamNumber, About: "index of the first entry", Problem: BadOffset, Most: maxOffset},
	ParamTerm:        {Kind: ParamText, About: "part of an address or a name, letter case ignored", Problem: BadTerm, Most: MaxTermBytes},
	ParamIncludeTags: {Kind: ParamBool, About: "false leaves the tags out", Problem: BadIncludeTags, Values: []string{"false"}, Neutral: "true"},
	ParamCache:       {Kind: ParamChoice, About: "fresh asks for the newest data", Values: []string{"fresh"}},
}

// Params is the table of query parameters. Callers must not change it.
func Params() map[Param]ParamRule { return params }

// noText stands for every text that is not UTF-8. Names are, so it matches none.
const noText = "\xff"

// normal returns the normal form of a value, "" if it makes no difference. ok is false
// for a bad value. most is the largest number.
func (rule ParamRule) normal(value string, most int) (normal string, ok bool) {
	switch rule.Kind {
	case ParamNumber:
		n, ok := parseNumber(value)
		if !ok || n < int64(rule.Least) {
			return "", false
		}
		if n = min(n, int64(most)); n == int64(rule.Default) {
			return "", true
		}
		return strconv.FormatInt(n, 10), true
	case ParamText:
		switch {
		case len(value) > rule.Most:
			return "", false
		case !utf8.ValidString(value):
			return noText, true
		}
		return Fold(strings.TrimSpace(value)), true
	}
	if slices.Contains(rule.Values, value) {
		return value, true
	}
	return "", value == rule.Neutral || rule.Problem == nil
}

// A query holds the parameters of a request in their normal form, "" for one that makes
// no difference.
type query map[Param]string

// parseQuery reads the parameters that the route understands. Of a repeated
// parameter the first counts; of several bad ones the first is the problem.
func (c Config) parseQuery(route *Route, rawQuery string) (q query, problem *Problem) {
	for rawQuery != "" {
		var pair string
		pair, rawQuery, _ = strings.Cut(rawQuery, "&")
		name, value, _ := strings.Cut(pair, "=")
		param := Param(formDecode(name))
		if _, seen := q[param]; seen || !slices.Contains(route.Params, param) {
			continue
		}
		rule := params[param]
		normal, ok := rule.normal(formDecode(value), cmp.Or(rule.Most, c.largestLimit(route)))
		if !ok {
			return nil, rule.Problem
		}
		if q == nil {
			q = query{}
		}
		q[param] = normal
	}
	return q, nil
}

// largestLimit is the limit that stands for all larger ones.
func (c Config) largestLimit(r *Route) int {
	if r.subject == EdgeBoard {
		return c.LeaderboardMax
	}
	return SearchMax
}

func (q query) number(p Param) int {
	n, err := strconv.Atoi(q[p])
	if err != nil { // it is ""
		return params[p].Default
	}
	return n
}

// encode writes the parameters that make a difference, by name. Equal requests have equal
// queries then.
func (q query) encode(r *Route) string {
	var all []string
	for _, p := range r.Params {
		if q[p] != "" {
			all = append(all, string(p)+"="+normalForm(q[p]))
		}
	}
	return strings.Join(all, "&")
}

// Queries lists the queries, in their normal form, under which a cache may keep
// answers of the route beside the one without a query. ok is false if they are too
// many to list: a number or a text is among the parameters.
func (r *Route) Queries() (queries []string, ok bool) {
	all := []string{""}
	for _, p := range r.Params {
		rule := params[p]
		if rule.Kind == ParamNumber || rule.Kind == ParamText {
			return nil, false
		}
		if p == ParamCache {
			continue // no cache keeps a fresh answer
		}
		for _, before := range all { // the range does not grow with all
			for _, value := range rule.Values {
				all = append(all, strings.TrimPrefix(before+"&"+string(p)+"="+normalForm(value), "&"))
			}
		}
	}
	return all[1:], true
}
