package templates

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/followpress/followpress/site"
)

// A varnishParam is a parameter with one largest value: limits differ by route.
type varnishParam struct {
	Sub  string // of the subroutine
	Name site.Param
	Rule site.EdgeParam
	Most int
}

// VarnishParams are the subroutines that read parameters.
func (v *edgeView) VarnishParams() []varnishParam {
	var all []varnishParam
	for _, r := range v.Table.Routes {
		for _, name := range r.Params {
			p := varnishParam{Sub: string(name), Name: name, Rule: v.Table.Params[name], Most: v.Table.Params[name].Most}
			if name == site.ParamLimit {
				p.Sub, p.Most = string(name)+"_"+strconv.Itoa(r.Most), r.Most
			}
			if !slices.ContainsFunc(all, func(other varnishParam) bool { return other.Sub == p.Sub }) {
				all = append(all, p)
			}
		}
	}
	slices.SortFunc(all, func(a, b varnishParam) int { return cmp.Compare(a.Sub, b.Sub) })
	return all
}

// A varnishDirect matches paths of objects as they stand that are treated alike.
type varnishDirect struct{ Paths, Absent, Caching string }

// VarnishDirect are the groups of them, the most popular first.
func (v *edgeView) VarnishDirect() []varnishDirect {
	var all []varnishDirect
	for _, r := range v.Table.Routes {
		if r.Subject == site.EdgeUser {
			continue
		}
		path := directExpression(r)
		i := slices.IndexFunc(all, func(d varnishDirect) bool { return d.Absent == r.Absent && d.Caching == r.Caching })
		if i < 0 {
			all = append(all, varnishDirect{path, r.Absent, r.Caching})
		} else {
			all[i].Paths += "|" + path
		}
	}
	slices.SortStableFunc(all, func(a, b varnishDirect) int {
		isList := func(d varnishDirect) bool { return d.Absent == site.NoSuchList.Name }
		return cmp.Compare(map[bool]int{true: 0, false: 1}[isList(a)], map[bool]int{true: 0, false: 1}[isList(b)])
	})
	return all
}

// withSlash is an expression for a path with its first slash.
func withSlash(path string) string { return "^/" + strings.TrimPrefix(path, "^") }

// aroundVariable matches a path in two groups, around its variable.
func aroundVariable(path string) string {
	before, after, _ := strings.Cut(strings.TrimSuffix(withSlash(path), "$"), "([^/]*)")
	return "^(" + strings.TrimPrefix(before, "^") + ")[^/]*(" + after + ")$"
}

// upToLimit is the path of a leaderboard with another limit, up to the limit, as an
// expression of VCL.
func upToLimit(variant string) string {
	before, after, _ := strings.Cut(strings.TrimSuffix(variant, "{limit}"), "{board}")
	return before + `" + regsub(req.http.X-Followpress-Path, "^.*/", "") + "` + after
}

func alternatives(all []site.Param) string {
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = string(p)
	}
	return strings.Join(names, "|")
}

var staleWhileRevalidate = regexp.MustCompile(`stale-while-revalidate=(\d+)`)

// staleSeconds is how long an answer may be given while a newer one is fetched.
func staleSeconds(cacheControl string) string {
	if found := staleWhileRevalidate.FindStringSubmatch(cacheControl); found != nil {
		return found[1]
	}
	return "0"
}

// A paramProblem is the problem of a bad parameter.
type paramProblem struct {
	Name    site.Param
	Problem string
	Status  int
}

func varnishParamProblem(name site.Param) paramProblem {
	rule := site.Config{}.Edge().Params[name]
	return paramProblem{name, rule.Problem, problemStatus(rule.Problem)}
}

// problemStatus is 0 for a problem that does not exist.
func problemStatus(name string) int {
	i := slices.IndexFunc(site.Problems(), func(p *site.Problem) bool { return p.Name == name })
	if i < 0 {
		return 0
	}
	return site.Problems()[i].Status
}
