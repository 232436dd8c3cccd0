package site

import "slices"

// emptyPages are the bodies of pages without entries. They have the member that clients read:
// those of the original service do not look at the status, and fail without the member.
var emptyPages = map[RouteID]string{
	RouteListSearch:             EmptySearch,
	RouteUserSearch:             EmptySearch,
	RouteUserFollowing:          EmptySearch,
	RouteListFollowing:          EmptySearch,
	RouteUserFollowers:          `{"followers":[]}`,
	RouteListFollowers:          `{"followers":[]}`,
	RouteUserRecommended:        `{"recommended":[]}`,
	RouteListRecommended:        `{"recommended":[]}`,
	RouteUserRecommendedDetails: `{"recommended":[]}`,
	RouteListRecommendedDetails: `{"recommended":[]}`,
	RouteDiscover:               `{"latestFollows":[]}`,
	RouteButtonStateBatch:       `[]`,
}

// WithoutFallback says what an edge without a fallback answers to a request that AtEdge would
// forward: a body with status 200, a problem, or if both are zero, the object Key.
//
// A page after the first one, or of a search, is never answered with the first page: clients would
// show its entries twice, or those that were not searched for. It is empty. What has no object
// is Unavailable, but for the bodies that clients cannot do without.
func (c Config) WithoutFallback(r Resolution) (body string, problem *Problem) {
	if r.Action != AnswerComputed {
		return "", nil
	}
	selected := r.Ask.Offset > 0 || r.Ask.Term != "" || r.Ask.Tags != ""
	if empty, ok := emptyPages[r.Route.ID]; ok && (selected || r.Route.Computed) {
		return empty, nil
	}
	if selected || r.Route.Computed || c.Names == NamesLookup && r.Absent == NoSuchName {
		return "", Unavailable
	}
	return "", nil
}

// selects reports whether a parameter decides which entries an answer has, beyond their number
// and order.
func selects(name Param, rule ParamRule) bool {
	return name == ParamOffset || slices.Contains([]ParamKind{ParamText, ParamList}, rule.Kind)
}
