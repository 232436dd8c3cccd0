package purger

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/followpress/followpress/site"
)

// A Purge says what a cache has to forget. Paths begin with a slash and are
// percent-encoded as in requests.
type Purge struct {
	All   bool     // everything; the other fields do not count then
	Exact []string // URLs, with the query if there is one
	// Wide are paths whose queries cannot be listed: each is purged with any query and
	// without one. A path that ends in a slash means everything below it.
	Wide []string
}

// Everything returns the purge of a whole cache.
func Everything() Purge { return Purge{All: true} }

// URLs returns the URLs that show the objects with these keys, or that show that they did
// not exist.
//
// Each object is purged under its own path too, because edges rewrite a request to the
// path of the object that answers it. A search is computed from shards, and its queries
// cannot be listed. A user's search is computed from the shards of the user's list, but
// the keys of a list do not name its users. So where anything of a search changed, all
// searches of users are purged.
func URLs(c site.Config, keys []site.Key) Purge {
	p := Purge{Exact: []string{site.RootKey.URLPath()}}
	for _, key := range keys {
		route, ok := c.RouteOf(key)
		if !ok || route.ID == site.RouteError {
			// A key of another configuration, or a body that any URL may have shown.
			return Everything()
		}
		p.add(c, route, key)
	}
	return p.compact()
}

func (p *Purge) add(c site.Config, route *site.Route, key site.Key) {
	allUsers := site.RouteUserSearch.Route().Folder(c)
	switch route.ID {
	case site.RouteLeaderboard, site.RouteLeaderboardLimit:
		// All limits at once: hardly any snapshot leaves one of the hundred unchanged.
		for _, board := range c.Boards() {
			limits := folder(site.LeaderboardLimitKey(board, 1))
			if key == c.LeaderboardKey(board) || folder(key) == limits {
				p.Wide = append(p.Wide, c.LeaderboardKey(board).URLPath(), limits)
			}
		}
		return
	case site.RouteUserSearch:
		if !isASCII(key) {
			// Edges that cannot fold every letter keep such a name in each form that was asked for.
			p.Wide = append(p.Wide, allUsers)
			return
		}
	case site.RouteSearchShard:
		tokenID, _, _ := site.ParseSearchShardKey(key)
		p.Wide = append(p.Wide, c.ListKey(tokenID, site.SearchFollowing).URLPath(), allUsers)
	case site.RouteUserBucket:
		p.Wide = append(p.Wide, allUsers)
	}
	queries, listed := route.Queries()
	if !listed {
		p.Wide = append(p.Wide, spellings(key)...)
		return
	}
	p.Exact = append(p.Exact, key.URLPath())
	for _, query := range queries {
		p.Exact = append(p.Exact, key.URLPath()+"?"+query)
	}
}

// manifests is the folder of the shards of the manifest.
var manifests = site.RouteManifest.Route().Folder(site.Config{})

func isASCII(key site.Key) bool {
	return !strings.ContainsFunc(string(key), func(r rune) bool { return r >= utf8.RuneSelf })
}

// folder returns the path of the folder that an object is in.
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

// compact sorts the URLs and removes those that another one covers.
func (p Purge) compact() Purge {
	slices.Sort(p.Wide)
	slices.Sort(p.Exact)
	wide, folders := map[string]bool{}, []string(nil)
	for _, w := range p.Wide {
		wide[w] = true
		if strings.HasSuffix(w, "/") {
			folders = append(folders, w)
		}
	}
	below := func(u string) bool {
		return slices.ContainsFunc(folders, func(f string) bool { return u != f && strings.HasPrefix(u, f) })
	}
	p.Wide = slices.DeleteFunc(slices.Compact(p.Wide), below)
	p.Exact = slices.DeleteFunc(slices.Compact(p.Exact), func(u string) bool {
		withoutQuery, _, _ := strings.Cut(u, "?")
		return wide[withoutQuery] || below(u)
	})
	return p
}

// paths returns all paths without queries, for services that purge a path with all its
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
