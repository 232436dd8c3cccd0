package edge

import (
	"regexp"
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
			"address":  func(r Row) string { return "^" + r.PathOf(address) + "$" },
			"legal":    legalPath,
			"anyQuery": func(path string) string { return strings.TrimSuffix(path, "$") + `(?:\?.*)?$` },
		},
		view: func(v *view) (any, error) { return caddyView{v}, v.Listen.checkCertificate() },
	}
}

// address matches an address in any letter case.
const address = "0[xX][0-9A-Fa-f]{40}"

const lowerAddress = "0x[0-9a-f]{40}"

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
		switch {
		case r.Subject != SubjectUser || r.Computed:
		case v.Table.Lookup:
			all = append(all, r.PathOf(lowerAddress))
		default:
			all = append(all, r.PathOf(plainUser))
		}
	}
	return strings.Join(all, "|")
}

// Paths matches the paths of the rows that take a body, or of those that are read, with any query.
func (v caddyView) Paths(post bool) string {
	var all []string
	for _, r := range v.Table.Routes {
		if r.Post == post {
			all = append(all, "/"+strings.TrimSuffix(strings.TrimPrefix(r.Path, "^"), "$"))
		}
	}
	return `^(?:` + strings.Join(all, "|") + `)(?:\?.*)?$`
}

// legalPath is the expression for the paths of a row whose list is well formed.
func legalPath(r Row) string {
	if r.Legal == "" {
		return "^/" + strings.TrimPrefix(r.Path, "^")
	}
	return "^" + r.PathOf(strings.TrimSuffix(strings.TrimPrefix(r.Legal, "^"), "$")) + "$"
}

// A caddyAlternative answers without an object: a page without entries, or if it has no body, a problem.
type caddyAlternative struct {
	Answer
	Caching     string
	Unavailable Problem
}

// Alternative is what answers for a row if nothing can compute the answer.
func (v caddyView) Alternative(r Row) caddyAlternative {
	return caddyAlternative{r.Empty, r.Caching, v.Table.Problems[site.Unavailable.Name]}
}

// OtherPage matches a path with a query that asks for another page than the first one, or that
// may do so in an encoding: Caddy decides by expressions alone.
func (v caddyView) OtherPage(r Row) string {
	all := []string{"[^=&]*%"}
	for _, name := range v.Selecting(r) {
		switch rule := v.Table.Params[name]; {
		case rule.Number:
			all = append(all, string(name)+"=0*[^0&]")
		case rule.List:
			all = append(all, string(name)+"=,*[^,&]")
		default:
			all = append(all, string(name)+"=[^&]")
		}
	}
	return strings.TrimSuffix(r.Path, "$") + `\?(?:.*&)?(?:` + strings.Join(all, "|") + ")"
}

// Gate is the socket between Caddy and itself, in Linux's abstract namespace: it leaves no file behind.
func (v caddyView) Gate() string {
	return "@followpress-" + notPlain.ReplaceAllString(v.Listen.Text, "-")
}

var notPlain = regexp.MustCompile(`[^0-9A-Za-z]+`)
