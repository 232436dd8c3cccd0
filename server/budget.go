package server

import (
	"container/list"
	"context"
	"encoding/hex"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/followpress/followpress/site"
)

// Beyond its cache the handler holds objects that are being read, objects that the cache
// has dropped while requests still use them, and computed answers. Budgets bound all three.
// What does not fit waits. Large objects have a budget of their own, so that two of them do
// not keep small ones out; so do computed answers while they are made (pool) and sent (sent).
//
// There is no deadlock, because no request waits for memory while it holds an object: a
// search needs one shard at a time, releases what it has prefetched as soon as others wait,
// and starts again if its page finds no room. A request that holds a page waits for objects
// only.

// A budget bounds the bytes of objects in memory. It is safe for concurrent use.
type budget struct {
	size int64

	mu    sync.Mutex
	taken int64         // may exceed size
	queue list.List     // of *claim, in the order of their arrival
	short chan struct{} // closed when a claim waits; nil if nobody called wanted
}

// A claim is a request for bytes that waits.
type claim struct {
	bytes   int64
	passed  int // claims that were granted before it while it was the first
	granted chan struct{}
}

// mostPassed is how many smaller claims may overtake the first one while that does not fit.
// So a large claim neither blocks the others nor waits forever.
const mostPassed = 16

// acquire waits until that many bytes are free and takes them. It returns errBusy if ctx ends
// first. A claim that is larger than the whole budget is granted when half of the budget is
// free: otherwise a single slow client could keep it out.
func (b *budget) acquire(ctx context.Context, bytes int64) error {
	b.mu.Lock()
	if b.queue.Len() == 0 && b.fits(bytes) {
		b.taken += bytes
		b.mu.Unlock()
		return nil
	}
	c := &claim{bytes: bytes, granted: make(chan struct{})}
	place := b.queue.PushBack(c)
	b.grant()
	b.tell()
	b.mu.Unlock()
	select {
	case <-c.granted:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-c.granted: // just now
		b.taken -= bytes
	default:
		b.queue.Remove(place)
	}
	b.grant()
	return errBusy
}

func (b *budget) fits(bytes int64) bool {
	return b.taken+bytes <= b.size || b.taken <= 0 || bytes > b.size && b.taken <= b.size/2
}

// wanted returns a channel that is closed as soon as a claim waits. Holders that can do
// without their bytes then give them back.
func (b *budget) wanted() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.short == nil {
		b.short = make(chan struct{})
	}
	short := b.short
	b.tell()
	return short
}

// crowded reports whether a claim waits.
func (b *budget) crowded() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.queue.Len() > 0
}

// tell closes the channel of wanted if a claim waits.
func (b *budget) tell() {
	if b.queue.Len() > 0 && b.short != nil {
		close(b.short)
		b.short = nil
	}
}

// take counts bytes that are held already, without waiting.
func (b *budget) take(bytes int64) {
	b.mu.Lock()
	b.taken += bytes
	b.mu.Unlock()
}

func (b *budget) give(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken -= bytes
	b.grant()
}

// grant grants the claims that fit now.
func (b *budget) grant() {
	var first *claim // that does not fit
	for place := b.queue.Front(); place != nil && (first == nil || first.passed < mostPassed); {
		c, next := place.Value.(*claim), place.Next()
		switch {
		case b.fits(c.bytes):
			b.taken += c.bytes
			b.queue.Remove(place)
			close(c.granted)
			if first != nil {
				first.passed++
			}
		case first == nil:
			first = c
		}
		place = next
	}
}

func (b *budget) bytes() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.taken
}

// An object is a body with its entity tag. A caller that got one from the cache must release
// it once, and must not use it afterwards. Others share the body: nobody changes it.
type object struct {
	body   []byte
	values [2]string // of the headers ETag, which is the MD5 in quotation marks as S3 gives it, and Content-Length

	// route is that of requests whose path is the key and which the object answers; nil as long as
	// there was none.
	route atomic.Pointer[site.Route]

	computed bool             // no object of the store
	index    *site.ShardIndex // of a search shard; nil if there is none

	tracker *tracker // nil: it is not counted
	key     cacheKey
	read    int64        // when it was read, by the clock of the cache
	state   atomic.Int64 // the number of its users, plus notCached if that applies
	old     atomic.Bool  // the store may have a newer one
}

func newObject(body []byte) *object {
	sum := site.Sum(body)
	etag := append(hex.AppendEncode(append(make([]byte, 0, 2*len(sum)+2), '"'), sum[:]), '"')
	return withLength(&object{body: body, values: [2]string{string(etag)}})
}

// withLength sets the Content-Length of a new object.
func withLength(o *object) *object {
	o.values[1] = strconv.Itoa(len(o.body))
	return o
}

func (o *object) etag() string { return o.values[0] }

// etagValue and lengthValue are values of headers. Answers share them.
func (o *object) etagValue() []string   { return o.values[0:1:1] }
func (o *object) lengthValue() []string { return o.values[1:2:2] }

// bytes is the memory of the body, and of what is derived from it.
func (o *object) bytes() int64 {
	bytes := int64(cap(o.body))
	if o.index != nil {
		bytes += int64(o.index.Bytes())
	}
	return bytes
}

// notCached is set in the state of an object that the cache does not hold.
const notCached = 1 << 62

// pin adds a user.
func (o *object) pin() {
	if o.tracker != nil && o.state.Add(1) == notCached+1 {
		o.tracker.hold(o)
	}
}

// release removes a user: one that pin added, or the one that got the object.
func (o *object) release() {
	if o.tracker != nil && o.state.Add(-1) == notCached {
		o.tracker.drop(o)
	}
}

// cached notes that the cache holds the object now.
func (o *object) cached() {
	if was := o.state.And(^notCached); was > notCached {
		o.tracker.drop(o)
	}
}

// uncached notes that the cache has dropped the object.
func (o *object) uncached() {
	if was := o.state.Or(notCached); 0 < was && was < notCached {
		o.tracker.hold(o)
	}
}

// A tracker counts the objects that are in use but not in the cache, and lets further
// requests for the same key share them. It is safe for concurrent use.
type tracker struct {
	small, large budget
	sent         sent         // of computed answers, which count against no budget
	now          func() int64 // the clock of the cache, in nanoseconds

	mu       sync.Mutex
	uncached map[cacheKey]*object
}

// largeBytes is the size from which an object counts against the large budget.
const largeBytes = 1 << 20

func newTracker(small, large, computed int64, now func() int64) *tracker {
	return &tracker{
		small: budget{size: small}, large: budget{size: large}, sent: sent{most: computed}, now: now, uncached: map[cacheKey]*object{},
	}
}

func (t *tracker) budgetFor(bytes int64) *budget {
	if bytes >= largeBytes {
		return &t.large
	}
	return &t.small
}

func (t *tracker) hold(o *object) {
	if bytes := o.bytes(); o.computed {
		t.sent.take(bytes)
	} else {
		t.budgetFor(bytes).take(bytes)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if o.state.Load() > notCached && !o.old.Load() && o.key.key != "" { // its last user may have released it meanwhile
		t.uncached[o.key] = o
	}
}

func (t *tracker) drop(o *object) {
	if bytes := o.bytes(); o.computed {
		t.sent.give(bytes)
	} else {
		t.budgetFor(bytes).give(bytes)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.uncached[o.key] == o {
		delete(t.uncached, o.key)
	}
}

// replaced hides an object that a newer one has replaced.
func (t *tracker) replaced(key cacheKey, by *object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o := t.uncached[key]; o != nil && o != by {
		o.old.Store(true)
		delete(t.uncached, key)
	}
}

// find returns an object that is in use, pinned for the caller; nil if there is none, or if
// it is old.
func (t *tracker) find(key cacheKey) *object {
	t.mu.Lock()
	o := t.uncached[key]
	t.mu.Unlock()
	if o == nil || !isYoung(o.read, t.now()) {
		return nil
	}
	o.pin()
	return o
}
