package server

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// errMixed says that the parts of an answer come from two sites, because one replaced the
// other meanwhile.
var errMixed = errors.New("the site changed while it was read")

// errNoRoom says that a page does not fit the memory for pages at the moment.
var errNoRoom = errors.New("no memory for the page")

// A reader reads objects of the site.
type reader struct {
	get     func(ctx context.Context, key site.Key) (*object, error) // or storage.ErrNotFound; the caller releases the object
	has     func(key site.Key) bool                                  // whether get returns without waiting
	renews  bool                                                     // get reads past the cache
	version version                                                  // of the site
}

const (
	firstReread = 50 * time.Millisecond
	lastReread  = 1600 * time.Millisecond
)

// search answers a following search from the search shards. Without a term it reads the shards
// that the page touches; with a term it reads shard after shard until the page is full.
// storage.ErrNotFound means that there is no such list or user.
//
// While a site is published, some parts of an answer may belong to the old site and others to
// the new one. consistent then reads them again, past the cache, until they agree. That is soon, as
// the publisher puts the shards of a list one right after the other.
func (h *Handler) search(ctx context.Context, v *liveSite, s site.Search) (*object, error) {
	return h.consistent(ctx, v, func(read reader, root *site.Root) (*object, error) {
		return h.searchOnce(ctx, read, root, s)
	})
}

// consistent makes an answer from parts of the site. If try returns errMixed, it tries again with a
// reader past the cache.
func (h *Handler) consistent(ctx context.Context, v *liveSite, try func(reader, *site.Root) (*object, error)) (*object, error) {
	o, err := try(reader{
		version: v.version,
		get: func(ctx context.Context, key site.Key) (*object, error) {
			return h.cache.get(ctx, cacheKey{version: v.version, key: key})
		},
		has: func(key site.Key) bool { return h.cache.has(cacheKey{version: v.version, key: key}) },
	}, v.root)
	if !errors.Is(err, errMixed) {
		return o, err
	}
	// After a publish that was cut off, a list may stay mixed: it must not occupy all requests.
	if !h.mixed.tryAcquire() {
		return nil, err
	}
	defer h.mixed.release()
	for wait := firstReread; errors.Is(err, errMixed) && wait <= lastReread; wait *= 2 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, err
		}
		v := h.reload(ctx) // a new variable: the prefetches of the last try still use the old one
		o, err = try(reader{
			version: v.version,
			get: func(ctx context.Context, key site.Key) (*object, error) {
				return h.cache.renew(ctx, cacheKey{version: v.version, key: key})
			},
			has: func(site.Key) bool { return false }, renews: true,
		}, v.root)
	}
	return o, err
}

// searchOnce makes a page.
func (h *Handler) searchOnce(ctx context.Context, read reader, root *site.Root, s site.Search) (*object, error) {
	return h.inBuffer(ctx, func(b *buffer) (err error) {
		p := newPage(b, s)
		tokenID := s.TokenID
		if s.User != "" {
			if tokenID, err = listOf(ctx, read, root, s.User); err != nil {
				return err
			}
		}
		if tokenID != "" { // else the user has no primary list
			err = h.fill(ctx, p, read, tokenID, s)
			if errors.Is(err, storage.ErrNotFound) {
				p.skip = s.Offset
				err = p.fillWhole(ctx, read, root.Config.ListKey(tokenID, site.SearchFollowing))
				if s.User != "" {
					err = mixedIfAbsent(err) // the user bucket names a list that does not exist
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
		return "", fmt.Errorf("user bucket: %w", mixedIfAbsent(err))
	}
	defer bucket.release()
	tokenID, known := site.FindUser(bucket.body, user)
	if !known {
		return "", storage.ErrNotFound
	}
	return tokenID, nil
}

// fill fills a page from search shards. storage.ErrNotFound means that the first one does not exist.
func (h *Handler) fill(ctx context.Context, p *page, read reader, tokenID string, s site.Search) error {
	shard, err := read.get(ctx, site.SearchShardKey(tokenID, p.first))
	if err != nil {
		return fmt.Errorf("search shard: %w", err)
	}
	size := int64(len(shard.body))
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
	for shard, err := range h.readAhead(ctx, read, func(n int) site.Key { return site.SearchShardKey(tokenID, n) }, p.first+1, end, size) {
		if err != nil {
			return fmt.Errorf("search shard: %w", mixedIfAbsent(err))
		}
		header, err := p.takeShard(ctx, shard)
		if err != nil {
			return err
		}
		if header.Total != first.Total || header.Shards != first.Shards {
			return errMixed
		}
		if p.full() {
			break
		}
	}
	return nil
}

// One request reads as many objects at the same time as aheadBytes hold, but so many at least and most.
// More would often be in vain: nobody knows how many a search needs.
const (
	aheadBytes = 1 << 20
	leastAhead = 8
	mostAhead  = 64
)

// readAhead yields the objects with the keys of from <= n < end in order. It prefetches some
// of them while memory allows. size is the expected size of an object in bytes; the
// largest of late corrects it.
func (h *Handler) readAhead(ctx context.Context, read reader, key func(n int) site.Key, from, end int, size int64) iter.Seq2[*object, error] {
	return func(yield func(*object, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel() // ends the prefetches that are not needed any more
		var begun []func() (*object, error)
		for n := from; n < end; n++ {
			atOnce := int(min(max(aheadBytes/size, leastAhead), mostAhead))
			for next := n + len(begun); next < min(end, n+atOnce); next++ {
				wait := h.prefetch(ctx, read, key(next), size)
				if wait == nil && next > n {
					break // there may be memory later
				}
				begun = append(begun, wait)
			}
			if begun[0] == nil {
				begun[0] = func() (*object, error) { return read.get(ctx, key(n)) }
			}
			o, err := begun[0]()
			begun = begun[1:]
			if err == nil {
				size = max(size-size/8, int64(len(o.body)))
			}
			if !yield(o, err) {
				return
			}
		}
	}
}

// prefetch starts to read an object and returns a function that waits for it. If the object is
// cached, it starts nothing and the function does the reading. It returns nil if there is no memory. An
// object that nobody waits for yet is released as soon as others wait for its memory, and when ctx ends;
// the function reads it again then.
func (h *Handler) prefetch(ctx context.Context, read reader, key site.Key, size int64) (wait func() (*object, error)) {
	get := func() (*object, error) { return read.get(ctx, key) }
	if read.has(key) {
		return get
	}
	if h.cache.waiting.isHalfTaken() || h.cache.tracker.budgetFor(size).crowded() || !h.ahead.TryAcquire(size) {
		return nil
	}
	type result struct {
		object *object
		err    error
	}
	results := make(chan result)
	go func() {
		defer h.ahead.Release(size)
		defer close(results)
		var r result
		var wanted <-chan struct{}
		func() {
			defer guard(&r.err)
			if r.object, r.err = get(); r.err == nil {
				wanted = h.cache.tracker.budgetFor(r.object.bytes()).wanted()
			}
		}()
		if errors.Is(r.err, errBusy) { // this object was not needed yet: let the function try again
			return
		}
		select {
		case results <- r: // at once
			return
		default:
		}
		select {
		case results <- r:
			return
		case <-wanted:
		case <-ctx.Done():
		}
		if r.err == nil {
			r.object.release()
		}
	}()
	return func() (*object, error) {
		select {
		case r, ok := <-results:
			if !ok { // the prefetch gave up its memory
				return get()
			}
			return r.object, r.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// mixedIfAbsent keeps the absence of a part that must be there from looking like the
// absence of what was asked for.
func mixedIfAbsent(err error) error {
	if errors.Is(err, storage.ErrNotFound) {
		return errMixed
	}
	return err
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
func (p *page) takeShard(ctx context.Context, shard *object) (header site.ShardHeader, err error) {
	defer shard.release()
	err = p.h.scan(ctx, len(shard.body), func() error {
		if x := shard.index; x != nil {
			header = x.Header
			p.takeIndexed(x, shard.body)
			return p.err
		}
		if header, err = site.ParseShardHeader(shard.body); err != nil {
			return err
		}
		p.take(shard.body)
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
	defer o.release()
	return p.h.scan(ctx, len(o.body), func() error {
		if p.first == 0 && len(slices.Collect(site.Entries(o.body))) >= site.DefaultLimit {
			return errMixed
		}
		p.take(o.body)
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
