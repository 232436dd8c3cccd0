package cache

import (
	"encoding/hex"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/followpress/followpress/server/internal/gate"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/scan"
)

// An Object is a body with its entity tag. A caller that got one from the cache must release it
// once, and must not use it afterwards. Others share the body, so nobody may change it.
type Object struct {
	Body  []byte
	Index *scan.ShardIndex // nil unless the object is a search shard

	// Route is the route of the requests whose path is the key and which the object answers; nil
	// until the first such request.
	Route atomic.Pointer[site.Route]

	values [2]string // header values: ETag, the quoted MD5 as in S3, and Content-Length

	computed bool     // not an object of the store
	tracker  *tracker // nil if the object is not counted
	key      Key
	read     int64        // time of the read, by the cache's clock
	state    atomic.Int64 // number of users, plus notCached if that applies
	old      atomic.Bool  // the store may have a newer one
}

// NewObject returns an object that is not counted.
func NewObject(body []byte) *Object {
	o := WithoutTag(body)
	sum := site.Sum(body)
	o.values[0] = string(append(hex.AppendEncode(append(make([]byte, 0, 2*len(sum)+2), '"'), sum[:]), '"'))
	return o
}

// WithoutTag is NewObject without an entity tag.
func WithoutTag(body []byte) *Object {
	return &Object{Body: body, values: [2]string{1: strconv.Itoa(len(body))}}
}

// Elsewhere returns an uncounted object without a body; etag has no quotation marks.
func Elsewhere(etag string) *Object { return &Object{values: [2]string{0: `"` + etag + `"`}} }

// ETag returns the entity tag.
func (o *Object) ETag() string { return o.values[0] }

// ETagValue returns the value of the ETag header. Answers share it.
func (o *Object) ETagValue() []string { return o.values[0:1:1] }

// LengthValue returns the value of the Content-Length header. Answers share it.
func (o *Object) LengthValue() []string { return o.values[1:2:2] }

// IsAt reports whether the object was read from the store under k.
func (o *Object) IsAt(k Key) bool { return o.tracker != nil && !o.computed && o.key == k }

// IsComputed reports whether the object is a computed answer; then the caller must call Sending.
func (o *Object) IsComputed() bool { return o.computed }

// Sending records that a client receives the computed answer until the caller calls done.
func (o *Object) Sending(w http.ResponseWriter) (done func()) { return o.tracker.sent.send(o, w) }

// Bytes returns the memory of the body and of data derived from it.
func (o *Object) Bytes() int64 {
	bytes := int64(cap(o.Body))
	if o.Index != nil {
		bytes += int64(o.Index.Bytes())
	}
	return bytes
}

// notCached marks the state of an object that is not in the cache.
const notCached = 1 << 62

// Pin adds a user.
func (o *Object) Pin() {
	if o.tracker != nil && o.state.Add(1) == notCached+1 {
		o.tracker.hold(o)
	}
}

// Release removes a user: one added by Pin, or the caller that got the object.
func (o *Object) Release() {
	if o.tracker != nil && o.state.Add(-1) == notCached {
		o.tracker.drop(o)
	}
}

// cached marks the object as held by the cache.
func (o *Object) cached() {
	if was := o.state.And(^notCached); was > notCached {
		o.tracker.drop(o)
	}
}

// uncached marks the object as dropped by the cache.
func (o *Object) uncached() {
	if was := o.state.Or(notCached); 0 < was && was < notCached {
		o.tracker.hold(o)
	}
}

// A tracker counts the objects in use but not in the cache, and lets later requests for the same
// key share them. It is safe for concurrent use.
type tracker struct {
	gates Gates
	sent  sent         // computed answers, which no gate counts
	now   func() int64 // the cache's clock, in nanoseconds

	mu       sync.Mutex
	uncached map[Key]*Object
}

// largeBytes is the size from which an object counts as large.
const largeBytes = 1 << 20

func newTracker(g Gates, computed int64, now func() int64) *tracker {
	return &tracker{gates: g, sent: sent{most: computed}, now: now, uncached: map[Key]*Object{}}
}

func (t *tracker) gateFor(bytes int64) *gate.Gate {
	if bytes >= largeBytes {
		return t.gates.Large
	}
	return t.gates.Small
}

func (t *tracker) hold(o *Object) {
	if bytes := o.Bytes(); o.computed {
		t.sent.take(bytes)
	} else {
		t.gateFor(bytes).Count(bytes)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if o.state.Load() > notCached && !o.old.Load() && o.key.Key != "" { // its last user may have released it just now
		t.uncached[o.key] = o
	}
}

func (t *tracker) drop(o *Object) {
	if bytes := o.Bytes(); o.computed {
		t.sent.give(bytes)
	} else {
		t.gateFor(bytes).Give(bytes)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.uncached[o.key] == o {
		delete(t.uncached, o.key)
	}
}

// replaced hides an object that was replaced by a newer one.
func (t *tracker) replaced(key Key, by *Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o := t.uncached[key]; o != nil && o != by {
		o.old.Store(true)
		delete(t.uncached, key)
	}
}

// find returns an object in use, pinned for the caller; nil if there is none, or only an old one.
func (t *tracker) find(key Key) *Object {
	t.mu.Lock()
	o := t.uncached[key]
	t.mu.Unlock()
	if o == nil || !isYoung(o.read, t.now()) {
		return nil
	}
	o.Pin()
	return o
}
