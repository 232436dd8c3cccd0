// Package fresh refreshes single accounts (cache=fresh): it fetches their profiles or badges and
// replaces the stored objects.
package fresh

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/followpress/followpress/internal/panics"
	"github.com/followpress/followpress/internal/secret"
	"github.com/followpress/followpress/server/internal/cache"
	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/server/internal/gate"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/site/tags"
	"github.com/followpress/followpress/storage"
)

// Options configure the source of fresh data and the limits of refreshes. The zero value refreshes
// nothing.
type Options struct {
	ProfileUpstream string        // URL with {address}; "" refreshes no details
	BadgeUpstream   string        // URL with {address} and {event_id}; "" refreshes no badges
	BadgeAPIKey     secret.Text   // sent to BadgeUpstream as X-API-Key; "" sends none
	Interval        time.Duration // minimum time between refreshes of one object; 60 s
	Rate            float64       // maximum refreshes per second, of all objects together; 10
	ClientRate      float64       // maximum refreshes per second of one client, after the first 10; 1
	Strict          bool          // answer requests beyond the limits with 429, not with the stored object
	// Proxies is the number of proxies that append their client's address to X-Forwarded-For; 0 if
	// clients connect directly.
	Proxies   int
	Transport http.RoundTripper // sends upstream requests; nil for a default one

	UpstreamTimeout time.Duration // for all upstream requests of one refresh; 5 s

	// BadgesAsOf is when the site's badges were read. Only newer ones are restored. Zero means the
	// as_of of the site.
	BadgesAsOf time.Time
	Signing    Signing // signs and checks entries below site.RefreshPrefix
	// InMemory means that only this process sees replaced objects, so their digests need not be
	// kept.
	InMemory bool
}

// A Signing signs and checks entries below site.RefreshPrefix (note.SignEntry). The zero value does
// neither.
type Signing struct {
	Signer note.Signer
	Keys   note.Keys // if there is a Signer, entries count only if one of these keys signed them
}

// Believed returns the content of an entry, or nil if it needs a signature and has none.
func (s Signing) Believed(key site.Key, entry []byte) []byte {
	if s.Signer == nil {
		return entry
	}
	entry, err := s.Keys.OpenEntry(key, entry, time.Now())
	if err != nil {
		return nil
	}
	return entry
}

// seal signs an entry if there is a signer.
func (s Signing) seal(key site.Key, entry []byte) ([]byte, error) {
	if s.Signer == nil {
		return entry, nil
	}
	return note.SignEntry(key, time.Now(), entry, s.Signer)
}

// UpstreamTimeout is the default of Options.UpstreamTimeout.
const UpstreamTimeout = 5 * time.Second

const (
	badgesAtOnce = 8 // upstream requests per refresh
	// Tries is the number of conditional writes that may fail because another writer was faster.
	Tries = 3
)

// Refreshes reports whether the options name an upstream.
func (o Options) Refreshes() bool { return o.ProfileUpstream != "" || o.BadgeUpstream != "" }

// WithDefaults fills in the defaults.
func (o Options) WithDefaults() Options {
	o.Interval = cmp.Or(o.Interval, time.Minute)
	o.Rate = cmp.Or(o.Rate, 10)
	o.ClientRate = cmp.Or(o.ClientRate, 1)
	o.UpstreamTimeout = cmp.Or(o.UpstreamTimeout, UpstreamTimeout)
	return o
}

// Validate returns an error that describes the first invalid option. New calls it; commands call it
// earlier, to distinguish wrong usage from failure.
func (o Options) Validate() error {
	shared, err := NewShared(o, nil)
	if err == nil {
		_, err = New(o, shared, &fetch.Fetcher{}, Gates{}, Counts{})
	}
	return err
}

// A Refresher fetches fresh data and replaces stored objects with it. It is safe for concurrent
// use. Requests that wait for the same object share a flight: one run of replace.
type Refresher struct {
	bucket   fetch.Bucket
	fetcher  *fetch.Fetcher
	profiles *upstream // nil for none
	badges   *upstream // nil for none
	counts   Counts
	gates    Gates

	flights singleflight.Group // by Target.keptKey
	writes  locks              // by Target.keptKey
	running sync.WaitGroup     // flights, from the start of the first call that waits
	options Options
	*Shared
}

// Shared holds what successive refreshers of a site have in common: the limits, and whether the
// store has conditional writes. It is safe for concurrent use.
type Shared struct {
	conditional *conditional
	clients     *clients
	interval    time.Duration
	all         *rate.Limiter
	mu          sync.Mutex
	last        map[site.Key]time.Time // time of the last refresh, by Target.keptKey
	swept       time.Time              // when expired entries were last removed from last
}

// NewShared returns a Shared with the limits of the options. It logs once if the store lacks
// conditional writes.
func NewShared(o Options, log *slog.Logger) (*Shared, error) {
	o = o.WithDefaults()
	for _, each := range []float64{o.Interval.Seconds(), o.Rate, o.ClientRate} {
		if each < 0 || math.IsInf(each, 0) || math.IsNaN(each) {
			return nil, errors.New("the interval and the rates of refreshes must be positive")
		}
	}
	return &Shared{
		conditional: &conditional{log: log}, clients: newClients(o.ClientRate), interval: o.Interval,
		all: rate.NewLimiter(rate.Limit(o.Rate), int(math.Ceil(o.Rate))), last: map[site.Key]time.Time{},
	}, nil
}

// Gates bound the work of refreshes.
type Gates struct {
	Waiting *gate.Gate // requests waiting for a flight
	Flights *gate.Gate
	Badges  *gate.Gate // bytes of badges being refreshed
}

// The sizes of Gates.Flights and Gates.Badges. Each flight may hold the answers for many events in
// memory.
const (
	MostFlights = 16
	BadgeBytes  = 2 * mostBadgesBytes * decodedBadges
)

// Counts are called for each refresh and each upstream request, with the object and the result as
// named in the metrics.
type Counts struct {
	Refreshed func(object site.ListObject, result string)
	Asked     func(object site.ListObject, result string, took time.Duration)
}

// New returns a Refresher, or nil if the options name no upstream.
func New(o Options, s *Shared, f *fetch.Fetcher, g Gates, counts Counts) (*Refresher, error) {
	o = o.WithDefaults()
	if o.Proxies < 0 {
		return nil, errors.New("the number of proxies cannot be negative")
	}
	profiles, err := newUpstream(o.ProfileUpstream, "", o.Transport, "{address}")
	if err != nil {
		return nil, fmt.Errorf("profile upstream: %w", err)
	}
	badges, err := newUpstream(o.BadgeUpstream, o.BadgeAPIKey, o.Transport, "{address}", "{event_id}")
	if err != nil {
		return nil, fmt.Errorf("badge upstream: %w", err)
	}
	if profiles == nil && badges == nil {
		return nil, nil
	}
	bucket, ok := f.Store.(fetch.Bucket)
	if !ok && f.Store != nil {
		return nil, errors.New("refreshes need a site in a bucket or a folder")
	}
	return &Refresher{
		writes: newLocks(), bucket: bucket, fetcher: f, profiles: profiles, badges: badges, counts: counts, gates: g, options: o, Shared: s,
	}, nil
}

// Wait waits for running refreshes.
func (f *Refresher) Wait() { f.running.Wait() }

// Refreshes reports whether this kind of object has an upstream. f may be nil.
func (f *Refresher) Refreshes(object site.ListObject) bool {
	return f != nil && (object == site.Details && f.profiles != nil || object == site.Badges && f.badges != nil)
}

// Strict reports whether requests beyond the limits get a 429.
func (f *Refresher) Strict() bool { return f.options.Strict }

// A TooOftenError means that a refresh was refused because of a limit. Wait is the time until the
// next one.
type TooOftenError struct{ Wait time.Duration }

func (e *TooOftenError) Error() string { return "refreshed too often" }

// A Target is a stored object to refresh. Under the API efp it is the object of the list that
// stands for its account, and other objects, its copies, show the same data.
type Target struct {
	Config  site.Config
	Object  site.ListObject
	TokenID string
}

func (t Target) key() site.Key     { return t.Config.ListKey(t.TokenID, t.Object) }
func (t Target) keptKey() site.Key { return site.RefreshKey(t.Object, t.TokenID) }

// Refresh fetches fresh data for an object and returns the stored object, which keep makes from its
// key and body. Requests for an object being refreshed share the result. The refresh continues even
// if no request waits for it any longer, and calls keep, from several goroutines, for each object
// that it has replaced. Refresh fails with a *TooOftenError, with an error that wraps ErrUpstream
// and leaves the stored object unchanged, or with an error of the store.
func (f *Refresher) Refresh(ctx context.Context, t Target, log *slog.Logger, keep func(key site.Key, body []byte) *cache.Object) (*cache.Object, error) {
	if !f.gates.Waiting.TryTake(1) {
		return nil, &TooOftenError{site.RetryAfter}
	}
	defer f.gates.Waiting.Give(1)
	client, _ := ctx.Value(clientKey{}).(netip.Addr)
	if wait := f.clients.wait(client, time.Now()); wait > 0 { // before joining a flight, perhaps of other clients
		return nil, &TooOftenError{wait}
	}
	f.running.Add(1) // before the caller can return: a later Wait includes this flight
	flight := f.flights.DoChan(string(t.keptKey()), func() (any, error) {
		if !f.gates.Flights.TryTake(1) {
			return nil, &TooOftenError{time.Second}
		}
		defer f.gates.Flights.Give(1)
		if err := f.admit(t.keptKey(), time.Now()); err != nil {
			return nil, err
		}
		f.clients.count(client, time.Now())
		// The first client may leave while others wait for the result.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.options.UpstreamTimeout+f.fetcher.Timeout)
		defer cancel()
		o, result, err := f.replace(ctx, t, log, keep)
		f.counts.Refreshed(t.Object, result)
		if err != nil {
			log.Warn("refresh failed", "key", t.key(), "result", result, "error", err)
			return nil, err
		}
		log.Info("refreshed", "key", t.key(), "result", result)
		return o, nil
	})
	select {
	case result := <-flight:
		f.running.Done()
		o, _ := result.Val.(*cache.Object)
		return o, result.Err
	case <-ctx.Done():
		go func() {
			<-flight
			f.running.Done()
		}()
		return nil, fmt.Errorf("wait for a refresh: %w", ctx.Err())
	}
}

// admit counts a refresh, or refuses it with a *TooOftenError.
func (f *Shared) admit(key site.Key, now time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if wait := f.interval - now.Sub(f.last[key]); wait > 0 {
		return &TooOftenError{wait}
	}
	if !f.all.AllowN(now, 1) {
		return &TooOftenError{time.Duration(float64(time.Second) / float64(f.all.Limit()))}
	}
	// The rate bounds the map: it holds the refreshes of about two intervals.
	if now.Sub(f.swept) > f.interval {
		maps.DeleteFunc(f.last, func(_ site.Key, at time.Time) bool { return now.Sub(at) > f.interval })
		f.swept = now
	}
	f.last[key] = now
	return nil
}

// Results of a refresh, as named in the metrics and the log.
const (
	refreshDone   = "done"
	refreshSame   = "same"   // the stored object has the data already
	refreshFailed = "failed" // the upstream failed
	refreshError  = "error"  // the store failed
)

// replace fetches fresh data, keeps it for the next run of the generator, and replaces the stored
// object and its copies. It calls keep as Refresh does, and returns keep's result for the object.
// It turns a panic into an error, because a panic in a flight's goroutine ends the process.
func (f *Refresher) replace(
	ctx context.Context, t Target, log *slog.Logger, keep func(site.Key, []byte) *cache.Object,
) (o *cache.Object, result string, err error) {
	result = refreshError // in case of a panic
	defer panics.Catch(&err)
	stored, info, err := f.fetcher.Read(ctx, f.bucket, t.key())
	if err != nil {
		return nil, refreshError, err
	}
	memory := &claimed{of: f.gates.Badges}
	defer memory.free()
	data, err := f.fetch(ctx, t, stored, memory)
	var often *TooOftenError
	switch {
	case errors.As(err, &often):
		return nil, "limited", often
	case errors.Is(err, ErrUpstream):
		return nil, refreshFailed, err
	case err != nil:
		return nil, refreshError, err
	}
	if p, ok := data.(*profileData); ok && p.NoTexts > 0 {
		log.Warn("omitted profile entries that are not strings", "key", t.key(), "entries", p.NoTexts)
	}
	unlock, err := f.writes.lock(ctx, t.keptKey())
	if err != nil {
		return nil, refreshError, err
	}
	defer unlock()
	data, body, result, err := f.replaceBy(ctx, t, data, stored, info)
	if err != nil {
		return nil, result, err
	}
	if t.Config.EFP() {
		if err := f.replaceCopies(ctx, t, data, data.olderThan(t.Object, body), func(key site.Key, body []byte) { keep(key, body) }); err != nil {
			return nil, refreshError, err
		}
	}
	return keep(t.key(), body), result, nil
}

// replaceBy replaces the stored object, unless another writer has replaced it by one with newer
// data. It returns the data used: the fetched data, or newer data that another writer has kept.
func (f *Refresher) replaceBy(ctx context.Context, t Target, fetched upstreamData, stored []byte, info storage.Info) (data upstreamData, body []byte, result string, err error) {
	data = fetched
	for try := 0; ; try++ {
		if err = data.complete(stored); err == nil {
			body, err = data.applyTo(t.Object, stored)
		}
		if err != nil {
			return data, nil, refreshError, err
		}
		err = f.store(ctx, t, data, body, stored, info)
		switch {
		case err == nil && bytes.Equal(body, stored):
			return data, body, refreshSame, nil
		case err == nil:
			return data, body, refreshDone, nil
		case !errors.Is(err, storage.ErrCondition) || try == Tries:
			return data, nil, refreshError, err
		}
		// Another fallback or a publisher replaced the object, or an earlier refresh was restored.
		if stored, info, err = f.fetcher.Read(ctx, f.bucket, t.key()); err != nil {
			return data, nil, refreshError, err
		}
		kept, err := f.fetcher.Get(ctx, t.keptKey())
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return data, nil, refreshError, err
		}
		data = data.orNewer(t.Config, kept)
		if data.olderThan(t.Object, stored) {
			return data, stored, refreshSame, nil
		}
	}
}

// store replaces the stored object with body. It returns storage.ErrCondition if another writer was
// faster. Before that it keeps two entries below site.RefreshPrefix: the data, for the next run of
// the generator, and the digest of body, for publishers, which may compare the bucket with its
// manifest at any time.
func (f *Refresher) store(ctx context.Context, t Target, data upstreamData, body, stored []byte, info storage.Info) error {
	if p, ok := data.(*profileData); ok && t.Config.EFP() {
		details, _, err := site.DecodeDetails(stored)
		if err != nil {
			return err
		}
		named := *p
		named.Names = lookupNames(details.ENS.Name)
		data = &named
	}
	keep := func(kept []byte) ([]byte, error) {
		if f.options.InMemory {
			return data.Keep(nil, nil, kept)
		}
		return data.Keep(stored, body, kept)
	}
	if err := f.keep(ctx, t.keptKey(), keep); err != nil {
		return fmt.Errorf("keep the fresh data: %w", err)
	}
	if bytes.Equal(body, stored) {
		return nil
	}
	return f.put(ctx, t.Config, t.key(), body, storage.Condition(info.ETag))
}

// keep replaces an entry below site.RefreshPrefix with the result of merge, which combines it with
// those of other fallbacks. merge gets nil if there is no entry, or none with the signature that
// Signing requires. A bucket in memory is also told about an entry that it has already, since the
// memory of another site may lack it.
func (f *Refresher) keep(ctx context.Context, key site.Key, merge func(kept []byte) ([]byte, error)) error {
	for try := 0; ; try++ {
		condition := storage.IfAbsent
		kept, info, err := f.fetcher.Read(ctx, f.bucket, key)
		switch {
		case err == nil:
			condition = storage.Condition(info.ETag)
		case !errors.Is(err, storage.ErrNotFound):
			return err
		}
		kept = f.options.Signing.Believed(key, kept)
		body, err := merge(kept)
		if err != nil || bytes.Equal(body, kept) && !f.options.InMemory {
			return err
		}
		if body, err = f.options.Signing.seal(key, body); err != nil {
			return err
		}
		err = f.put(ctx, site.Config{}, key, body, condition)
		if !errors.Is(err, storage.ErrCondition) || try == Tries {
			return err
		}
	}
}

// put writes an object if the condition holds, with the tags that c gives such objects. If the
// store has no conditional writes, put compares the condition first. It retries once if the error
// is retryable.
func (f *Refresher) put(ctx context.Context, c site.Config, key site.Key, body []byte, condition storage.Condition) error {
	route := site.RouteBy(routes.Details)
	if strings.HasPrefix(string(key), string(site.RefreshPrefix)) {
		route = site.RouteBy(routes.RefreshedDetails)
	}
	o := storage.Object{
		Entry: site.Entry{Key: key, Size: int64(len(body)), MD5: site.Sum(body)}, Body: body,
		ContentType: route.ContentType, CacheControl: route.CacheControl, Metadata: tags.Metadata(c, key),
	}
	return f.putIf(ctx, o, condition)
}

// locks serialize writers of the same data, so that the last write to the store is also the last to
// reach the cache. Otherwise a refresh racing a restored older one could leave the older object in
// the cache.
type locks [64]chan struct{}

func newLocks() (l locks) {
	for i := range l {
		l[i] = make(chan struct{}, 1)
	}
	return l
}

// lock waits until no other writer holds the lock of key. Different keys may share a lock.
func (l *locks) lock(ctx context.Context, key site.Key) (unlock func(), err error) {
	held := l[crc32.ChecksumIEEE([]byte(key))%uint32(len(l))]
	select {
	case held <- struct{}{}:
		return func() { <-held }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
