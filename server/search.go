package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// errMixed says that the parts of an answer come from two sites: one replaced the
// other in between.
var errMixed = errors.New("the site changed while it was read")

// search answers a following search from the search shards. It reads the shards
// that the page touches; with a term, shard after shard until the page is full.
// storage.ErrNotFound means that there is no such list or user.
func (h *Handler) search(ctx context.Context, v *view, s site.Search) (*object, error) {
	o, err := h.searchOnce(ctx, v, s)
	if errors.Is(err, errMixed) {
		o, err = h.searchOnce(ctx, h.reload(ctx), s)
	}
	return o, err
}

func (h *Handler) searchOnce(ctx context.Context, v *view, s site.Search) (*object, error) {
	tokenID := s.TokenID
	if s.User != "" {
		bucket, err := h.cache.get(ctx, v.version, site.UserBucketKey(site.UserBucket(s.User, v.root.BucketDigits)))
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
		shard, err := h.cache.get(ctx, v.version, site.SearchShardKey(tokenID, n))
		if errors.Is(err, storage.ErrNotFound) && n == first {
			o, err := h.searchWhole(ctx, v, tokenID, s)
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
// shards. For a longer list it is what lies past the end, which is nothing.
func (h *Handler) searchWhole(ctx context.Context, v *view, tokenID string, s site.Search) (*object, error) {
	o, err := h.cache.get(ctx, v.version, v.root.Config.ListKey(tokenID, site.SearchFollowing))
	if err != nil {
		return nil, err
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
