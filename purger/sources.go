package purger

import (
	"slices"
	"strings"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
)

// sources are the routes of the objects that computed answers need, in addition to the object at the request's path.
type sources struct {
	// Own are routes of objects whose paths name the same user or list.
	Own []routes.ID
	// Any lists the routes that may need any object: the path of the request does not determine it.
	Any []routes.ID
}

// sourcesOf returns the sources of a route's answers. Under APISpec, only searches have any. The objects that resolve
// names under NamesLookup are not included.
func sourcesOf(r *site.Route) sources { return routeSources[r.ID] }

// routeSources are the sources of the computed routes of APIEFP.
//
// A list or an account with few rows has them in a bucket, whose key does not name it. A user's
// list is not in the user's path, nor the users' names in the key of a shard. Profiles that a
// request includes are read from the accounts of all entries of the page.
var routeSources = func() map[routes.ID]sources {
	var (
		rows          = []routes.ID{routes.TokenBucket, routes.UserBucket, routes.SearchShard, routes.ListHead}
		ownRows       = []routes.ID{routes.SearchShard, routes.ListHead}
		followers     = []routes.ID{routes.UserBucket, routes.FollowersShard, routes.FollowersHead}
		ofRecords     = []routes.ID{routes.Records}
		ofLists       = []routes.ID{routes.UserLists}
		states        = []routes.ID{routes.Records, routes.UserBucket}
		ownList       = []routes.ID{routes.Records, routes.ListAccount}
		advice        = []routes.ID{routes.RecommendedShard}
		notifications = []routes.ID{routes.NotificationsShard, routes.OlderNotifications}
		ranked        = []routes.ID{routes.Ranked, routes.RankedShard, routes.RankedOrder}
	)
	with := func(all []routes.ID, more ...routes.ID) []routes.ID { return slices.Concat(all, more) }
	return map[routes.ID]sources{
		routes.UserPrimaryList:   {Own: ofLists},
		routes.UserENS:           {Own: []routes.ID{routes.UserAccount}},
		routes.UserSimpleProfile: {Own: []routes.ID{routes.UserAccount, routes.UserStats}},

		routes.UserQR: {Own: []routes.ID{routes.UserAccount}},
		routes.ListQR: {Own: []routes.ID{routes.ListAccount}},

		routes.UserRecords:            {Own: ofLists, Any: ofRecords},
		routes.UserFollowingAddresses: {Own: ofLists, Any: ofRecords},
		routes.ListFollowingAddresses: {Own: ofRecords},
		routes.ExportState:            {Own: ofRecords},

		// is_mutual depends on the followers of the account.
		routes.UserFollowing:    {Any: with(with(rows, followers...), routes.UserAccount)},
		routes.UserAllFollowing: {Any: with(with(rows, followers...), routes.UserAccount)},
		routes.UserSearch:       {Any: rows},
		routes.ListFollowing:    {Own: ownRows, Any: with(followers, routes.TokenBucket, routes.UserAccount)},
		routes.ListAllFollowing: {Own: ownRows, Any: with(followers, routes.TokenBucket, routes.UserAccount)},
		routes.ListSearch:       {Own: ownRows, Any: []routes.ID{routes.TokenBucket}},

		routes.UserFollowers:       {Any: with(followers, routes.UserAccount)},
		routes.UserAllFollowers:    {Any: with(followers, routes.UserAccount)},
		routes.UserLatestFollowers: {Any: followers},
		routes.UserSearchFollowers: {Any: followers},
		// The records of the list contain its data about the followers.
		routes.ListFollowers:       {Own: ownList, Any: with(followers, routes.UserAccount)},
		routes.ListAllFollowers:    {Own: ownList, Any: with(followers, routes.UserAccount)},
		routes.ListLatestFollowers: {Own: ownList, Any: followers},
		routes.ListSearchFollowers: {Own: ownList, Any: followers},

		routes.UserFollowerState: {Any: states},
		routes.ListFollowerState: {Own: []routes.ID{routes.ListAccount}, Any: states},
		routes.UserButtonState:   {Any: states},
		routes.ListButtonState:   {Own: ofRecords, Any: []routes.ID{routes.UserBucket}},
		routes.ButtonStateBatch:  {Own: ofRecords, Any: []routes.ID{routes.UserBucket}},
		routes.CommonFollowers:   {Any: with(rows, routes.FollowersShard, routes.FollowersHead, routes.Records)},

		routes.UserRecommended:        {Own: ofLists, Any: with(advice, routes.Records)},
		routes.UserRecommendedDetails: {Own: ofLists, Any: with(advice, routes.Records)},
		routes.ListRecommended:        {Own: ownList, Any: advice},
		routes.ListRecommendedDetails: {Own: ownList, Any: advice},

		routes.Relationship:  {Any: states},
		routes.Relationships: {Any: with(states, routes.FollowersShard)},
		routes.UserMutuals:   {Any: with(followers, routes.UserAccount)},
		routes.UserAvatar:    {Own: []routes.ID{routes.UserAccount}},

		routes.Ranked:       {Any: ranked},
		routes.RankedAll:    {Any: ranked},
		routes.RankedSearch: {Any: ranked},
		routes.Discover:     {Any: []routes.ID{routes.DiscoverShard}},

		// Entries also leave an answer as time passes, which changes no object; caches notice when the answer expires.
		routes.UserNotifications: {Own: []routes.ID{routes.UserAccount}, Any: notifications},
		routes.NotificationsFeed: {Own: []routes.ID{routes.UserAccount}, Any: notifications},
		routes.ListActivity:      {Own: []routes.ID{routes.ListAccount, routes.ActivityShard, routes.OlderActivity}},
	}
}()

// routeFolder returns the URL path, with a slash at its end, of the folder that holds all
// objects of the route.
func routeFolder(c site.Config, r *site.Route) string {
	path, _, _ := strings.Cut(r.Path(c), "{")
	return path[:strings.LastIndex(path, "/")+1]
}

// endpointFolder returns the endpoint's folder of a URL path, such as /api/v1/lists/, and other paths unchanged.
func endpointFolder(path string) string {
	segments, endpoints := strings.Split(path, "/"), site.APIFolders()
	for i, s := range segments[:len(segments)-1] {
		if slices.Contains(endpoints, s) {
			return strings.Join(segments[:i+1], "/") + "/"
		}
	}
	return path
}

// queriesOf lists the normal forms of all queries of the route except the empty one. ok is false if a parameter is a
// number or a text, which has too many values.
func queriesOf(r *site.Route) (queries []string, ok bool) {
	all := []string{""}
	for _, p := range r.Params {
		rule := site.Params()[p]
		if rule.Kind == site.ParamNumber || rule.Kind == site.ParamText || rule.Kind == site.ParamList || rule.Kind == site.ParamUser || rule.Kind == site.ParamExact {
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
