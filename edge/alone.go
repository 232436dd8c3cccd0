package edge

import (
	"slices"

	"github.com/followpress/followpress/site"
)

// emptyPages are the bodies of pages without entries. They have the member that clients read:
// those of the original service do not look at the status, and fail without the member.
var emptyPages = map[site.RouteID]string{
	site.RouteListSearch:             site.EmptySearch,
	site.RouteUserSearch:             site.EmptySearch,
	site.RouteUserFollowing:          site.EmptySearch,
	site.RouteListFollowing:          site.EmptySearch,
	site.RouteUserFollowers:          `{"followers":[]}`,
	site.RouteListFollowers:          `{"followers":[]}`,
	site.RouteUserRecommended:        `{"recommended":[]}`,
	site.RouteListRecommended:        `{"recommended":[]}`,
	site.RouteUserRecommendedDetails: `{"recommended":[]}`,
	site.RouteListRecommendedDetails: `{"recommended":[]}`,
	site.RouteDiscover:               `{"latestFollows":[]}`,
	site.RouteButtonStateBatch:       `[]`,
}

// selects reports whether a parameter decides which entries an answer has, beyond their number
// and order.
func selects(name site.Param, rule site.ParamRule) bool {
	return name == site.ParamOffset || slices.Contains([]site.ParamKind{site.ParamText, site.ParamList}, rule.Kind)
}
