// Package serve is the command that runs the fallback: the server for what no file of a
// site can answer, which is search pages and terms, records without tags, and fresh
// data.
package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/internal/templates"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/storage"
)

// Command is the command with its flags.
type Command struct {
	Site string `required:"" placeholder:"SITE" help:"The site: s3://BUCKET, s3://BUCKET/PREFIX, a folder (file:///FOLDER too), a .tar file that generate wrote, or parts: 'FOLDER/part-*' or 's3://BUCKET/PREFIX/part-*', in quotes."`
	command.S3

	Addr        string `default:"127.0.0.1:8081" placeholder:"HOST:PORT" help:"Where to listen; port 0 takes a free one (default ${default})."`
	MetricsAddr string `placeholder:"HOST:PORT" help:"Where to serve /metrics for Prometheus, /healthz and /readyz, apart from the API; by default nowhere."`

	CacheBytes uint64        `default:"29360128" placeholder:"BYTES" help:"Memory of the cache of hot objects (default ${default})."`
	InFlight   int64         `name:"in-flight-bytes" default:"12582912" placeholder:"BYTES" help:"Memory for objects being read and for answers that are not in the cache; requests beyond that wait, then get a 503 (default ${default})."`
	Poll       time.Duration `default:"10s" placeholder:"DURATION" help:"How often to look for a new site (default ${default})."`
	Timeout    time.Duration `default:"5s" placeholder:"DURATION" help:"Time limit for an answer; if the store is slower, the answer is a 503 (default ${default})."`

	ProfileUpstream string        `placeholder:"URL" help:"Source of fresh profiles for cache=fresh: a URL with {address} in it."`
	BadgeUpstream   string        `placeholder:"URL" help:"Source of fresh badges for cache=fresh: a URL with {address} and {event_id} in it."`
	BadgeAPIKey     string        `name:"badge-api-key" placeholder:"KEY" help:"Sent to --badge-upstream as X-API-Key. Set FOLLOWPRESS_BADGE_API_KEY: others can see the flags of a process."`
	RefreshInterval time.Duration `default:"60s" placeholder:"DURATION" help:"Time between two refreshes of a list's details, or of its badges (default ${default})."`
	RefreshRate     float64       `default:"10" placeholder:"N" help:"Refreshes per second, over all lists (default ${default})."`
	ClientRate      float64       `name:"refresh-client-rate" default:"1" placeholder:"N" help:"Refreshes per second of one client, after the first 10 (default ${default})."`
	Proxies         int           `placeholder:"N" help:"How many servers before this one append the address of their client to X-Forwarded-For. 0, the default, means that clients connect directly."`

	MaxRequests    int           `default:"2048" placeholder:"N" help:"Concurrent requests; more get a 503 (default ${default})."`
	MaxHeaderBytes int           `default:"16384" placeholder:"BYTES" help:"Longest request line with headers; longer ones get a 431 (default ${default})."`
	HeaderTimeout  time.Duration `default:"5s" placeholder:"DURATION" help:"Time for a client to send its headers (default ${default})."`
	RequestTimeout time.Duration `default:"10s" placeholder:"DURATION" help:"Time for a client to send its request (default ${default})."`
	WriteTimeout   time.Duration `default:"30s" placeholder:"DURATION" help:"Time for a client to take its answer (default ${default})."`
	IdleTimeout    time.Duration `default:"2m" placeholder:"DURATION" help:"Idle time of a connection (default ${default})."`
	DrainDelay     time.Duration `default:"0s" placeholder:"DURATION" help:"How long to keep serving after SIGTERM while /readyz returns 503 (default ${default}). Set it to the time that a load balancer needs to notice."`
	DrainTimeout   time.Duration `default:"10s" placeholder:"DURATION" help:"After that delay, how long to wait for requests in flight (default ${default})."`

	LogLevel string `enum:"debug,info,warn,error" default:"info" placeholder:"debug|info|warn|error" help:"What to log on standard error, as JSON; debug logs every request (default ${default})."`

	// LimitMemory bounds the memory of the process. It is nil in tests, which share their
	// process.
	LimitMemory func(bytes int64) `kong:"-"`
}

// besides is what the garbage collector's limit leaves for everything but the cache and
// the bytes in flight. The pages of the binary, some 17 MiB, are not counted. It trades
// processor time for memory, but only down to what is in use: with a cache of 32 MiB, 50
// connections and a site that does not fit, 37 MiB are, and the peak is 64 to 65 MiB with 4
// and with 8 MiB here. So the default cache is 28 MiB, to keep the promised 64 (2026-11-22,
// TestReleased, on a busy machine).
const besides = 8 << 20

// About is the first line of --help.
const About = "Run the fallback, which answers every request of the API, also those that no file of a site can answer."

// Help is what --help shows below the first line.
func (*Command) Help() string {
	return `It runs behind a CDN, reads the site from a bucket and keeps no state of its own: run as many instances as you like, and replace them at any time. /healthz returns 200 while it runs, /readyz once it has read a site. Credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the shared credentials file, or the machine's role.

	followpress serve --site s3://BUCKET --addr 0.0.0.0:8081`
}

// Validate checks the flags before the run; kong calls it.
func (c *Command) Validate() error {
	if _, err := storage.ParsePlace(c.Site); err != nil {
		return fmt.Errorf("--site: %w", err)
	}
	for _, least := range []struct {
		flag string
		good bool
	}{
		{"poll", c.Poll > 0}, {"timeout", c.Timeout > 0}, {"refresh-interval", c.RefreshInterval > 0}, {"refresh-rate", c.RefreshRate > 0}, {"refresh-client-rate", c.ClientRate > 0},
		{"max-requests", c.MaxRequests > 0}, {"max-header-bytes", c.MaxHeaderBytes > 0}, {"header-timeout", c.HeaderTimeout > 0},
		{"request-timeout", c.RequestTimeout > 0}, {"write-timeout", c.WriteTimeout > 0}, {"idle-timeout", c.IdleTimeout > 0},
		{"drain-timeout", c.DrainTimeout > 0}, {"cache-bytes", c.CacheBytes > 0}, {"in-flight-bytes", c.InFlight > 0},
	} {
		if !least.good {
			return fmt.Errorf("--%s must be positive", least.flag)
		}
	}
	if c.WriteTimeout <= c.Timeout+server.UpstreamTimeout {
		return fmt.Errorf("--write-timeout=%v must be more than --timeout and %v for upstreams: else answers are cut off", c.WriteTimeout, server.UpstreamTimeout)
	}
	if c.MaxHeaderBytes <= server.LeastHeaderBytes {
		return fmt.Errorf("--max-header-bytes must be more than %d", server.LeastHeaderBytes)
	}
	if c.DrainDelay < 0 {
		return errors.New("--drain-delay cannot be negative")
	}
	return c.refresh().Validate()
}

func (c *Command) refresh() server.RefreshOptions {
	return server.RefreshOptions{
		ProfileUpstream: c.ProfileUpstream, BadgeUpstream: c.BadgeUpstream, BadgeAPIKey: c.BadgeAPIKey,
		Interval: c.RefreshInterval, Rate: c.RefreshRate, ClientRate: c.ClientRate, Proxies: c.Proxies,
	}
}

func (c *Command) limits() server.Limits {
	return server.Limits{
		HeaderTimeout: c.HeaderTimeout, RequestTimeout: c.RequestTimeout, WriteTimeout: c.WriteTimeout,
		IdleTimeout: c.IdleTimeout, DrainTimeout: c.DrainTimeout, HeaderBytes: c.MaxHeaderBytes,
	}
}

// Run serves until it is interrupted.
func (c *Command) Run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	log := slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: command.LogLevel(c.LogLevel)}))
	if c.LimitMemory != nil {
		beside := min(c.InFlight, math.MaxInt64/2) + besides
		c.LimitMemory(int64(min(c.CacheBytes, uint64(math.MaxInt64-beside))) + beside)
	}
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	listener, err := command.Listen("addr", c.Addr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, listener.Close()) }()
	var metrics net.Listener
	if c.MetricsAddr != "" {
		if metrics, err = command.Listen("metrics-addr", c.MetricsAddr); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, metrics.Close()) }()
	}
	handler, err := server.New(ctx, store, server.Options{
		Log: log, CacheBytes: c.CacheBytes, InFlightBytes: c.InFlight, Poll: c.Poll, Timeout: c.Timeout, MaxRequests: c.MaxRequests, Refresh: c.refresh(),
		Describe: templates.OpenAPI,
	})
	switch {
	case errors.Is(err, server.ErrNoSite):
		return fmt.Errorf("%s: %w; publish a site there, or name another place with --site", c.Site, err)
	case err != nil:
		return fmt.Errorf("%s: %w", c.Site, err)
	}
	serving := []any{"site", c.Site, "url", "http://" + listener.Addr().String()}
	if root := handler.Root(); root != nil { // else the store cannot be read yet
		serving = append(serving, "as_of", root.AsOf, "objects", root.Counts.Objects)
	}
	log.Info("serving", serving...)
	fmt.Fprintf(stdout, "http://%s\n", listener.Addr())
	return c.serve(ctx, handler, listener, metrics, log)
}

func (c *Command) serve(ctx context.Context, handler *server.Handler, listener, metrics net.Listener, log *slog.Logger) error {
	// The metrics and the watch run until the last request is answered.
	group, rest := errgroup.WithContext(context.WithoutCancel(ctx))
	rest, end := context.WithCancel(rest)
	draining, drained := context.WithCancel(rest)
	group.Go(func() error {
		defer drained()
		select {
		case <-ctx.Done():
		case <-rest.Done():
			return nil
		}
		log.Info("told to stop", "drain_delay", c.DrainDelay.String(), "drain_timeout", c.DrainTimeout.String())
		handler.Drain()
		select {
		case <-time.After(c.DrainDelay):
		case <-rest.Done():
		}
		return nil
	})
	group.Go(func() error {
		defer end()
		return server.Serve(draining, listener, handler.Probes(), log, c.limits())
	})
	group.Go(func() error {
		handler.Watch(rest)
		return nil
	})
	if metrics != nil {
		log.Info("serving metrics", "url", "http://"+metrics.Addr().String()+"/metrics")
		group.Go(func() error { return server.Serve(rest, metrics, operations(handler), log, c.limits()) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}

// operations is the handler for operators: metrics and health checks.
func operations(handler *server.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", handler.Metrics())
	probes := handler.Probes()
	mux.Handle("/healthz", probes)
	mux.Handle("/readyz", probes)
	return mux
}

// requestBuffer is the memory for what a connection to a bucket sends, in bytes. Requests to read are
// small, and 64 connections with room for an object each would take 2 MiB.
const requestBuffer = 4 << 10

// open opens the site. A folder is opened as a bucket only if refreshes have to be stored in it.
func (c *Command) open(ctx context.Context) (storage.Site, error) {
	refreshes := c.refresh().Refreshes()
	if _, parts := storage.PartsAt(c.Site); parts {
		if refreshes {
			return nil, errors.New("parts cannot store what is refreshed: use a folder or a bucket, or no upstream")
		}
		return storage.OpenSiteAt(ctx, c.Site, c.server())
	}
	at, err := storage.ParsePlace(c.Site)
	if err != nil {
		return nil, fmt.Errorf("--site: %w", err)
	}
	switch {
	case at.Folder == "":
		return storage.OpenBucket(ctx, at, c.server())
	case !refreshes:
		return storage.OpenSite(at.Folder)
	case strings.HasSuffix(at.Folder, ".tar"):
		return nil, errors.New("a .tar file cannot store what is refreshed: use a folder or a bucket, or no upstream")
	}
	return storage.OpenLocal(at.Folder), nil
}

// server says which server s3://… means.
func (c *Command) server() storage.S3Options {
	o := c.Server()
	o.WriteBuffer = requestBuffer
	return o
}
