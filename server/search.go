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

// errMixed says that the parts of an answer come from two sites: one replaced the
// other in between.
var errMixed = errors.New("the site changed while it was read")

// errNoRoom says that a page has grown beyond the room that there is for pages.
var errNoRoom = errors.New("no room for the page")

// A reader gives objects of the site; storage.ErrNotFound if there is none. Whoever
// gets one releases it.
type reader struct {
	get func(ctx context.Context, key site.Key) (*object, error)
	has func(key site.Key) bool // whether get gives it at once
}

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
	o, err := h.searchOnce(ctx, reader{
		func(ctx context.Context, key site.Key) (*object, error) { return h.cache.get(ctx, v.version, key) },
		func(key site.Key) bool { return h.cache.has(cacheKey{version: v.version, key: key}) },
	}, v.root, s)
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
		v := h.reload(ctx) // not the one that reads ahead of the last try still use
		o, err = h.searchOnce(ctx, reader{
			func(ctx context.Context, key site.Key) (*object, error) { return h.cache.renew(ctx, v.version, key) },
			func(site.Key) bool { return false },
		}, v.root, s)
	}
	return o, err
}

// searchOnce makes a page. One that has no room among the others is begun again when it
// may be as large as it likes: it must not wait for that while it holds a shard.
func (h *Handler) searchOnce(ctx context.Context, read reader, root *site.Root, s site.Search) (*object, error) {
	o, err := h.makePage(ctx, read, root, s, false)
	if errors.Is(err, errNoRoom) {
		return h.makePage(ctx, read, root, s, true)
	}
	return o, err
}

func (h *Handler) makePage(ctx context.Context, read reader, root *site.Root, s site.Search, alone bool) (o *object, err error) {
	p, err := h.newPage(ctx, s, alone)
	if err != nil {
		return nil, err
	}
	defer func() {
		if o == nil { // in a panic too
			p.free()
		}
	}()
	tokenID := s.TokenID
	if s.User != "" {
		if tokenID, err = listOf(ctx, read, root, s.User); err != nil {
			return nil, err
		}
	}
	if tokenID == "" { // the user has none
		return p.end(), nil
	}
	err = h.fill(ctx, p, read, tokenID, s)
	if errors.Is(err, storage.ErrNotFound) {
		p.skip = s.Offset
		err = p.fillWhole(ctx, read, root.Config.ListKey(tokenID, site.SearchFollowing))
		if s.User != "" {
			err = cannotTell(err) // the bucket names a list that is not there
		}
	}
	if err != nil {
		return nil, err
	}
	return p.end(), nil
}

// listOf is the list of a user, "" for none; storage.ErrNotFound if nobody knows the user.
func listOf(ctx context.Context, read reader, root *site.Root, user string) (tokenID string, err error) {
	bucket, err := read.get(ctx, site.UserBucketKey(site.UserBucket(user, root.BucketDigits)))
	if err != nil {
		return "", fmt.Errorf("bucket of a user: %w", cannotTell(err))
	}
	defer bucket.release()
	tokenID, known := site.FindUser(bucket.body, user)
	if !known {
		return "", storage.ErrNotFound
	}
	return tokenID, nil
}

// fill fills a page from search shards; storage.ErrNotFound if not even the first is there.
func (h *Handler) fill(ctx context.Context, p *page, read reader, tokenID string, s site.Search) error {
	shard, err := read.get(ctx, site.SearchShardKey(tokenID, p.first))
	if err != nil {
		return fmt.Errorf("search shard: %w", err)
	}
	size := int64(len(shard.body))
	first, err := p.takeShard(shard)
	if err != nil {
		return err
	}
	end := first.Shards
	if s.Term == "" { // an entry's place tells its shard
		end = min(end, (s.Offset+s.Limit-1)/site.SearchShardSize+1)
	}
	if p.full() {
		return nil
	}
	for shard, err := range h.readAhead(ctx, read, tokenID, p.first+1, end, size) {
		if err != nil {
			return fmt.Errorf("search shard: %w", cannotTell(err))
		}
		header, err := p.takeShard(shard)
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

// aheadAtOnce is how many shards of a search are read at the same time.
const aheadAtOnce = 8

// readAhead gives the shards of a list from one to before another, in order. They take
// about so many bytes each, or as many as the largest so far. Those that come after the
// one that is needed are read at the same time, as long as there is room for them.
func (h *Handler) readAhead(ctx context.Context, read reader, tokenID string, from, end int, size int64) iter.Seq2[*object, error] {
	return func(yield func(*object, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel() // of what is not needed any more
		var begun []func() (*object, error)
		for n := from; n < end; n++ {
			for next := n + len(begun); next < min(end, n+aheadAtOnce); next++ {
				begun = append(begun, h.begin(ctx, read, site.SearchShardKey(tokenID, next), size))
			}
			o, err := begun[0]()
			begun = begun[1:]
			if err == nil {
				size = max(size, int64(len(o.body)))
			}
			if !yield(o, err) {
				return
			}
		}
	}
}

// begin begins to read an object, and gives what waits for it. Where there is nothing
// to wait for, or no room, that does it all. What is not needed yet is released when others
// wait for its memory, and when the context ends.
func (h *Handler) begin(ctx context.Context, read reader, key site.Key, size int64) (wait func() (*object, error)) {
	get := func() (*object, error) { return read.get(ctx, key) }
	if read.has(key) || h.cache.keeper.ledgerOf(size).crowded() || !h.ahead.TryAcquire(size) {
		return get
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
				wanted = h.cache.keeper.ledgerOf(int64(cap(r.object.body))).wanted()
			}
		}()
		if errors.Is(r.err, errBusy) { // which is for the others who wait: this one was not needed yet
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
			if !ok { // it gave way
				return get()
			}
			return r.object, r.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
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
	first int // shard to begin with
	skip  int // matching entries still to pass over
	left  int // entries still to take
	body  []byte
	err   error // errNoRoom: the page is not complete

	h       *Handler
	granted int64 // bytes, of h.pages
	alone   bool  // it has h.oversize instead
}

const (
	pageStart = `{"following":[`
	pageEnd   = "]}"
	// pageBytes are set aside for a page at first, and pageGrant is what it may grow to
	// without asking. Most are smaller.
	pageBytes = 2 << 10
	pageGrant = 8 << 10
)

// newPage waits for room for a page; alone, for being the only one that may be larger than
// there is room for.
func (h *Handler) newPage(ctx context.Context, s site.Search, alone bool) (*page, error) {
	room, granted := h.pages, int64(pageGrant)
	if alone {
		room, granted = h.oversize, 1
	}
	if room.Acquire(ctx, granted) != nil {
		return nil, errBusy
	}
	p := &page{
		match: site.NewMatcher(s.Term), skip: s.Offset, left: s.Limit, body: append(make([]byte, 0, pageBytes), pageStart...),
		h: h, alone: alone,
	}
	if !alone {
		p.granted = granted
		h.paged.Add(granted)
	}
	if s.Term == "" { // an entry's place tells its shard
		p.first = s.Offset / site.SearchShardSize
		p.skip -= p.first * site.SearchShardSize
	}
	return p, nil
}

func (p *page) full() bool { return p.left == 0 || p.err != nil }

// takeShard takes the entries of a search shard, and releases it.
func (p *page) takeShard(shard *object) (site.ShardHeader, error) {
	defer shard.release()
	header, err := site.ParseShardHeader(shard.body)
	if err != nil {
		return header, err
	}
	p.take(shard.body)
	return header, p.err
}

// fillWhole takes the entries of a list whose first page is the whole of it: it has no
// shards. For a longer list there is no shard beyond the end, where nothing is found;
// the first one must be there.
func (p *page) fillWhole(ctx context.Context, read reader, key site.Key) error {
	o, err := read.get(ctx, key)
	if err != nil {
		return err
	}
	defer o.release()
	if p.first == 0 && len(slices.Collect(site.Entries(o.body))) >= site.DefaultLimit {
		return errMixed
	}
	p.take(o.body)
	return p.err
}

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
		if p.err = p.grow(len(entry) + len(",") + len(pageEnd)); p.err != nil {
			return
		}
		if len(p.body) > len(pageStart) {
			p.body = append(p.body, ',')
		}
		p.body = append(p.body, entry...)
		p.left--
	}
}

// grow makes room for so many bytes more.
func (p *page) grow(bytes int) error {
	if len(p.body)+bytes <= cap(p.body) {
		return nil
	}
	size := max(2*cap(p.body), len(p.body)+bytes)
	if more := int64(size) - p.granted; more > 0 && !p.alone {
		if !p.h.pages.TryAcquire(more) { // not Acquire: it holds a shard, and a part of the pages
			return errNoRoom
		}
		p.granted += more
		p.h.paged.Add(more)
	}
	p.body = append(make([]byte, 0, size), p.body...)
	return nil
}

// end is the answer. Its release gives back what the page was granted.
func (p *page) end() *object {
	o := newObject(append(p.body, pageEnd...))
	if spare := p.granted - int64(cap(o.body)); spare > 0 && !p.alone {
		p.giveBack(spare)
	}
	o.free = p.free
	return o
}

func (p *page) giveBack(bytes int64) {
	p.granted -= bytes
	p.h.paged.Add(-bytes)
	p.h.pages.Release(bytes)
}

func (p *page) free() {
	if p.alone {
		p.h.oversize.Release(1)
	} else {
		p.giveBack(p.granted)
	}
}
