package edge

import (
	"strings"
	"text/template"

	"github.com/followpress/followpress/site"
)

// Caddy is Caddy 2.
const Caddy Kind = "caddy"

func init() {
	definitions[Caddy] = definition{
		outputs: [][2]string{{"caddyfile", "Caddyfile"}},
		funcs: template.FuncMap{
			"quote":    func(text string) string { return "`" + text + "`" },
			"address":  func(r site.EdgeRoute) string { return "^" + r.PathOf(address) + "$" },
			"anyQuery": func(path string) string { return strings.TrimSuffix(path, "$") + `(?:\?.*)?$` },
		},
		view: func(v *view) (any, error) { return caddyView{v}, nil },
	}
}

// address matches an address in any letter case.
const address = "0[xX][0-9A-Fa-f]{40}"

// plainUser matches the users whose path is a key, as far as Caddy can tell. Caddy decides
// by expressions alone and decodes paths, so nothing may decode to a separator or a dot
// segment. All other users go to the fallback.
const plainUser = "(?:[0-9a-z_~=-]|%[89A-Fa-f][0-9A-Fa-f])(?:[0-9a-z._~=-]|%[89A-Fa-f][0-9A-Fa-f]){0,254}"

type caddyView struct{ *view }

// Direct matches the URL paths that are keys as they stand.
func (v caddyView) Direct() string {
	var all []string
	for _, r := range v.Table.Direct() {
		all = append(all, r.Direct)
	}
	for _, r := range v.Table.Routes {
		if r.Subject == site.EdgeUser {
			all = append(all, r.PathOf(plainUser))
		}
	}
	return strings.Join(all, "|")
}

// ListenHost reports whether the address to listen at names a host.
func (v caddyView) ListenHost() bool { return strings.Contains(v.Listen, ":") }
