package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// errMixed says that the parts of an answer come from two sites: one replaced the
// other in between.
var errMixed = errors.New("the site changed while it was read")

// A reader gives an object of the site; storage.ErrNotFound if there is none.
type reader func(key site.Key) (*object, error)

const (
	firstReread = 50 * time.Millisecond
	lastReread  = 1600 * time.Millisecond
)

// search answers a following search from the search shards. It reads the shards
// that the page touches; with a term, shard after shard until the page is full.
// storage.ErrNotFound means that there is no such list or user.
//
// While a site is published, the parts of an answer may belong to the old and to the
// new one. They are read again then, past the cache, until they agree: the publisher
// puts the shards of a list one right after the other.
func (h *Handler) search(ctx context.Context, v *view, s site.Search) (*object, error) {
	read := func(key site.Key) (*object, error) { return h.cache.get(ctx, v.version, key) }
	o, err := searchOnce(read, v.root, s)
	if !errors.Is(err, errMixed) {
		return o, err
	}
	// A list may stay like that, where a publish was cut off: it must not take all requests.
	if !h.mixed.enter() {
		return nil, err
	}
	defer h.mixed.leave()
	for wait := firstReread; errors.Is(err, errMixed) && wait <= lastReread; wait *= 2 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, err
		}
		v = h.reload(ctx)
		o, err = searchOnce(func(key site.Key) (*object, error) { return h.cache.renew(ctx, v.version, key) }, v.root, s)
	}
	return o, err
}

func searchOnce(read reader, root *site.Root, s site.Search) (*object, error) {
	tokenID := s.TokenID
	if s.User != "" {
		bucket, err := read(site.UserBucketKey(site.UserBucket(s.User, root.BucketDigits)))
		if err != nil {
			return nil, fmt.Errorf("bucket of a user: %w", cannotTell(err))
		}
		known := false
		if tokenID, known = site.FindUser(bucket.body, s.User); !known {
			return nil, storage.ErrNotFound
		}
		if tokenID == "" {
			return newObject([]byte(site.EmptySearch)), nil
		}
	}
	p := newPage(s)
	first := 0
	if s.Term == "" {
		// Without a term an entry's place tells its shard.
		first = s.Offset / site.SearchShardSize
		p.skip -= first * site.SearchShardSize
	}
	var was site.ShardHeader
	for n := first; !p.full(); n++ {
		shard, err := read(site.SearchShardKey(tokenID, n))
		if errors.Is(err, storage.ErrNotFound) && n == first {
			o, err := searchWhole(read, root, tokenID, s, first)
			if s.User != "" {
				err = cannotTell(err) // the bucket names a list that is not there
			}
			return o, err
		} else if err != nil {
			return nil, fmt.Errorf("search shard: %w", cannotTell(err))
		}
		header, err := site.ParseShardHeader(shard.body)
		if err != nil {
			return nil, err
		}
		if n > first && (header.Total != was.Total || header.Shards != was.Shards) {
			return nil, errMixed
		}
		was = header
		p.take(shard.body)
		if n+1 >= header.Shards {
			break
		}
	}
	return p.end(), nil
}

// searchWhole searches a list whose first page is the whole of it: it has no
// shards. For a longer list there is no shard beyond the end, where nothing is found;
// the first one must be there.
func searchWhole(read reader, root *site.Root, tokenID string, s site.Search, shard int) (*object, error) {
	o, err := read(root.Config.ListKey(tokenID, site.SearchFollowing))
	if err != nil {
		return nil, err
	}
	if shard == 0 && len(slices.Collect(site.Entries(o.body))) >= site.DefaultLimit {
		return nil, errMixed
	}
	p := newPage(s)
	p.take(o.body)
	return p.end(), nil
}

// cannotTell keeps the absence of a part that must be there from looking like the
// absence of what was asked for.
func cannotTell(err error) error {
	if errors.Is(err, storage.ErrNotFound) {
		return errMixed
	}
	return err
}

// A page collects the entries of an answer.
type page struct {
	match *site.Matcher
	skip  int // matching entries still to pass over
	left  int // entries still to take
	body  []byte
}

const pageStart = `{"following":[`

func newPage(s site.Search) *page {
	return &page{match: site.NewMatcher(s.Term), skip: s.Offset, left: s.Limit, body: []byte(pageStart)}
}

func (p *page) full() bool { return p.left == 0 }

// take takes the entries of an object that belong on the page.
func (p *page) take(object []byte) {
	for entry := range site.Entries(object) {
		if p.full() {
			return
		}
		if !p.match.Match(entry) {
			continue
		}
		if p.skip > 0 {
			p.skip--
			continue
		}
		if len(p.body) > len(pageStart) {
			p.body = append(p.body, ',')
		}
		p.body = append(p.body, entry...)
		p.left--
	}
}

func (p *page) end() *object { return newObject(append(p.body, "]}"...)) }
