package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	inputs "github.com/followpress/followpress/site/kept"
	"github.com/followpress/followpress/storage"
)

// A graph is the store of one handler: a site in memory, with objects replaced by refreshes.
// Objects stored next to the site come from the bucket.
type graph struct {
	live     *Live
	handler  *server.Handler
	asOf     time.Time // time of the snapshot
	made     time.Time // modification time of all objects
	users    atomic.Int64
	released func()                         // release, which is the same for all requests
	site     atomic.Pointer[generator.Site] // nil once it is freed

	mu       sync.RWMutex
	replaced map[site.Key][]byte
	bytes    int64 // size of replaced
}

func newGraph(l *Live, made *generator.Site, asOf time.Time) *graph {
	g := &graph{live: l, asOf: asOf, made: time.Now(), replaced: map[site.Key][]byte{}}
	g.released = g.release
	g.users.Store(1) // the newest graph is in use
	g.site.Store(made)
	return g
}

// use counts a request whose answer is about to be made. It returns false if the graph is being freed.
func (g *graph) use() bool {
	for {
		n := g.users.Load()
		if n == 0 {
			return false
		}
		if g.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release ends a use. The last release frees the graph, once refreshes begun by its requests are done.
func (g *graph) release() {
	if g.users.Add(-1) > 0 {
		return
	}
	go func() { // as long as an upstream may take; graphs counts it
		g.handler.Wait()
		g.handler.Close()
		g.site.Store(nil)
		g.live.graphs.remove()
	}()
}

// graphs counts the graphs in memory.
type graphs struct {
	mu    sync.Mutex
	n     int
	freed chan struct{} // closed and replaced when a graph is freed
}

func (g *graphs) add() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n++
}

func (g *graphs) remove() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n--
	close(g.freed)
	g.freed = make(chan struct{})
}

func (g *graphs) count() (n int, freed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.n, g.freed
}

// wait waits until at most one graph is left. That is soon: package server limits the time of requests.
func (g *graphs) wait(ctx context.Context) error {
	for {
		n, freed := g.count()
		if n <= 1 {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// errFreed means that the graph was replaced, and no request needs it.
var errFreed = errors.New("the graph was replaced")

// isKept reports whether an object is stored next to a site and is not part of it.
func isKept(key site.Key) bool {
	return slices.ContainsFunc([]site.Key{site.RefreshPrefix, site.ReportsPrefix, inputs.Prefix}, func(kept site.Key) bool {
		return strings.HasPrefix(string(key), string(kept))
	})
}

// Get returns an object, or storage.ErrNotFound.
func (g *graph) Get(ctx context.Context, key site.Key) ([]byte, error) {
	return g.GetAdmitted(ctx, key, func(context.Context, int64) error { return nil })
}

// GetAdmitted is Get, but calls admit with the size before it allocates a large body. The caller may change the body.
func (g *graph) GetAdmitted(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	if isKept(key) {
		body, err := g.keptObject(ctx, key)
		if err == nil {
			err = admit(ctx, int64(len(body)))
		}
		return body, err
	}
	if body, ok := g.replacement(key); ok {
		err := admit(ctx, int64(len(body)))
		return append([]byte(nil), body...), err
	}
	made := g.site.Load()
	if made == nil {
		return nil, errFreed
	}
	return made.GetAdmitted(ctx, key, admit)
}

func (g *graph) replacement(key site.Key) ([]byte, bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	body, ok := g.replaced[key]
	return body, ok
}

func (g *graph) keptObject(ctx context.Context, key site.Key) ([]byte, error) {
	if g.live.kept == nil {
		return nil, storage.ErrNotFound
	}
	return g.live.kept.bucket.Get(ctx, key)
}

// Read is Get with the ETag of the object.
func (g *graph) Read(ctx context.Context, key site.Key) ([]byte, storage.Info, error) {
	if isKept(key) && g.live.kept != nil {
		return g.live.kept.bucket.Read(ctx, key)
	}
	body, err := g.Get(ctx, key)
	if err != nil {
		return nil, storage.Info{}, err
	}
	return body, storage.Info{Key: key, Size: int64(len(body)), ETag: site.Sum(body).String(), Modified: g.made}, nil
}

// Put replaces an object while the graph is in memory. An object next to the site goes into the
// bucket, and into the serving graph if that is another one.
func (g *graph) Put(ctx context.Context, o storage.Object, condition storage.Condition) (etag string, err error) {
	if isKept(o.Key) {
		if ctx.Value(restoring{}) != nil || strings.HasPrefix(string(o.Key), string(site.RefreshCopies)) {
			// The bucket has the object already. Notes about copies describe the bucket to
			// publishers, and stay in memory.
			return o.MD5.String(), nil
		}
		if g.live.kept == nil {
			return "", fmt.Errorf("put %s: no bucket to store it in", o.Key)
		}
		return g.live.kept.put(ctx, g, o, condition)
	}
	stored, err := g.Get(ctx, o.Key)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return "", err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if newer, ok := g.replaced[o.Key]; ok {
		stored, err = newer, nil
	}
	switch {
	case condition == storage.IfAbsent && err == nil,
		condition != storage.Always && condition != storage.IfAbsent && (err != nil || site.Sum(stored).String() != string(condition)):
		return "", fmt.Errorf("put %s: %w", o.Key, storage.ErrCondition)
	}
	g.bytes += int64(len(o.Body) - len(g.replaced[o.Key]))
	g.replaced[o.Key] = o.Body
	if g.bytes > g.live.mostReplaced {
		g.live.askForMerge()
	}
	return o.MD5.String(), nil
}

// restoring is the key of a context that restores stored data, which must not be stored again.
type restoring struct{}

// restore puts kept data into the objects that show it, where it is newer than theirs.
func (g *graph) restore(ctx context.Context, keys []site.Key) error {
	if len(keys) == 0 {
		return nil
	}
	return g.handler.Restore(context.WithValue(ctx, restoring{}, true), keys)
}

// mostReplaced is the size of replaced objects, in bytes, beyond which a new graph merges them. The rate of refreshes
// bounds what follows until that graph serves.
const mostReplaced = 8 << 20

func (l *Live) askForMerge() {
	select {
	case l.merge <- struct{}{}:
	default: // it was asked for
	}
}
