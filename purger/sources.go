package purger

import (
	"slices"
	"strings"

	"github.com/followpress/followpress/site"
)

// A sources has the routes of the objects that answers are computed from, beside the object at the
// request's path: for requests with parameters, and for routes without objects.
type sources struct {
	// Own are routes of objects whose path names the same user or list.
	Own []site.RouteID
	// Any are routes of all their objects: a path does not say which of them its answers need.
	Any []site.RouteID
}

// sourcesOf returns what answers of a route are computed from. Under APISpec, only the searches are.
// What names are looked up in under NamesLookup is not among them.
func sourcesOf(r *site.Route) sources { return routeSources[r.ID] }

// routeSources has the routes of which requests are computed under APIEFP.
//
// A list or an account with few rows has them in a bucket, whose key does not name it. A user's
// list is not in the user's path, nor the users' names in the key of a shard. Profiles that a
// request includes are read from the accounts of all entries of the page.
var routeSources = func() map[site.RouteID]sources {
	var (
		rows      = []site.RouteID{site.RouteTokenBucket, site.RouteUserBucket, site.RouteSearchShard, site.RouteListHead}
		ownRows   = []site.RouteID{site.RouteSearchShard, site.RouteListHead}
		followers = []site.RouteID{site.RouteUserBucket, site.RouteFollowersShard, site.RouteFollowersHead}
		ofRecords = []site.RouteID{site.RouteRecords}
		ofLists   = []site.RouteID{site.RouteUserLists}
		states    = []site.RouteID{site.RouteRecords, site.RouteUserBucket}
		ownList   = []site.RouteID{site.RouteRecords, site.RouteListAccount}
		advice    = []site.RouteID{site.RouteRecommendedShard}
		ranked    = []site.RouteID{site.RouteRanked, site.RouteRankedShard, site.RouteRankedOrder}
	)
	with := func(all []site.RouteID, more ...site.RouteID) []site.RouteID { return slices.Concat(all, more) }
	return map[site.RouteID]sources{
		site.RouteUserPrimaryList:   {Own: ofLists},
		site.RouteUserENS:           {Own: []site.RouteID{site.RouteUserAccount}},
		site.RouteUserSimpleProfile: {Own: []site.RouteID{site.RouteUserAccount, site.RouteUserStats}},

		site.RouteUserQR: {Own: []site.RouteID{site.RouteUserAccount}},
		site.RouteListQR: {Own: []site.RouteID{site.RouteListAccount}},

		site.RouteUserRecords:            {Own: ofLists, Any: ofRecords},
		site.RouteUserFollowingAddresses: {Own: ofLists, Any: ofRecords},
		site.RouteListFollowingAddresses: {Own: ofRecords},
		site.RouteExportState:            {Own: ofRecords},

		site.RouteUserFollowing:    {Any: with(rows, site.RouteUserAccount)},
		site.RouteUserAllFollowing: {Any: with(rows, site.RouteUserAccount)},
		site.RouteUserSearch:       {Any: rows},
		site.RouteListFollowing:    {Own: ownRows, Any: []site.RouteID{site.RouteTokenBucket, site.RouteUserAccount}},
		site.RouteListAllFollowing: {Own: ownRows, Any: []site.RouteID{site.RouteTokenBucket, site.RouteUserAccount}},
		site.RouteListSearch:       {Own: ownRows, Any: []site.RouteID{site.RouteTokenBucket}},

		site.RouteUserFollowers:       {Any: with(followers, site.RouteUserAccount)},
		site.RouteUserAllFollowers:    {Any: with(followers, site.RouteUserAccount)},
		site.RouteUserLatestFollowers: {Any: followers},
		site.RouteUserSearchFollowers: {Any: followers},
		// What the list says of the followers is in its records.
		site.RouteListFollowers:       {Own: ownList, Any: with(followers, site.RouteUserAccount)},
		site.RouteListAllFollowers:    {Own: ownList, Any: with(followers, site.RouteUserAccount)},
		site.RouteListLatestFollowers: {Own: ownList, Any: followers},
		site.RouteListSearchFollowers: {Own: ownList, Any: followers},

		site.RouteUserFollowerState: {Any: states},
		site.RouteListFollowerState: {Own: []site.RouteID{site.RouteListAccount}, Any: states},
		site.RouteUserButtonState:   {Any: states},
		site.RouteListButtonState:   {Own: ofRecords, Any: []site.RouteID{site.RouteUserBucket}},
		site.RouteButtonStateBatch:  {Own: ofRecords, Any: []site.RouteID{site.RouteUserBucket}},
		site.RouteCommonFollowers:   {Any: with(rows, site.RouteFollowersShard, site.RouteFollowersHead, site.RouteRecords)},

		site.RouteUserRecommended:        {Own: ofLists, Any: with(advice, site.RouteRecords)},
		site.RouteUserRecommendedDetails: {Own: ofLists, Any: with(advice, site.RouteRecords)},
		site.RouteListRecommended:        {Own: ownList, Any: advice},
		site.RouteListRecommendedDetails: {Own: ownList, Any: advice},

		site.RouteRanked:       {Any: ranked},
		site.RouteRankedSearch: {Any: ranked},
		site.RouteDiscover:     {Any: []site.RouteID{site.RouteDiscoverShard}},
	}
}()

// routeFolder returns the URL path, with a slash at its end, of the folder that holds all
// objects of the route.
func routeFolder(c site.Config, r *site.Route) string {
	path, _, _ := strings.Cut(r.Path(c), "{")
	return path[:strings.LastIndex(path, "/")+1]
}

// endpointFolder returns the folder of an endpoint that a URL path is in, such as
// /api/v1/lists/. Any other path comes back unchanged.
func endpointFolder(path string) string {
	segments, endpoints := strings.Split(path, "/"), site.APIFolders()
	for i, s := range segments[:len(segments)-1] {
		if slices.Contains(endpoints, s) {
			return strings.Join(segments[:i+1], "/") + "/"
		}
	}
	return path
}

// queriesOf lists the queries, in their normal form, under which a cache may keep
// answers of the route beside the one without a query. ok is false if they are too
// many to list: a number or a text is among the parameters.
func queriesOf(r *site.Route) (queries []string, ok bool) {
	all := []string{""}
	for _, p := range r.Params {
		rule := site.Params()[p]
		if rule.Kind == site.ParamNumber || rule.Kind == site.ParamText || rule.Kind == site.ParamList || rule.Kind == site.ParamUser {
			return nil, false
		}
		if p == site.ParamCache {
			continue // no cache keeps a fresh answer
		}
		for _, before := range all { // the range does not grow with all
			for _, value := range rule.Values {
				all = append(all, strings.TrimPrefix(before+"&"+string(p)+"="+site.NormalForm(value), "&"))
			}
		}
	}
	return all[1:], true
}
