package edge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
)

// groupAlike joins rows that differ only in their last segments: with fewer rows, a configuration is smaller and faster.
func groupAlike(routes []Row) []Row {
	var groups []*group
	byLikeness := map[string]*group{}
	for _, r := range routes {
		before, after := splitPath(r)
		likeness := r
		likeness.Route, likeness.Path, likeness.Direct = nil, before, ""
		key := fmt.Sprintf("%+v", likeness)
		g := byLikeness[key]
		if g == nil {
			g = &group{row: r, before: before}
			byLikeness[key] = g
			groups = append(groups, g)
		}
		g.afters = append(g.afters, after)
		if r.Direct != "" {
			g.directBefore = strings.TrimSuffix(r.Direct, after)
		}
	}
	rows := make([]Row, len(groups))
	for i, g := range groups {
		rows[i] = g.merged()
	}
	return rows
}

// A group is a set of rows that are alike, with the common beginning of their paths and the rest of each.
type group struct {
	row                  Row
	before, directBefore string
	afters               []string
}

func (g *group) merged() Row {
	after := g.afters[0]
	if len(g.afters) > 1 {
		after = "(?:" + strings.Join(g.afters, "|") + ")"
	}
	g.row.Path = "^" + g.before + after + "$"
	if g.row.Direct != "" {
		g.row.Direct = g.directBefore + after
	}
	return g.row
}

// splitPath splits the expression of a path after its last variable, or before a variable that the edge does not need.
func splitPath(r Row) (before, after string) {
	path := strings.TrimSuffix(strings.TrimPrefix(r.Path, "^"), "$")
	switch r.Subject {
	case SubjectUser, SubjectList:
		at := strings.LastIndex(path, "("+anyVariable+")/")
		if at < 0 {
			return path, ""
		}
		at += len("(" + anyVariable + ")/")
		return path[:at], path[at:]
	case SubjectBoard:
		return path, ""
	}
	return "", path
}

// emptyPages are the bodies of empty pages. Clients of the original service ignore the status, and fail without the
// member that they read.
var emptyPages = map[routes.ID]string{
	routes.ListSearch:             site.EmptySearch,
	routes.UserSearch:             site.EmptySearch,
	routes.UserFollowing:          site.EmptySearch,
	routes.ListFollowing:          site.EmptySearch,
	routes.UserFollowers:          `{"followers":[]}`,
	routes.ListFollowers:          `{"followers":[]}`,
	routes.UserRecommended:        `{"recommended":[]}`,
	routes.ListRecommended:        `{"recommended":[]}`,
	routes.UserRecommendedDetails: `{"recommended":[]}`,
	routes.ListRecommendedDetails: `{"recommended":[]}`,
	routes.Discover:               `{"latestFollows":[]}`,
	routes.ButtonStateBatch:       `[]`,
}

// selects reports whether a parameter selects entries, rather than only their number and order.
func selects(name site.Param, rule site.ParamRule) bool {
	return name == site.ParamOffset || slices.Contains([]site.ParamKind{site.ParamText, site.ParamList, site.ParamExact}, rule.Kind)
}
