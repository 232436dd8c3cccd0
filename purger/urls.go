package purger

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/followpress/followpress/site"
)

// A Purge says what a cache has to forget. Paths begin with a slash and are
// percent-encoded as they come in requests.
type Purge struct {
	All   bool     // everything; nothing else counts then
	Exact []string // URLs, with the query if there is one
	// Wide are paths whose queries cannot be listed: with any query and with none. One
	// that ends in a slash means everything below it.
	Wide []string
}

// Everything is the purge that needs to know nothing.
func Everything() Purge { return Purge{All: true} }

// URLs is what shows the objects with these keys, or shows that they were not there.
//
// Each object is purged under its own path too, because edges rewrite a request to the
// path of the object that answers it. A search is answered out of shards, under
// queries that nobody can list. A user's is answered out of the shards of the user's
// list, and who the users of a list are is in none of its keys: where anything of the
// search changed, all users' searches go.
func URLs(c site.Config, keys []site.Key) Purge {
	p := Purge{Exact: []string{path(site.RootKey)}}
	for _, key := range keys {
		route, ok := c.RouteOf(key)
		if !ok || route.ID == site.RouteError {
			// A key of another configuration, or a body that any URL may have shown.
			return Everything()
		}
		p.add(c, route.ID, key)
	}
	return p.compact()
}

func (p *Purge) add(c site.Config, route site.RouteID, key site.Key) {
	switch route {
	case site.RouteLeaderboard, site.RouteLeaderboardLimit:
		// There are a hundred limits, and hardly any snapshot leaves one of them alone.
		for _, board := range site.Boards() {
			limits := folder(site.LeaderboardLimitKey(board, 1))
			if key == c.LeaderboardKey(board) || folder(key) == limits {
				p.Wide = append(p.Wide, path(c.LeaderboardKey(board)), limits)
			}
		}
	case site.RouteRecords:
		p.Exact = append(p.Exact, path(key), path(key)+"?"+string(site.ParamIncludeTags)+"=false")
	case site.RouteUserSearch:
		if !isASCII(key) {
			// Edges that cannot fold every letter keep such a name in each form that was asked for.
			p.Wide = append(p.Wide, allUsers(c))
			return
		}
		p.Wide = append(p.Wide, spellings(key)...)
	case site.RouteListSearch:
		p.Wide = append(p.Wide, path(key))
	case site.RouteSearchShard:
		tokenID, _, _ := site.ParseSearchShardKey(key)
		p.Exact = append(p.Exact, path(key))
		p.Wide = append(p.Wide, path(c.ListKey(tokenID, site.SearchFollowing)), allUsers(c))
	case site.RouteUserBucket:
		p.Exact = append(p.Exact, path(key))
		p.Wide = append(p.Wide, allUsers(c))
	default:
		p.Exact = append(p.Exact, path(key))
	}
}

// allUsers is the folder of all users' searches.
func allUsers(c site.Config) string {
	return strings.TrimSuffix(folder(c.UserKey("user")), "user/")
}

// manifests is the folder of the shards of the manifest.
var manifests = folder(site.ManifestKey("0"))

func isASCII(key site.Key) bool {
	return !strings.ContainsFunc(string(key), func(r rune) bool { return r >= utf8.RuneSelf })
}

// folder is the path of the folder that an object is in.
func folder(key site.Key) string {
	text := path(key)
	return text[:strings.LastIndex(text, "/")+1]
}

// path is the key as the path of a URL, in the form that followpress's edges keep:
// each byte encoded but for letters, digits and -._~= which stand for themselves.
func path(key site.Key) string {
	return escape(key, func(c byte) bool {
		return isAlphanumeric(c) || strings.IndexByte("-._~=", c) >= 0
	})
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// browserPath is the key as browsers send it (url.spec.whatwg.org, "path
// percent-encode set").
func browserPath(key site.Key) string {
	return escape(key, func(c byte) bool { return ' ' < c && c < 0x7F && strings.IndexByte("\"#%<>?\\^`{}", c) < 0 })
}

func escape(key site.Key, plain func(byte) bool) string {
	const hex = "0123456789ABCDEF"
	b := []byte{'/'}
	for i := range len(key) {
		if c := key[i]; c == '/' || plain(c) {
			b = append(b, c)
		} else {
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(b)
}

// oddAt is where a path has its first byte that a service may refuse, or read as
// something else than itself: a name as browsers send it may have nearly any. It is the
// path's length if there is none. CloudFront refuses what RFC 1738 calls unsafe, ~ too.
func oddAt(u string) int {
	for i := range len(u) {
		if !isAlphanumeric(u[i]) && strings.IndexByte("/._%=-?&", u[i]) < 0 {
			return i
		}
	}
	return len(u)
}

// spellings are the path of a key and, where that is another, the one that browsers
// send: a cache that does not normalise keeps the latter. Only names have two.
func spellings(key site.Key) []string {
	if normal, browsers := path(key), browserPath(key); browsers != normal {
		return []string{normal, browsers}
	}
	return []string{path(key)}
}

// compact sorts, and leaves out what is purged anyway.
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

// paths are all paths without queries, for services to which a path means all its
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
