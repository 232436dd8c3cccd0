package answer

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/followpress/followpress/server/internal/cache"
	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/site/scan"
	"github.com/followpress/followpress/storage"
)

// A computation makes an answer. Its methods return fetch.ErrMixed if what it read is of two sites,
// errNoRoom if its buffer cannot grow, and a *ProblemError if the answer is a problem.
type computation struct {
	*buffer
	ctx   context.Context // of the request
	read  reader
	root  *site.Root
	ask   site.Ask
	query string    // of the request, in its normal form
	users []*string // of the body; nil for a null
}

// A ProblemError says that the answer is a problem.
type ProblemError struct{ *site.Problem }

func (e *ProblemError) Error() string { return e.Name }

// Compute answers a request that must be computed. Answers are kept under the normal form of the request
// for a while, except those to a body, and those of entries, which are as quick to make again.
func (m *Maker) Compute(ctx context.Context, v Site, r site.Resolution, users []*string) (*cache.Object, error) {
	if r.Route.Post || r.Action == site.AnswerSearch {
		return m.computeOnce(ctx, v, r, users)
	}
	k := cache.Key{Version: v.Version, Key: r.Key + site.Key("?"+r.Query)} // no key of a site has a question mark
	return m.cache.Computed(ctx, k, func(ctx context.Context) (*cache.Object, error) {
		return m.computeOnce(ctx, v, r, nil)
	})
}

func (m *Maker) computeOnce(ctx context.Context, v Site, r site.Resolution, users []*string) (*cache.Object, error) {
	answer, ok := computations[r.Route.ID]
	if !ok {
		return nil, fmt.Errorf("no computation for %s", r.Route.Pattern)
	}
	return m.consistent(ctx, v, func(read reader, root *site.Root) (*cache.Object, error) {
		return m.inBuffer(ctx, func(b *buffer) error {
			return answer(&computation{buffer: b, ctx: ctx, read: read, root: root, ask: r.Ask, query: r.Query, users: users})
		})
	})
}

// computations append the answers of routes to the body.
var computations = map[routes.ID]func(*computation) error{
	routes.UserENS:                (*computation).ens,
	routes.UserSimpleProfile:      (*computation).simpleProfile,
	routes.UserPrimaryList:        (*computation).primaryList,
	routes.UserRecords:            (*computation).listRecords,
	routes.UserFollowing:          following(false),
	routes.ListFollowing:          following(false),
	routes.UserAllFollowing:       following(true),
	routes.ListAllFollowing:       following(true),
	routes.UserSearch:             (*computation).searchFollowing,
	routes.ListSearch:             (*computation).searchFollowing,
	routes.UserFollowers:          followers(false),
	routes.ListFollowers:          followers(false),
	routes.UserLatestFollowers:    followers(false),
	routes.ListLatestFollowers:    followers(false),
	routes.UserAllFollowers:       followers(true),
	routes.ListAllFollowers:       followers(true),
	routes.UserSearchFollowers:    (*computation).searchFollowers,
	routes.ListSearchFollowers:    (*computation).searchFollowers,
	routes.UserFollowingAddresses: (*computation).followingAddresses,
	routes.ListFollowingAddresses: (*computation).followingAddresses,
	routes.ExportState:            (*computation).exportState,
	routes.UserFollowerState:      (*computation).userFollowerState,
	routes.ListFollowerState:      (*computation).listFollowerState,
	routes.UserButtonState:        (*computation).buttonState,
	routes.ListButtonState:        (*computation).buttonState,
	routes.ButtonStateBatch:       (*computation).buttonStates,
	routes.CommonFollowers:        (*computation).commonFollowers,
	routes.Ranked:                 (*computation).ranked,
	routes.RankedSearch:           (*computation).rankedSearch,
	routes.UserRecommended:        (*computation).recommended,
	routes.ListRecommended:        (*computation).recommended,
	routes.UserRecommendedDetails: (*computation).recommendedDetails,
	routes.ListRecommendedDetails: (*computation).recommendedDetails,
	routes.Discover:               (*computation).discover,
	routes.UserQR:                 (*computation).qr,
	routes.ListQR:                 (*computation).qr,
	routes.RankedAll:              (*computation).ranked,
	routes.Relationship:           (*computation).relationship,
	routes.Relationships:          (*computation).relationships,
	routes.UserMutuals:            (*computation).mutuals,
	routes.UserAvatar:             (*computation).avatar,
	routes.UserNotifications:      (*computation).notifications,
	routes.NotificationsFeed:      (*computation).notificationsFeed,
	routes.ListActivity:           (*computation).activity,
}

func (c *computation) add(text ...[]byte) error {
	n := 0
	for _, t := range text {
		n += len(t)
	}
	if err := c.grow(n); err != nil {
		return err
	}
	for _, t := range text {
		c.body = append(c.body, t...)
	}
	return nil
}

func (c *computation) addText(text string) error {
	if err := c.grow(len(text)); err != nil {
		return err
	}
	c.body = append(c.body, text...)
	return nil
}

// entrySpare is more than an entry has beside its texts.
const entrySpare = 512

// addEntry appends an entry to a list in the body. textBytes is the length of its texts.
func (c *computation) addEntry(first bool, textBytes int, render func(b []byte) []byte) error {
	if err := c.grow(textBytes + entrySpare); err != nil {
		return err
	}
	if !first {
		c.body = append(c.body, ',')
	}
	c.body = render(c.body)
	return nil
}

// use reads an object and calls f with its body, which is not valid any more when f returns.
func (c *computation) use(key site.Key, f func(body []byte) error) error {
	o, err := c.read.get(c.ctx, key)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	defer o.Release()
	return c.m.scan(c.ctx, len(o.Body), func() error { return f(o.Body) })
}

// useKnown is use for an object that another one says is there.
func (c *computation) useKnown(key site.Key, f func(body []byte) error) error {
	return fetch.MixedIfAbsent(c.use(key, f))
}

// A subject is an account and one of its lists, about which a request asks.
type subject struct {
	address   string
	list      string // token ID: the list that the path names, or the primary list of the user; "" for none
	primary   bool   // list is the primary list
	held      int    // accounts that the list holds
	followers int    // primary lists that hold the account
}

// findSubject looks up the list or the user that the path names.
func (c *computation) findSubject() (subject, error) {
	if c.ask.TokenID != "" {
		return c.lookUpList(c.ask.TokenID)
	}
	return c.lookUp(c.ask.User)
}

// findList returns the list that the path names, or the primary list of the user; "" for none, and how much
// it holds. Whether a list that the path names exists, records tells.
func (c *computation) findList() (tokenID string, held int, err error) {
	if c.ask.TokenID != "" {
		return c.ask.TokenID, anyNumber, nil
	}
	s, err := c.lookUp(c.ask.User)
	return s.list, s.held, err
}

// lookUp looks up an address or a name. An address that the graph does not know has nothing.
func (c *computation) lookUp(user string) (s subject, err error) {
	err = c.useKnown(site.UserBucketKey(site.UserBucket(user, c.root.BucketDigits)), func(bucket []byte) error {
		node, known, err := scan.FindUserNode(bucket, user)
		switch {
		case err != nil:
			return err
		case known:
			s = subject{address: node.Address, list: node.List, primary: node.List != "", held: node.Held, followers: node.Followers}
		case isAddress(user):
			s = subject{address: user}
		default:
			return &ProblemError{site.NoSuchName}
		}
		return nil
	})
	return s, err
}

func isAddress(user string) bool {
	_, err := site.ParseAddress(user)
	return err == nil
}

func (c *computation) lookUpList(tokenID string) (s subject, err error) {
	err = c.useKnown(c.tokenBucket(tokenID), func(bucket []byte) error {
		node, known, err := scan.FindListNode(bucket, tokenID)
		if err == nil && !known {
			err = &ProblemError{site.NoSuchList}
		}
		s = subject{address: node.Account, list: tokenID, primary: node.Primary, held: node.Held, followers: node.Followers}
		return err
	})
	return s, err
}

func (c *computation) tokenBucket(tokenID string) site.Key {
	return site.TokenBucketKey(site.UserBucket(tokenID, c.root.TokenDigits))
}

func (c *computation) addressOf(user string) (string, error) {
	if isAddress(user) {
		return user, nil
	}
	s, err := c.lookUp(user)
	return s.address, err
}

// anyNumber is a number of records that nothing is known about.
const anyNumber = -1

// records calls f for what a list holds, in its order. held says how many that should be. It does nothing
// for the list "".
func (c *computation) records(list string, held int, f func(scan.HeldRecord) error) error {
	if list == "" {
		return nil
	}
	err := c.use(c.root.Config.ListKey(list, site.Records), func(records []byte) error {
		n := 0
		for r := range scan.HeldRecords(records) {
			if err := f(r); err != nil {
				return err
			}
			n++
		}
		if held != anyNumber && n != held {
			return fetch.ErrMixed
		}
		return nil
	})
	if list == c.ask.TokenID && errors.Is(err, storage.ErrNotFound) && held == anyNumber {
		return &ProblemError{site.NoSuchList}
	}
	return fetch.MixedIfAbsent(err)
}

// appendMillis appends a time in milliseconds since the Unix epoch, with its quotation marks.
func appendMillis(b []byte, ms int64) []byte {
	return time.UnixMilli(ms).UTC().AppendFormat(b, `"2006-01-02T15:04:05.000Z"`)
}

// nullIfEmpty returns null for an empty JSON string.
func nullIfEmpty(text []byte) []byte {
	if string(text) == `""` {
		return []byte("null")
	}
	return text
}

// LookedUp turns a request for a file of a name, which has none under site.NamesLookup, into one for the
// file of its address. Other requests come back unchanged.
func (m *Maker) LookedUp(ctx context.Context, v Site, r site.Resolution) (site.Resolution, error) {
	if r.Action != site.AnswerComputed || r.Route.Computed || r.Query != "" && !r.Fresh {
		return r, nil
	}
	s, err := m.lookUp(ctx, v, r.Ask.User)
	if err != nil {
		return r, err
	}
	object := site.ListObject(path.Base(string(r.Key)))
	r.Action, r.Key, r.Absent, r.Address = site.AnswerObject, v.Root.Config.UserObjectKey(s.address, object), nil, s.address
	if object != site.SearchFollowing {
		r.Unknown = site.UnknownKey(object)
	}
	return r, nil
}

func (m *Maker) lookUp(ctx context.Context, v Site, user string) (s subject, err error) {
	_, err = m.consistent(ctx, v, func(read reader, root *site.Root) (_ *cache.Object, err error) {
		s, err = (&computation{buffer: &buffer{m: m}, ctx: ctx, read: read, root: root}).lookUp(user)
		return nil, err
	})
	return s, err
}
