// Package answer computes the answers that no object of a site holds: pages and term searches, from
// search shards, and under site.APIEFP most requests with parameters, from buckets, shards and
// files.
//
// answer.go maps routes to the packages below, one per kind of answer: pages, search, ranked,
// history, state and profile. They build on table, which pages through long tables; lookup, which
// finds users and lists; and compute, which provides objects and bounds the memory of an answer.
package answer

import (
	"context"
	"fmt"
	"path"

	"github.com/followpress/followpress/server/internal/answer/compute"
	"github.com/followpress/followpress/server/internal/answer/history"
	"github.com/followpress/followpress/server/internal/answer/lookup"
	"github.com/followpress/followpress/server/internal/answer/pages"
	"github.com/followpress/followpress/server/internal/answer/profile"
	"github.com/followpress/followpress/server/internal/answer/ranked"
	"github.com/followpress/followpress/server/internal/answer/search"
	"github.com/followpress/followpress/server/internal/answer/state"
	"github.com/followpress/followpress/server/internal/cache"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
)

type (
	// Site is the version of the site that a request is answered from.
	Site = compute.Site

	// Gates bound the memory and the work of making answers.
	Gates = compute.Gates

	// ProblemError carries a problem to answer with.
	ProblemError = compute.ProblemError
)

// LeastBytes is the minimum size of Gates.Small and Gates.Large.
const LeastBytes = compute.LeastBytes

// A Maker makes answers. It is safe for concurrent use.
type Maker struct {
	cache *cache.Cache
	maker *compute.Maker
}

// New returns a Maker of answers from the objects of a cache. reload returns the newest site.
func New(c *cache.Cache, g Gates, reload func(ctx context.Context) Site) *Maker {
	return &Maker{c, compute.NewMaker(c, g, reload)}
}

// Compute makes the answer to a computed request. The cache keeps answers for a while under the
// normal form of the request, except answers to a body and answers for single entries, which are as
// quick to make again.
func (m *Maker) Compute(ctx context.Context, s Site, r site.Resolution, users []*string) (*cache.Object, error) {
	answer, ok := answers[r.Route.ID]
	if !ok {
		return nil, fmt.Errorf("no computation for %s", r.Route.Pattern)
	}
	once := func(ctx context.Context) (*cache.Object, error) {
		return m.maker.Make(ctx, s, compute.Request{Ask: r.Ask, Query: r.Query, Users: users}, answer)
	}
	if r.Route.Post || r.Action == site.AnswerSearch {
		return once(ctx)
	}
	k := cache.Key{Version: s.Version, Key: r.Key + site.Key("?"+r.Query)} // keys of a site contain no question mark
	return m.cache.Computed(ctx, k, once)
}

// answers maps each computed route to the function that appends its answer to the body.
var answers = map[routes.ID]func(*compute.Answer) error{
	routes.UserENS:                profile.ENS,
	routes.UserSimpleProfile:      profile.Simple,
	routes.UserPrimaryList:        profile.PrimaryList,
	routes.UserRecords:            pages.Records,
	routes.UserFollowing:          pages.Following,
	routes.ListFollowing:          pages.Following,
	routes.UserAllFollowing:       pages.AllFollowing,
	routes.ListAllFollowing:       pages.AllFollowing,
	routes.UserSearch:             searchFollowing,
	routes.ListSearch:             searchFollowing,
	routes.UserFollowers:          pages.Followers,
	routes.ListFollowers:          pages.Followers,
	routes.UserLatestFollowers:    pages.Followers,
	routes.ListLatestFollowers:    pages.Followers,
	routes.UserAllFollowers:       pages.AllFollowers,
	routes.ListAllFollowers:       pages.AllFollowers,
	routes.UserSearchFollowers:    pages.SearchFollowers,
	routes.ListSearchFollowers:    pages.SearchFollowers,
	routes.UserFollowingAddresses: pages.Addresses,
	routes.ListFollowingAddresses: pages.Addresses,
	routes.ExportState:            pages.Export,
	routes.UserFollowerState:      state.UserFollower,
	routes.ListFollowerState:      state.ListFollower,
	routes.UserButtonState:        state.Button,
	routes.ListButtonState:        state.Button,
	routes.ButtonStateBatch:       state.Buttons,
	routes.CommonFollowers:        pages.CommonFollowers,
	routes.Ranked:                 ranked.Page,
	routes.RankedSearch:           ranked.Search,
	routes.UserRecommended:        ranked.Recommended,
	routes.ListRecommended:        ranked.Recommended,
	routes.UserRecommendedDetails: ranked.RecommendedDetails,
	routes.ListRecommendedDetails: ranked.RecommendedDetails,
	routes.Discover:               ranked.Discover,
	routes.UserQR:                 profile.QR,
	routes.ListQR:                 profile.QR,
	routes.RankedAll:              ranked.Page,
	routes.Relationship:           state.Relationship,
	routes.Relationships:          pages.Relationships,
	routes.UserMutuals:            pages.Mutuals,
	routes.UserAvatar:             profile.Avatar,
	routes.UserNotifications:      history.Notifications,
	routes.NotificationsFeed:      history.Feed,
	routes.ListActivity:           history.Activity,
}

// searchFollowing reads shards of rows under site.APIEFP, else shards of entries.
func searchFollowing(a *compute.Answer) error {
	if a.Root.Config.EFP() {
		return pages.SearchFollowing(a)
	}
	return search.Following(a)
}

// LookedUp resolves a request by name to the file of the address under site.NamesLookup, where
// names have no files. It returns other requests unchanged.
func (m *Maker) LookedUp(ctx context.Context, s Site, r site.Resolution) (site.Resolution, error) {
	if r.Action != site.AnswerComputed || r.Route.Computed || r.Query != "" && !r.Fresh {
		return r, nil
	}
	var user lookup.Subject
	err := m.maker.Read(ctx, s, func(a *compute.Answer) (err error) {
		user, err = lookup.User(a, r.Ask.User)
		return err
	})
	if err != nil {
		return r, err
	}
	object := site.ListObject(path.Base(string(r.Key)))
	r.Action, r.Key, r.Absent, r.Address = site.AnswerObject, s.Root.Config.UserObjectKey(user.Address, object), nil, user.Address
	if object != site.SearchFollowing {
		r.Unknown = site.UnknownKey(object)
	}
	return r, nil
}
