package edge

import "github.com/followpress/followpress/site"

// AtEdge is site.Config.Resolve from an edge's point of view: computed answers and refreshes are
// forwarded to the fallback. Edges run the equivalent table from TableOf; tests
// compare the two.
//
// forward is the path and query for the fallback in their normal form, which is also the
// cache key; "" means that the edge answers as the resolution says. An edge without a
// fallback never forwards: it answers as WithoutFallback says.
func AtEdge(c site.Config, method, path, rawQuery string) (r site.Resolution, forward string) {
	r = c.Resolve(method, path, rawQuery)
	switch {
	case r.Query != "":
		forward = r.Key.URLPath() + "?" + r.Query
	case r.Action == site.AnswerComputed:
		forward = r.Key.URLPath()
	}
	return r, forward
}

// WithoutFallback returns the answer of an edge without a fallback to a request that AtEdge would
// forward: a body with status 200, a problem, or if both are zero, the object Key.
//
// A later page, or a page of a search, is empty. The first page would show clients some entries
// twice, or entries that do not match. Other requests without an object are Unavailable, except for
// the bodies that clients cannot do without.
func WithoutFallback(c site.Config, r site.Resolution) (body string, problem *site.Problem) {
	if r.Action != site.AnswerComputed {
		return "", nil
	}
	selected := r.Ask.Offset > 0 || r.Ask.Term != "" || r.Ask.Tags != ""
	if empty, ok := emptyPages[r.Route.ID]; ok && (selected || r.Route.Computed) {
		return empty, nil
	}
	if selected || r.Route.Computed || c.Names == site.NamesLookup && r.Absent == site.NoSuchName {
		return "", site.Unavailable
	}
	return "", nil
}
