package server

import (
	"cmp"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/server/internal/fresh"
	"github.com/followpress/followpress/site"
)

// Options configure a handler. Each field's comment ends with its default, used for the zero value.
type Options struct {
	Log        *slog.Logger // for failures and, at debug level, requests; slog.Default()
	CacheBytes uint64       // size limit of the cache; 28 MiB
	// InFlightBytes bounds the memory beyond the cache for objects being read and answers being
	// made or sent; 12 MiB. Requests that do not fit wait. Request bodies, large answers, and
	// computed answers being sent each get up to another sixth; buffers for streamed tables, a
	// twelfth.
	InFlightBytes int64
	Poll          time.Duration // interval between two reads of the root by Watch; 10 s
	MaxAge        time.Duration // age of the snapshot from which Watch and a metric warn; 0 for never
	Timeout       time.Duration // longest time for one request, which then gets a 503; 5 s
	MaxRequests   int           // requests answered at the same time; others get a 503 at once; 2,048
	Refresh       RefreshOptions
	// Describe makes the OpenAPI document served as site.OpenAPIKey if the site has none; nil for
	// no document.
	Describe func(site.Config) ([]byte, error)
	// Collectors are additional metrics that Metrics exposes.
	Collectors []prometheus.Collector

	// CacheControl replaces the Cache-Control of 200 answers that caches may keep for a while;
	// ProblemCacheControl does so for problems. "" keeps the value of the route or the problem.
	// Answers that caches must revalidate or must not store, and immutable answers, keep their own
	// value.
	CacheControl, ProblemCacheControl string

	clock otter.Clock // clock of the cache; nil for the real one, except in tests
}

// RefreshOptions configure the source of fresh data and the limits of refreshes. The zero value
// refreshes nothing.
type RefreshOptions = fresh.Options

// RefreshSigning holds the keys that sign and check the entries kept by refreshes.
type RefreshSigning = fresh.Signing

// DefaultInFlightBytes is the default of Options.InFlightBytes.
const DefaultInFlightBytes = 12 << 20

// UpstreamTimeout is the default of RefreshOptions.UpstreamTimeout, which bounds all upstream
// requests of one refresh.
const UpstreamTimeout = fresh.UpstreamTimeout

// ClientOf returns the address of the client of a request that came through the given number of
// proxies, each of which appends its client's address to X-Forwarded-For. For IPv6 it returns the
// /64 network. It returns the zero Addr if the client is unknown.
func ClientOf(r *http.Request, proxies int) netip.Addr { return fresh.ClientOf(r, proxies) }

func (o Options) withDefaults() Options {
	o.Log = cmp.Or(o.Log, slog.Default())
	o.CacheBytes = cmp.Or(o.CacheBytes, 28<<20)
	o.InFlightBytes = cmp.Or(o.InFlightBytes, DefaultInFlightBytes)
	o.Poll = cmp.Or(o.Poll, 10*time.Second)
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	o.MaxRequests = cmp.Or(o.MaxRequests, 2048)
	o.Refresh = o.Refresh.WithDefaults()
	return o
}

type (
	// A Store holds a site.
	Store = fetch.Store
	// A Bucket is a Store that can replace objects.
	Bucket = fetch.Bucket
)
