package purger

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/page"
	"github.com/followpress/followpress/site/routes"
)

// A Purge lists what a cache must drop. Paths begin with a slash and are percent-encoded as in requests.
type Purge struct {
	All   bool     // everything; the other fields do not count then
	Exact []string // URLs, with the query if there is one
	// Wide are paths whose queries cannot be listed: each is purged with any query and
	// without one. A path that ends in a slash means everything below it.
	Wide []string
	// Each are paths in which * stands for any segment, such as every user. They are purged
	// like Wide.
	Each []string

	// Tags cover all other fields at the services in Tagged. All may still be true, for services that purge URLs.
	Tags   []string
	Tagged []Kind
}

// Everything returns the purge of a whole cache.
func Everything() Purge { return Purge{All: true} }

// URLs returns the URLs whose answers changed with the objects of these keys: 404s of new objects, too.
//
// Edges cache an answer under the path of its object, so that path is always included. sourcesOf tells which other
// answers are computed from an object.
//
// A user's search is computed from the shards of the user's list, whose keys do not name the user. So a change of any
// shard purges the searches of all users, with any query.
//
// before and after are the configurations of the two sites. If they differ, any computed answer may, and everything is
// purged.
func URLs(before, after site.Config, keys []site.Key) Purge {
	if before != after {
		return Everything()
	}
	c, p := after, Purge{Exact: []string{site.RootKey.URLPath()}}
	for _, key := range keys {
		route, ok := c.RouteOf(key)
		if !ok || route.ID == routes.Error {
			// A key of another configuration, or an error body that any URL may have shown.
			return Everything()
		}
		p.add(c, route, key)
	}
	return p.compact()
}

func (p *Purge) add(c site.Config, route *site.Route, key site.Key) {
	if route.ID == routes.Leaderboard || route.ID == routes.LeaderboardLimit {
		// All limits at once: hardly any snapshot leaves one of the hundred unchanged.
		for _, board := range c.Boards() {
			limits := folder(site.LeaderboardLimitKey(board, 1))
			if key == c.LeaderboardKey(board) || folder(key) == limits {
				p.Wide = append(p.Wide, c.LeaderboardKey(board).URLPath(), limits)
			}
		}
		return
	}
	if c.EFP() {
		p.addEFP(c, route, key)
		return
	}
	allUsers := routeFolder(c, site.RouteBy(routes.UserSearch))
	switch route.ID {
	case routes.UserSearch:
		if !isASCII(string(key)) {
			// Edges that cannot fold every letter cache a non-ASCII name in each requested form.
			p.Wide = append(p.Wide, allUsers)
			return
		}
	case routes.SearchShard:
		tokenID, _, _ := site.ParseSearchShardKey(key)
		p.Wide = append(p.Wide, c.ListKey(tokenID, site.SearchFollowing).URLPath(), allUsers)
	case routes.UserBucket:
		p.Wide = append(p.Wide, allUsers)
	}
	p.addPaths(route, spellings(key))
}

// addEFP adds an object and the answers computed from it.
func (p *Purge) addEFP(c site.Config, route *site.Route, key site.Key) {
	own := variables(c, route, key)
	if !route.UnderAPI() {
		p.addPaths(route, spellings(key))
	}
	switch route.ID {
	case routes.Page:
		p.addPaths(route, page.Paths(page.Of(key)))
	case routes.UserBucket:
		if c.Names == site.NamesLookup {
			// The name may have moved to another account, which changes each answer.
			p.Wide = append(p.Wide, routeFolder(c, site.RouteBy(routes.UserAccount)))
		}
	case routes.Unknown:
		of, ok := c.RouteOf(c.UserObjectKey(site.UnknownAddress, site.ListObject(own["{object}"])))
		if !ok {
			return
		}
		route, own = of, nil
	}
	if route.UnderAPI() {
		p.addAnswers(c, route, own)
	}
	for _, answers := range c.Routes() {
		of := sourcesOf(answers)
		switch {
		case answers.Post: // no cache keeps them
		case slices.Contains(of.Any, route.ID):
			p.addAnswers(c, answers, nil)
		case slices.Contains(of.Own, route.ID):
			p.addAnswers(c, answers, own)
		}
	}
}

// variables returns the values of a route's variables in a key. It omits a user whose answers caches may keep under
// several paths.
func variables(c site.Config, route *site.Route, key site.Key) map[string]string {
	values, segments := map[string]string{}, strings.Split("/"+string(key), "/")
	for i, variable := range strings.Split(route.Path(c), "/") {
		if !strings.HasPrefix(variable, "{") {
			continue
		}
		// Edges that cannot fold every letter cache other names in each requested form.
		if variable != "{user}" || c.Names != site.NamesLookup && isASCII(segments[i]) {
			values[variable] = segments[i]
		}
	}
	return values
}

// addAnswers adds the URLs of a route with these values of its variables; a missing value means all values.
func (p *Purge) addAnswers(c site.Config, route *site.Route, values map[string]string) {
	path, each := route.Path(c), false
	other := path // as browsers send it
	for variable := range strings.SplitSeq(path, "/") {
		if !strings.HasPrefix(variable, "{") {
			continue
		}
		normal, sent := "*", "*"
		if value, ok := values[variable]; ok {
			normal, sent = site.Key(value).URLPath()[1:], browserPath(site.Key(value))[1:]
		} else {
			each = true
		}
		path, other = strings.Replace(path, variable, normal, 1), strings.Replace(other, variable, sent, 1)
	}
	if each {
		p.Each = append(p.Each, path)
		return
	}
	p.addPaths(route, slices.Compact([]string{path, other}))
}

// addPaths adds the URLs of a route at a path, in each of its spellings.
func (p *Purge) addPaths(route *site.Route, spellings []string) {
	queries, listed := queriesOf(route)
	if !listed {
		p.Wide = append(p.Wide, spellings...)
		return
	}
	for _, path := range spellings {
		p.Exact = append(p.Exact, path)
		for _, query := range queries {
			p.Exact = append(p.Exact, path+"?"+query)
		}
	}
}

var manifests = routeFolder(site.Config{}, site.RouteBy(routes.Manifest))

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}

func folder(key site.Key) string {
	text := key.URLPath()
	return text[:strings.LastIndex(text, "/")+1]
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// browserPath returns the key as browsers send it (url.spec.whatwg.org, "path
// percent-encode set").
func browserPath(key site.Key) string {
	b := []byte{'/'}
	for i := range len(key) {
		if c := key[i]; ' ' < c && c < 0x7F && strings.IndexByte("\"#%<>?\\^`{}", c) < 0 {
			b = append(b, c)
		} else {
			b = fmt.Appendf(b, "%%%02X", c)
		}
	}
	return string(b)
}

// oddAt returns the index of the first byte of a path that a service may refuse or read as
// a special character, or the path's length if there is none. Names as browsers send them
// have nearly any byte. CloudFront refuses what RFC 1738 calls unsafe, even ~.
func oddAt(u string) int {
	for i := range len(u) {
		if !isAlphanumeric(u[i]) && strings.IndexByte("/._%=-?&", u[i]) < 0 {
			return i
		}
	}
	return len(u)
}

// spellings returns the path of a key and, if it differs, the one that browsers send: a
// cache that does not normalise paths keeps that one. Only names have two.
func spellings(key site.Key) []string {
	return slices.Compact([]string{key.URLPath(), browserPath(key)})
}

// compact sorts the URLs and removes those covered by another. Apart from sorting it takes linear time: a night may
// change an object of every list.
func (p Purge) compact() Purge {
	slices.Sort(p.Each)
	slices.Sort(p.Wide)
	slices.Sort(p.Exact)
	wide := make(map[string]bool, len(p.Wide))
	for _, w := range p.Wide {
		wide[w] = true
	}
	below := func(path string) bool { // a folder of wide
		for end := range len(path) - 1 {
			if path[end] == '/' && wide[path[:end+1]] {
				return true
			}
		}
		return false
	}
	p.Each = slices.DeleteFunc(slices.Compact(p.Each), below)
	each := patterns{}
	for _, pattern := range p.Each {
		each.add(strings.Split(pattern, "/"))
	}
	covered := func(path string) bool { return below(path) || each.match(strings.Split(path, "/")) }
	p.Wide = slices.DeleteFunc(slices.Compact(p.Wide), covered)
	p.Exact = slices.DeleteFunc(slices.Compact(p.Exact), func(u string) bool {
		withoutQuery, _, _ := strings.Cut(u, "?")
		return wide[withoutQuery] || covered(withoutQuery)
	})
	return p
}

// patterns is a tree of the patterns of Each, by segment. The key "/", which is not a segment,
// marks the end of a pattern.
type patterns map[string]patterns

func (p patterns) add(segments []string) {
	for _, segment := range append(segments, "/") {
		if p[segment] == nil {
			p[segment] = patterns{}
		}
		p = p[segment]
	}
}

func (p patterns) match(segments []string) bool {
	if len(segments) == 0 || p == nil {
		return p["/"] != nil
	}
	return p[segments[0]].match(segments[1:]) || segments[0] != "" && p["*"].match(segments[1:])
}

// expression returns a regular expression for the paths that match a pattern of Each.
func expression(pattern string) string {
	return strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, "[^/?]+")
}

// withoutEach replaces patterns by their folders, for services without patterns.
func (p Purge) withoutEach() Purge {
	if len(p.Each) == 0 {
		return p
	}
	wide := slices.Clone(p.Wide)
	for _, pattern := range p.Each {
		before, _, _ := strings.Cut(pattern, "*")
		wide = append(wide, before)
	}
	return Purge{Exact: slices.Clone(p.Exact), Wide: wide}.compact()
}

// paths returns all paths without queries and patterns, for services that purge a path with all its
// queries.
func (p Purge) paths() []string {
	var all []string
	for _, u := range p.Exact {
		u, _, _ = strings.Cut(u, "?")
		all = append(all, u)
	}
	all = append(all, p.Wide...)
	slices.Sort(all)
	return slices.Compact(all)
}
