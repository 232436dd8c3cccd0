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

// plainUser matches users whose paths are certainly keys. Caddy decodes paths, so nothing may decode to a separator or a
// dot segment. Requests for all other users go to the fallback.
const plainUser = "(?:[0-9a-z_~=-]|%[89A-Fa-f][0-9A-Fa-f])(?:[0-9a-z._~=-]|%[89A-Fa-f][0-9A-Fa-f]){0,254}"

type caddyView struct{ *view }

// Direct matches URL paths that equal keys.
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

// Paths matches the paths of rows that take a body, or of all others, with any query.
func (v caddyView) Paths(post bool) string {
	var all []string
	for _, r := range v.Table.Routes {
		if r.Post == post {
			all = append(all, "/"+strings.TrimSuffix(strings.TrimPrefix(r.Path, "^"), "$"))
		}
	}
	return `^(?:` + strings.Join(all, "|") + `)(?:\?.*)?$`
}

// legalPath returns an expression for the paths of a row with a well-formed list.
func legalPath(r Row) string {
	if r.Legal == "" {
		return "^/" + strings.TrimPrefix(r.Path, "^")
	}
	return "^" + r.PathOf(strings.TrimSuffix(strings.TrimPrefix(r.Legal, "^"), "$")) + "$"
}

// A caddyAlternative answers without an object: an empty page or, without a body, a problem.
type caddyAlternative struct {
	Answer
	Caching     string
	Unavailable Problem
}

// Alternative returns the answer of a row if nothing can compute it.
func (v caddyView) Alternative(r Row) caddyAlternative {
	return caddyAlternative{r.Empty, r.Caching, v.Table.Problems[site.Unavailable.Name]}
}

// OtherPage matches a path with a query that asks, or in an encoded form may ask, for another page than the first.
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

// Gate returns the socket from Caddy to itself, in Linux's abstract namespace, which leaves no file behind.
func (v caddyView) Gate() string {
	return "@followpress-" + notPlain.ReplaceAllString(v.Listen.Text, "-")
}

var notPlain = regexp.MustCompile(`[^0-9A-Za-z]+`)
