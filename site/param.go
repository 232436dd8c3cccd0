package site

import (
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

// A query holds the parameters of a request that make a difference.
type query struct {
	route  *Route
	values []string // normal forms, in the order of route.Params; nil if there are none
}

// parseQuery reads the parameters that the route understands. Of a repeated
// parameter the first counts; of several bad ones the first is the problem.
func (c Config) parseQuery(route *Route, rawQuery string) (query, *Problem) {
	q := query{route: route}
	var seen uint
	for rawQuery != "" {
		var pair string
		pair, rawQuery, _ = strings.Cut(rawQuery, "&")
		name, value, _ := strings.Cut(pair, "=")
		i := slices.Index(route.Params, Param(formDecode(name)))
		if i < 0 || seen&(1<<i) != 0 {
			continue
		}
		seen |= 1 << i
		rule := params[route.Params[i]]
		most := rule.Most
		if most == 0 {
			most = c.largestLimit(route)
		}
		normal, ok := rule.normal(formDecode(value), most)
		if !ok {
			return query{}, rule.Problem
		}
		if normal != "" && q.values == nil {
			q.values = make([]string, len(route.Params))
		}
		if normal != "" {
			q.values[i] = normal
		}
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

// text returns the value of a parameter in its normal form, "" if it makes no difference.
func (q query) text(p Param) string {
	if i := slices.Index(q.route.Params, p); i >= 0 && q.values != nil {
		return q.values[i]
	}
	return ""
}

func (q query) number(p Param) int {
	n, err := strconv.Atoi(q.text(p))
	if err != nil { // it is ""
		return params[p].Default
	}
	return n
}

// encode writes the query in its normal form, in which equal requests are equal: the
// parameters that make a difference, by name.
func (q query) encode() string {
	var b strings.Builder
	for i, value := range q.values {
		if value == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('&')
		}
		b.WriteString(string(q.route.Params[i]) + "=" + normalForm(value))
	}
	return b.String()
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
		for _, before := range slices.Clone(all) {
			for _, value := range rule.Values {
				all = append(all, strings.TrimPrefix(before+"&"+string(p)+"="+normalForm(value), "&"))
			}
		}
	}
	return all[1:], true
}
