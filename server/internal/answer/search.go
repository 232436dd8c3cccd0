package answer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/followpress/followpress/server/internal/cache"
	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// Search answers a following search from the search shards. Without a term it reads the shards
// that the page touches; with a term it reads shard after shard until the page is full.
// storage.ErrNotFound means that there is no such list or user.
//
// While a site is published, some parts of an answer may belong to the old site and others to
// the new one. consistent then reads them again, past the cache, until they agree. That is soon, as
// the publisher puts the shards of a list one right after the other.
func (m *Maker) Search(ctx context.Context, v Site, s site.Search) (*cache.Object, error) {
	return m.consistent(ctx, v, func(read reader, root *site.Root) (*cache.Object, error) {
		return m.searchOnce(ctx, read, root, s)
	})
}

// searchOnce makes a page.
func (m *Maker) searchOnce(ctx context.Context, read reader, root *site.Root, s site.Search) (*cache.Object, error) {
	return m.inBuffer(ctx, func(b *buffer) (err error) {
		p := newPage(b, s)
		tokenID := s.TokenID
		if s.User != "" {
			if tokenID, err = listOf(ctx, read, root, s.User); err != nil {
				return err
			}
		}
		if tokenID != "" { // else the user has no primary list
			err = m.fill(ctx, p, read, tokenID, s)
			if errors.Is(err, storage.ErrNotFound) {
				p.skip = s.Offset
				err = p.fillWhole(ctx, read, root.Config.ListKey(tokenID, site.SearchFollowing))
				if s.User != "" {
					err = fetch.MixedIfAbsent(err) // the user bucket names a list that does not exist
				}
			}
		}
		p.body = append(p.body, pageEnd...)
		return err
	})
}

// listOf looks up the primary list of a user, "" for none. storage.ErrNotFound means that there is
// no such user.
func listOf(ctx context.Context, read reader, root *site.Root, user string) (tokenID string, err error) {
	bucket, err := read.get(ctx, site.UserBucketKey(site.UserBucket(user, root.BucketDigits)))
	if err != nil {
		return "", fmt.Errorf("user bucket: %w", fetch.MixedIfAbsent(err))
	}
	defer bucket.Release()
	tokenID, known := site.FindUser(bucket.Body, user)
	if !known {
		return "", storage.ErrNotFound
	}
	return tokenID, nil
}

// fill fills a page from search shards. storage.ErrNotFound means that the first one does not exist.
func (m *Maker) fill(ctx context.Context, p *page, read reader, tokenID string, s site.Search) error {
	shard, err := read.get(ctx, site.SearchShardKey(tokenID, p.first))
	if err != nil {
		return fmt.Errorf("search shard: %w", err)
	}
	size := int64(len(shard.Body))
	first, err := p.takeShard(ctx, shard)
	if err != nil {
		return err
	}
	end := first.Shards
	if s.Term == "" { // the offset of an entry determines its shard
		end = min(end, (s.Offset+s.Limit-1)/site.SearchShardSize+1)
	}
	if p.full() {
		return nil
	}
	if err := p.mustBeLarge((end - p.first) * shardObjects); err != nil {
		return err
	}
	for shard, err := range m.readAhead(ctx, read, func(n int) site.Key { return site.SearchShardKey(tokenID, n) }, p.first+1, end, size) {
		if err != nil {
			return fmt.Errorf("search shard: %w", fetch.MixedIfAbsent(err))
		}
		header, err := p.takeShard(ctx, shard)
		if err != nil {
			return err
		}
		if header.Total != first.Total || header.Shards != first.Shards {
			return fetch.ErrMixed
		}
		if p.full() {
			break
		}
	}
	return nil
}

// A page collects the entries of an answer.
type page struct {
	match *site.Matcher
	term  []byte // of match
	first int    // number of the first shard to read
	skip  int    // matching entries to skip yet
	left  int    // matching entries to take yet
	err   error  // errNoRoom: the page is incomplete
	*buffer
}

const (
	pageStart = `{"following":[`
	pageEnd   = "]}"
)

// newPage begins a page in an empty buffer.
func newPage(b *buffer, s site.Search) *page {
	b.body = append(b.body, pageStart...)
	p := &page{match: site.NewMatcher(s.Term), term: []byte(s.Term), skip: s.Offset, left: s.Limit, buffer: b}
	if s.Term == "" { // the offset of an entry determines its shard
		p.first = s.Offset / site.SearchShardSize
		p.skip -= p.first * site.SearchShardSize
	}
	return p
}

func (p *page) full() bool { return p.left == 0 || p.err != nil }

// takeShard takes entries of a search shard and releases the shard.
func (p *page) takeShard(ctx context.Context, shard *cache.Object) (header site.ShardHeader, err error) {
	defer shard.Release()
	err = p.m.scan(ctx, len(shard.Body), func() error {
		if x := shard.Index; x != nil {
			header = x.Header
			p.takeIndexed(x, shard.Body)
			return p.err
		}
		if header, err = site.ParseShardHeader(shard.Body); err != nil {
			return err
		}
		p.take(shard.Body)
		return p.err
	})
	return header, err
}

// fillWhole fills a page of a list without shards: the object of its first page holds the whole
// list. A longer list has a first shard. An offset beyond its end names a shard that does not
// exist, and finds nothing.
func (p *page) fillWhole(ctx context.Context, read reader, key site.Key) error {
	o, err := read.get(ctx, key)
	if err != nil {
		return err
	}
	defer o.Release()
	return p.m.scan(ctx, len(o.Body), func() error {
		if p.first == 0 && len(slices.Collect(site.Entries(o.Body))) >= site.DefaultLimit {
			return fetch.ErrMixed
		}
		p.take(o.Body)
		return p.err
	})
}

// take appends the entries of an object that belong on the page.
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
		p.add(entry)
	}
}

// takeIndexed is take for a search shard with an index.
func (p *page) takeIndexed(x *site.ShardIndex, shard []byte) {
	i := 0
	if len(p.term) == 0 { // all entries match
		i = min(p.skip, x.Len())
		p.skip -= i
	}
	for ; !p.full(); i++ {
		if i = x.Next(i, p.term); i == x.Len() {
			return
		}
		if p.skip > 0 {
			p.skip--
			continue
		}
		p.add(x.Entry(shard, i))
	}
}

// add appends an entry, unless the page has to end.
func (p *page) add(entry []byte) {
	if len(p.body) > len(pageStart) && p.pageEnds(len(entry)) {
		p.left = 0
		return
	}
	if p.err = p.grow(len(entry) + len(",") + len(pageEnd)); p.err != nil {
		return
	}
	if len(p.body) > len(pageStart) {
		p.body = append(p.body, ',')
	}
	p.body = append(p.body, entry...)
	p.left--
}
