package edge

import (
	"fmt"
	"strings"

	"github.com/followpress/followpress/site/routes"
)

func addEFP(e *Row) {
	r := e.Route
	e.Computed, e.Post = r.Computed, r.Post
	e.Other = strings.Contains(r.Pattern, "/{other}/")
	e.Unknown = r.HasUnknown()
	e.Tagged = r.ID == routes.Relationships
	if empty, ok := emptyPages[r.ID]; ok {
		e.Empty = bodyOf(empty)
	}
}

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
