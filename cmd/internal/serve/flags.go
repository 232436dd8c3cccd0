package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/internal/secret"
	"github.com/followpress/followpress/server"
)

// Upstreams are the flags about fresh data (cache=fresh).
type Upstreams struct {
	ProfileUpstream string        `placeholder:"URL" help:"Source of fresh profiles for cache=fresh: a URL with {address} in it."`
	BadgeUpstream   string        `placeholder:"URL" help:"Source of fresh badges for cache=fresh: a URL with {address} and {event_id} in it."`
	BadgeAPIKey     secret.Text   `name:"badge-api-key" placeholder:"KEY" help:"Sent to --badge-upstream as X-API-Key. Set FOLLOWPRESS_BADGE_API_KEY: others can see the flags of a process."`
	RefreshInterval time.Duration `default:"60s" placeholder:"DURATION" help:"Time between two refreshes of a list's details, or of its badges (default ${default})."`
	RefreshRate     float64       `default:"10" placeholder:"N" help:"Refreshes per second, over all lists (default ${default})."`
	StrictRefresh   bool          `help:"Answer a refresh that is asked for too often with 429, not with the stored object."`
	ClientRate      float64       `name:"refresh-client-rate" default:"1" placeholder:"N" help:"Refreshes per second of one client, after the first 10 (default ${default})."`
	Proxies         int           `placeholder:"N" help:"How many servers before this one append the address of their client to X-Forwarded-For. 0, the default, means that clients connect directly."`
}

// Refresh says where fresh data comes from.
func (u *Upstreams) Refresh() server.RefreshOptions {
	return server.RefreshOptions{
		ProfileUpstream: u.ProfileUpstream, BadgeUpstream: u.BadgeUpstream, BadgeAPIKey: u.BadgeAPIKey,
		Interval: u.RefreshInterval, Rate: u.RefreshRate, ClientRate: u.ClientRate, Strict: u.StrictRefresh, Proxies: u.Proxies,
	}
}

// Check checks the flags.
func (u *Upstreams) Check() error {
	switch {
	case u.RefreshInterval <= 0:
		return errors.New("--refresh-interval must be positive")
	case !(u.RefreshRate > 0): // NaN is a number to strconv
		return errors.New("--refresh-rate must be positive")
	case !(u.ClientRate > 0):
		return errors.New("--refresh-client-rate must be positive")
	}
	return u.Refresh().Validate()
}

// Limits are the flags about what a server takes, and how it stops.
type Limits struct {
	CacheBytes uint64        `default:"29360128" placeholder:"BYTES" help:"Memory of the cache of hot objects (default ${default})."`
	InFlight   int64         `name:"in-flight-bytes" default:"12582912" placeholder:"BYTES" help:"Memory for objects being read and for answers that are not in the cache; requests beyond that wait, then get a 503 (default ${default})."`
	Timeout    time.Duration `default:"5s" placeholder:"DURATION" help:"Time limit for an answer; if the store is slower, the answer is a 503 (default ${default})."`

	MaxRequests    int           `default:"2048" placeholder:"N" help:"Concurrent requests; more get a 503 (default ${default})."`
	MaxHeaderBytes int           `default:"16384" placeholder:"BYTES" help:"Longest request line with headers; longer ones get a 431 (default ${default})."`
	HeaderTimeout  time.Duration `default:"5s" placeholder:"DURATION" help:"Time for a client to send its headers (default ${default})."`
	RequestTimeout time.Duration `default:"10s" placeholder:"DURATION" help:"Time for a client to send its request (default ${default})."`
	WriteTimeout   time.Duration `default:"30s" placeholder:"DURATION" help:"Time for a client to take its answer (default ${default})."`
	IdleTimeout    time.Duration `default:"2m" placeholder:"DURATION" help:"Idle time of a connection (default ${default})."`
	DrainDelay     time.Duration `default:"0s" placeholder:"DURATION" help:"How long to keep serving after SIGTERM while /readyz returns 503 (default ${default}). Set it to the time that a load balancer needs to notice."`
	DrainTimeout   time.Duration `default:"10s" placeholder:"DURATION" help:"After that delay, how long to wait for requests in flight (default ${default})."`
}

// Check checks the flags.
func (l *Limits) Check() error {
	for _, least := range []struct {
		flag string
		good bool
	}{
		{"timeout", l.Timeout > 0}, {"max-requests", l.MaxRequests > 0}, {"max-header-bytes", l.MaxHeaderBytes > 0}, {"header-timeout", l.HeaderTimeout > 0},
		{"request-timeout", l.RequestTimeout > 0}, {"write-timeout", l.WriteTimeout > 0}, {"idle-timeout", l.IdleTimeout > 0},
		{"drain-timeout", l.DrainTimeout > 0}, {"cache-bytes", l.CacheBytes > 0}, {"in-flight-bytes", l.InFlight > 0},
	} {
		if !least.good {
			return fmt.Errorf("--%s must be positive", least.flag)
		}
	}
	switch {
	case l.WriteTimeout <= l.Timeout+server.UpstreamTimeout:
		return fmt.Errorf("--write-timeout=%v must be more than --timeout and %v for upstreams: else answers are cut off", l.WriteTimeout, server.UpstreamTimeout)
	case l.MaxHeaderBytes <= server.LeastHeaderBytes:
		return fmt.Errorf("--max-header-bytes must be more than %d", server.LeastHeaderBytes)
	case l.DrainDelay < 0:
		return errors.New("--drain-delay cannot be negative")
	}
	return nil
}

// Handling are the options of a handler within the limits.
func (l *Limits) Handling() server.Options {
	return server.Options{CacheBytes: l.CacheBytes, InFlightBytes: l.InFlight, Timeout: l.Timeout, MaxRequests: l.MaxRequests}
}

func (l *Limits) connections() server.Limits {
	return server.Limits{
		HeaderTimeout: l.HeaderTimeout, RequestTimeout: l.RequestTimeout, WriteTimeout: l.WriteTimeout,
		IdleTimeout: l.IdleTimeout, DrainTimeout: l.DrainTimeout, HeaderBytes: l.MaxHeaderBytes,
	}
}

// A Service is what Limits.Serve runs until it is told to stop.
type Service struct {
	Log        *slog.Logger
	Public     net.Listener
	Handler    http.Handler // of requests to Public
	Metrics    net.Listener // nil for none
	Operations http.Handler // of requests to Metrics
	Drain      func()       // called first, so that /readyz says no from then on
	// Work runs until the last request is answered, when its context ends. An error ends the service.
	Work []func(context.Context) error
}

// Serve serves until ctx ends and the last request is answered: first for the delay of the flags, in which
// /readyz says no. It returns the first error of a listener or of the work.
func (l *Limits) Serve(ctx context.Context, s Service) error {
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
		s.Log.Info("told to stop", "drain_delay", l.DrainDelay.String(), "drain_timeout", l.DrainTimeout.String())
		s.Drain()
		select {
		case <-time.After(l.DrainDelay):
		case <-rest.Done():
		}
		return nil
	})
	group.Go(func() error {
		defer end()
		return server.Serve(draining, s.Public, s.Handler, s.Log, l.connections())
	})
	for _, work := range s.Work {
		group.Go(func() error { return work(rest) })
	}
	if s.Metrics != nil {
		s.Log.Info("serving metrics", "url", "http://"+s.Metrics.Addr().String()+"/metrics")
		group.Go(func() error { return server.Serve(rest, s.Metrics, s.Operations, s.Log, l.connections()) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	s.Log.Info("stopped")
	return nil
}
