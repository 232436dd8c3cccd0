package publisher

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A farBucket is a bucket in memory at the end of a link that all requests share equally, on
// virtual time. It counts concurrent requests, except those for the lock, and records the order of
// puts.
type farBucket struct {
	latency time.Duration
	busy    error                       // a temporary error, for requests that time out
	refuse  func(site.Key, int) bool    // reports, by the number in flight, whether a request gets busy at once; nil means never
	hang    func(site.Key) bool         // reports whether a request is never answered; nil means never
	watch   func(site.Key, farObjects)  // called after each put; may be nil
	link    chan struct{}               // held by the sending request
	rate    func(time.Duration) float64 // rate of the link, in bytes per second; nil means unlimited
	begun   time.Time

	mu                         sync.Mutex
	objects                    farObjects
	now, most, total, refusals int   // requests
	sent                       int64 // bytes
	random                     *rand.Rand
}

type farObjects map[site.Key]storage.Object

// newFarBucket must be called inside a synctest bubble; busy must be made outside.
func newFarBucket(busy error) *farBucket {
	return &farBucket{latency: 20 * time.Millisecond, busy: busy, link: make(chan struct{}, 1), begun: time.Now(),
		objects: farObjects{}, random: rand.New(rand.NewPCG(1, 1))}
}

// temporary returns a retryable error of storage.
func temporary(t *testing.T) error {
	t.Helper()
	_, _, err := unreachable(t).Read(t.Context(), "key")
	if !storage.Temporary(err) {
		t.Fatal(err)
	}
	return err
}

// request sends bytes over the link. The caller calls end when the request is answered.
func (b *farBucket) request(ctx context.Context, key site.Key, bytes int) (end func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	end = func() {}
	if key != site.LockKey {
		b.now++
		b.total++
		b.most = max(b.most, b.now)
		end = func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.now--
		}
		if b.refuse != nil && b.refuse(key, b.now) {
			b.refusals++
			return end, b.busy
		}
	}
	b.mu.Unlock()
	defer b.mu.Lock()
	if b.hang != nil && b.hang(key) {
		return end, b.sleep(ctx, 24*time.Hour)
	}
	return end, cmp.Or(b.sleep(ctx, b.latency), b.send(ctx, bytes))
}

// send takes turns with other requests, one piece each.
func (b *farBucket) send(ctx context.Context, bytes int) error {
	const piece = 8 << 10
	for ; b.rate != nil && bytes > 0; bytes -= piece {
		select {
		case b.link <- struct{}{}:
		case <-ctx.Done():
			return b.ended(ctx)
		}
		n := min(piece, bytes)
		err := b.sleep(ctx, time.Duration(float64(n)/b.rate(time.Since(b.begun))*float64(time.Second)))
		<-b.link
		if err != nil {
			return err
		}
		b.mu.Lock()
		b.sent += int64(n)
		b.mu.Unlock()
	}
	return nil
}

func (b *farBucket) sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return b.ended(ctx)
	}
}

func (b *farBucket) ended(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return b.busy
	}
	return ctx.Err()
}

func (b *farBucket) Read(ctx context.Context, key site.Key) ([]byte, storage.Info, error) {
	end, err := b.request(ctx, key, 0)
	defer end()
	if err != nil {
		return nil, storage.Info{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	o, ok := b.objects[key]
	if !ok {
		return nil, storage.Info{}, storage.ErrNotFound
	}
	return o.Body, farInfo(o), nil
}

func farInfo(o storage.Object) storage.Info {
	return storage.Info{Key: o.Key, Size: o.Size, ETag: o.MD5.String()}
}

func (b *farBucket) Put(ctx context.Context, o storage.Object, condition storage.Condition) (string, error) {
	end, err := b.request(ctx, o.Key, len(o.Body))
	defer end()
	if err != nil {
		return "", err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	old, ok := b.objects[o.Key]
	if condition == storage.IfAbsent && ok || condition != storage.IfAbsent && condition != storage.Always && string(condition) != old.MD5.String() {
		return "", storage.ErrCondition
	}
	b.store(o)
	return o.MD5.String(), nil
}

func (b *farBucket) store(o storage.Object) {
	b.objects[o.Key] = o
	if b.watch != nil {
		b.watch(o.Key, b.objects)
	}
}

func (b *farBucket) Delete(ctx context.Context, keys []site.Key) error {
	end, err := b.request(ctx, keys[0], 0)
	defer end()
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, key := range keys {
		delete(b.objects, key)
	}
	return nil
}

func (b *farBucket) List(ctx context.Context, prefix, after site.Key, found func(storage.Info) error) error {
	end, err := b.request(ctx, "", 0)
	defer end()
	if err != nil {
		return err
	}
	b.mu.Lock()
	objects := maps.Clone(b.objects)
	b.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		if key > after && strings.HasPrefix(string(key), string(prefix)) {
			if err := found(farInfo(objects[key])); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *farBucket) Now() time.Time { return time.Now() }

// unpacking returns the bucket, which unpacks archives or not.
func (b *farBucket) unpacking(archives bool) Bucket {
	if archives {
		return farUnpacker{b}
	}
	return b
}

// A farUnpacker unpacks archives, in any order.
type farUnpacker struct{ *farBucket }

func (b farUnpacker) Unpacks(ctx context.Context, objects []storage.Object) (bool, error) {
	return true, b.PutMany(ctx, objects)
}

func (b farUnpacker) PutMany(ctx context.Context, objects []storage.Object) error {
	bytes := 0
	for _, o := range objects {
		bytes += len(o.Body) + 1536 // two headers, padding
	}
	end, err := b.request(ctx, site.PackKey, bytes)
	defer end()
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, i := range b.random.Perm(len(objects)) {
		b.store(objects[i])
	}
	return nil
}

// holds checks that the bucket has exactly the objects of a site.
func (b *farBucket) holds(t *testing.T, want memorySite) {
	t.Helper()
	found := memorySite{}
	for key, o := range b.objects {
		found[key] = string(o.Body)
	}
	equalSites(t, withoutFreeLock(found), want)
}
