package site

import "slices"

// Sources are the routes of the objects that answers are computed from, beside the object at the
// request's path: for requests with parameters, and for routes without objects.
type Sources struct {
	// Own are routes of objects whose path names the same user or list.
	Own []RouteID
	// Any are routes of all their objects: a path does not say which of them its answers need.
	Any []RouteID
}

// Sources returns what answers of a route are computed from. Under APISpec, only the searches are.
// What names are looked up in under NamesLookup is not among them.
func (r *Route) Sources() Sources { return sources[r.ID] }

// sources has the routes of which requests are computed under APIEFP.
//
// A list or an account with few rows has them in a bucket, whose key does not name it. A user's
// list is not in the user's path, nor the users' names in the key of a shard. Profiles that a
// request includes are read from the accounts of all entries of the page.
var sources = func() map[RouteID]Sources {
	var (
		rows      = []RouteID{RouteTokenBucket, RouteUserBucket, RouteSearchShard, RouteListHead}
		ownRows   = []RouteID{RouteSearchShard, RouteListHead}
		followers = []RouteID{RouteUserBucket, RouteFollowersShard, RouteFollowersHead}
		ofRecords = []RouteID{RouteRecords}
		ofLists   = []RouteID{RouteUserLists}
		states    = []RouteID{RouteRecords, RouteUserBucket}
		ownList   = []RouteID{RouteRecords, RouteListAccount}
		advice    = []RouteID{RouteRecommendedShard}
		ranked    = []RouteID{RouteRanked, RouteRankedShard, RouteRankedOrder}
	)
	with := func(all []RouteID, more ...RouteID) []RouteID { return slices.Concat(all, more) }
	return map[RouteID]Sources{
		RouteUserPrimaryList:   {Own: ofLists},
		RouteUserENS:           {Own: []RouteID{RouteUserAccount}},
		RouteUserSimpleProfile: {Own: []RouteID{RouteUserAccount, RouteUserStats}},

		RouteUserQR: {Own: []RouteID{RouteUserAccount}},
		RouteListQR: {Own: []RouteID{RouteListAccount}},

		RouteUserRecords:            {Own: ofLists, Any: ofRecords},
		RouteUserFollowingAddresses: {Own: ofLists, Any: ofRecords},
		RouteListFollowingAddresses: {Own: ofRecords},
		RouteExportState:            {Own: ofRecords},

		RouteUserFollowing:    {Any: with(rows, RouteUserAccount)},
		RouteUserAllFollowing: {Any: with(rows, RouteUserAccount)},
		RouteUserSearch:       {Any: rows},
		RouteListFollowing:    {Own: ownRows, Any: []RouteID{RouteTokenBucket, RouteUserAccount}},
		RouteListAllFollowing: {Own: ownRows, Any: []RouteID{RouteTokenBucket, RouteUserAccount}},
		RouteListSearch:       {Own: ownRows, Any: []RouteID{RouteTokenBucket}},

		RouteUserFollowers:       {Any: with(followers, RouteUserAccount)},
		RouteUserAllFollowers:    {Any: with(followers, RouteUserAccount)},
		RouteUserLatestFollowers: {Any: followers},
		RouteUserSearchFollowers: {Any: followers},
		// What the list says of the followers is in its records.
		RouteListFollowers:       {Own: ownList, Any: with(followers, RouteUserAccount)},
		RouteListAllFollowers:    {Own: ownList, Any: with(followers, RouteUserAccount)},
		RouteListLatestFollowers: {Own: ownList, Any: followers},
		RouteListSearchFollowers: {Own: ownList, Any: followers},

		RouteUserFollowerState: {Any: states},
		RouteListFollowerState: {Own: []RouteID{RouteListAccount}, Any: states},
		RouteUserButtonState:   {Any: states},
		RouteListButtonState:   {Own: ofRecords, Any: []RouteID{RouteUserBucket}},
		RouteButtonStateBatch:  {Own: ofRecords, Any: []RouteID{RouteUserBucket}},
		RouteCommonFollowers:   {Any: with(rows, RouteFollowersShard, RouteFollowersHead, RouteRecords)},

		RouteUserRecommended:        {Own: ofLists, Any: with(advice, RouteRecords)},
		RouteUserRecommendedDetails: {Own: ofLists, Any: with(advice, RouteRecords)},
		RouteListRecommended:        {Own: ownList, Any: advice},
		RouteListRecommendedDetails: {Own: ownList, Any: advice},

		RouteRanked:       {Any: ranked},
		RouteRankedSearch: {Any: ranked},
		RouteDiscover:     {Any: []RouteID{RouteDiscoverShard}},
	}
}()
