package edge

import (
	"slices"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
)

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
