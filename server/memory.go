package server

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/followpress/followpress/site"
)

// What the handler holds beyond its cache are objects that are being read, objects that
// the cache has dropped while answers are made of them or slow clients take them, and
// pages of searches. All are counted, and what does not fit has to wait. Large objects are
// counted apart, so that two of them do not keep small ones out; and so are pages.
//
// Nobody deadlocks, because nobody who holds an object waits for memory: a search needs
// one shard at a time, gives back what it has read ahead as soon as others wait, and
// begins again where its page has no room. Who holds a page waits for objects only.

// A ledger counts bytes of objects up to a size.
type ledger struct {
	size int64

	mu    sync.Mutex
	taken int64         // may be more than size
	queue list.List     // of claims that wait, first come, first served
	short chan struct{} // closed when a claim waits; nil if nobody wants to know
}

// A claim waits until it is granted.
type claim struct {
	bytes   int64
	passed  int // how many others were granted while it was the first
	granted chan struct{}
}

// mostPassed is how many claims for which there is room may pass the first one, for which
// there is none yet: one that needs much neither blocks the others nor waits for ever.
const mostPassed = 16

// acquire waits until so many bytes are free. What is larger than the whole ledger is
// admitted when half of it is free: else one slow client could keep it out.
func (l *ledger) acquire(ctx context.Context, bytes int64) error {
	l.mu.Lock()
	if l.queue.Len() == 0 && l.fits(bytes) {
		l.taken += bytes
		l.mu.Unlock()
		return nil
	}
	c := &claim{bytes: bytes, granted: make(chan struct{})}
	place := l.queue.PushBack(c)
	l.grant()
	l.tell()
	l.mu.Unlock()
	select {
	case <-c.granted:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-c.granted: // just now
		l.taken -= bytes
	default:
		l.queue.Remove(place)
	}
	l.grant()
	return errBusy
}

func (l *ledger) fits(bytes int64) bool {
	return l.taken+bytes <= l.size || l.taken <= 0 || bytes > l.size && l.taken <= l.size/2
}

// wanted is closed as soon as a claim waits: who can do without what it holds gives it back.
func (l *ledger) wanted() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.short == nil {
		l.short = make(chan struct{})
	}
	short := l.short
	l.tell()
	return short
}

// crowded reports whether a claim waits.
func (l *ledger) crowded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queue.Len() > 0
}

// tell closes what wanted has given, if a claim waits.
func (l *ledger) tell() {
	if l.queue.Len() > 0 && l.short != nil {
		close(l.short)
		l.short = nil
	}
}

// take counts what is held already.
func (l *ledger) take(bytes int64) {
	l.mu.Lock()
	l.taken += bytes
	l.mu.Unlock()
}

func (l *ledger) give(bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken -= bytes
	l.grant()
}

// grant lets in whoever fits now.
func (l *ledger) grant() {
	var first *claim // that does not fit
	for place := l.queue.Front(); place != nil && (first == nil || first.passed < mostPassed); {
		c, next := place.Value.(*claim), place.Next()
		switch {
		case l.fits(c.bytes):
			l.taken += c.bytes
			l.queue.Remove(place)
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

func (l *ledger) bytes() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.taken
}

// An object is an object of the site with its entity tag. Whoever has one from the
// cache releases it when it is not needed any more.
type object struct {
	body []byte
	etag string // the MD5 in quotation marks, as S3 gives it

	keeper *keeper // nil: nobody counts
	key    cacheKey
	read   int64        // when, in nanoseconds since 1970
	state  atomic.Int64 // the number of those who use it, and loose
	old    atomic.Bool  // there may be a newer one in the store
	free   func()       // what release does where nobody counts; nil for nothing
}

func newObject(body []byte) *object {
	return &object{body: body, etag: `"` + site.Sum(body).String() + `"`}
}

// loose marks an object that the cache does not hold.
const loose = 1 << 62

// pin says that an object is in use.
func (o *object) pin() {
	if o.keeper != nil && o.state.Add(1) == loose+1 {
		o.keeper.hold(o)
	}
}

// release ends what pin, or having got the object, began.
func (o *object) release() {
	switch {
	case o.keeper != nil:
		if o.state.Add(-1) == loose {
			o.keeper.drop(o)
		}
	case o.free != nil:
		o.free()
	}
}

// cached says that the cache holds the object now.
func (o *object) cached() {
	if was := o.state.And(^loose); was > loose {
		o.keeper.drop(o)
	}
}

// uncached says that the cache does not hold it any more.
func (o *object) uncached() {
	if was := o.state.Or(loose); 0 < was && was < loose {
		o.keeper.hold(o)
	}
}

// A keeper counts the objects that are in use and not in the cache, and finds them for
// others who ask for the same.
type keeper struct {
	small, large ledger

	mu    sync.Mutex
	loose map[cacheKey]*object
}

// largeBytes is the size from which objects are counted apart.
const largeBytes = 1 << 20

func newKeeper(small, large int64) *keeper {
	return &keeper{small: ledger{size: small}, large: ledger{size: large}, loose: map[cacheKey]*object{}}
}

func (k *keeper) ledgerOf(bytes int64) *ledger {
	if bytes >= largeBytes {
		return &k.large
	}
	return &k.small
}

func (k *keeper) hold(o *object) {
	bytes := int64(cap(o.body))
	k.ledgerOf(bytes).take(bytes)
	k.mu.Lock()
	defer k.mu.Unlock()
	if o.state.Load() > loose && !o.old.Load() { // its last user may have released it just now
		k.loose[o.key] = o
	}
}

func (k *keeper) drop(o *object) {
	bytes := int64(cap(o.body))
	k.ledgerOf(bytes).give(bytes)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.loose[o.key] == o {
		delete(k.loose, o.key)
	}
}

// replaced keeps what another object has taken the place of from being found.
func (k *keeper) replaced(key cacheKey) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if o := k.loose[key]; o != nil {
		o.old.Store(true)
		delete(k.loose, key)
	}
}

// find finds an object that somebody uses; nil if nobody does.
func (k *keeper) find(key cacheKey) *object {
	k.mu.Lock()
	o := k.loose[key]
	k.mu.Unlock()
	if o == nil || time.Since(time.Unix(0, o.read)) > keptFor {
		return nil
	}
	o.pin()
	return o
}
