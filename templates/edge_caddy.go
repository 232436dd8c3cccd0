package templates

import (
	"regexp"
	"strings"

	"github.com/followpress/followpress/site"
)

// plainUser matches users as keys have them, as far as Caddy can tell, which decides by
// expressions alone and decodes paths: nothing that could become a separator or a
// dot segment. Other users are for the fallback.
const plainUser = "(?:[0-9a-z_~=-]|%[89A-Fa-f][0-9A-Fa-f])(?:[0-9a-z._~=-]|%[89A-Fa-f][0-9A-Fa-f]){0,254}"

// DirectAlternatives matches the paths of objects as they stand, those of users too.
func (v *edgeView) DirectAlternatives() string {
	var all []string
	for _, d := range v.Direct {
		all = append(all, d.Path)
	}
	for _, r := range v.Table.Routes {
		if r.Subject == site.EdgeUser {
			path := strings.TrimSuffix(withSlash(r.Path), "$")
			all = append(all, strings.Replace(strings.TrimPrefix(path, "^"), "[^/]*", plainUser, 1))
		}
	}
	return strings.Join(all, "|")
}

// addressPath matches a path whose variable is an address.
func addressPath(path string) string {
	return strings.Replace(withSlash(path), "[^/]*", "0[xX][0-9A-Fa-f]{40}", 1)
}

// caddyVariant is the path of a leaderboard with the limit of the request.
func caddyVariant(variant string, board site.Board) string {
	return "/" + strings.NewReplacer("{board}", string(board), "{limit}", "{http.request.orig_uri.query}").Replace(
		strings.Replace(variant, "limit={limit}", "{limit}", 1))
}

// Boards are the leaderboards.
func (v *edgeView) Boards() []site.Board { return site.Boards() }

// BasePathExpression is the base path in an expression.
func (v *edgeView) BasePathExpression() string { return regexp.QuoteMeta(v.BasePath) }

// Limits matches the limits that leaderboards have objects for.
func (v *edgeView) Limits() string {
	for _, r := range v.Table.Routes {
		if r.Route.ID == site.RouteLeaderboardLimit {
			_, limits, _ := strings.Cut(strings.TrimSuffix(r.Path, ")$"), "limit=(")
			return limits
		}
	}
	return ""
}

// ListenHost reports whether the address to listen at names a host.
func (v *edgeView) ListenHost() bool { return strings.Contains(v.Listen, ":") }
