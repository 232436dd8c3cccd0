package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/cmd/internal/key"
	"github.com/followpress/followpress/internal/secret"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site/note"
)

// Upstreams are the flags for fresh data (cache=fresh).
type Upstreams struct {
	ProfileUpstream string `placeholder:"URL" help:"Source of fresh profiles for cache=fresh: a URL with {address}."`
	BadgeUpstream   string `placeholder:"URL" help:"Source of fresh badges for cache=fresh: a URL with {address} and {event_id}. It receives $FOLLOWPRESS_BADGE_API_KEY as X-API-Key."`
	RefreshKey      string `placeholder:"KEYFILE" help:"Sign refreshed data with this key from followpress key. Signed sites and readers with keys accept nothing else (--refreshed-key)."`
	StrictRefresh   bool   `help:"Answer too frequent refreshes with 429 instead of the stored object."`
	Proxies         int    `placeholder:"N" help:"Number of proxies before this server that append to X-Forwarded-For; 0, the default, means none."`

	secret string // key, since a pipe can be read only once
}

// badgeKey is the variable with the key for the badge upstream. It is not a flag: other users can see a
// process's flags.
const badgeKey = "FOLLOWPRESS_BADGE_API_KEY"

// Refresh returns the options for fresh data.
func (u *Upstreams) Refresh() server.RefreshOptions {
	return server.RefreshOptions{
		ProfileUpstream: u.ProfileUpstream, BadgeUpstream: u.BadgeUpstream, BadgeAPIKey: secret.Text(os.Getenv(badgeKey)),
		Strict: u.StrictRefresh, Proxies: u.Proxies,
	}
}

// Check checks the flags.
func (u *Upstreams) Check() error {
	_, err := u.Signing()
	return errors.Join(err, u.Refresh().Validate())
}

// Signing returns the signing options of --refresh-key, with other trusted keys.
func (u *Upstreams) Signing(others ...string) (s server.RefreshSigning, err error) {
	if u.RefreshKey == "" {
		return s, nil
	}
	if !u.Refresh().Refreshes() {
		return s, errors.New("--refresh-key needs --profile-upstream or --badge-upstream: it signs their data")
	}
	public, err := u.RefreshPublic()
	if err != nil {
		return s, err
	}
	if s.Signer, err = note.ParsePrivate(u.secret); err != nil {
		return s, fmt.Errorf("--refresh-key: %w", err)
	}
	if s.Keys, err = note.ParseKeys(append([]string{public}, others...)...); err != nil {
		return s, fmt.Errorf("--refreshed-key: %w", err)
	}
	return s, nil
}

// RefreshPublic returns the public key of --refresh-key; "" without one.
func (u *Upstreams) RefreshPublic() (public string, err error) {
	if u.secret == "" && u.RefreshKey != "" {
		u.secret, err = key.Read(u.RefreshKey)
	}
	if u.secret != "" {
		public, err = note.Public(u.secret)
	}
	if err != nil {
		return "", fmt.Errorf("--refresh-key: %w", err)
	}
	return public, nil
}

// Limits are the flags for a server's limits and for its shutdown.
type Limits struct {
	CacheBytes uint64        `default:"29360128" placeholder:"BYTES" help:"Memory for the cache of hot objects (default ${default})."`
	Timeout    time.Duration `default:"5s" placeholder:"DURATION" help:"Time limit for an answer; slower ones become 503 (default ${default})."`
	DrainDelay time.Duration `default:"0s" placeholder:"DURATION" help:"How long to serve after SIGTERM with /readyz at 503 (default ${default}): the time a load balancer needs to notice. Requests in flight then get 10s."`
}

// Check checks the flags.
func (l *Limits) Check() error {
	switch {
	case l.Timeout <= 0:
		return errors.New("--timeout must be positive")
	case l.CacheBytes == 0:
		return errors.New("--cache-bytes must be positive")
	case l.Timeout >= server.WriteTimeout-server.UpstreamTimeout:
		return fmt.Errorf("--timeout=%v must be less than %v: clients have %v to take an answer, of which an upstream may take %v",
			l.Timeout, server.WriteTimeout-server.UpstreamTimeout, server.WriteTimeout, server.UpstreamTimeout)
	case l.DrainDelay < 0:
		return errors.New("--drain-delay cannot be negative")
	}
	return nil
}

// Handling returns the handler options for these limits.
func (l *Limits) Handling() server.Options {
	return server.Options{CacheBytes: l.CacheBytes, Timeout: l.Timeout}
}

// Listeners are those of --addr and --metrics-addr.
type Listeners struct {
	Public  net.Listener
	Metrics net.Listener // nil if off
}

// Listen listens at the addresses of --addr and --metrics-addr, unless that is "". The caller closes
// the Listeners.
func Listen(addr, metricsAddr string) (l Listeners, err error) {
	if l.Public, err = command.Listen("addr", addr); err != nil || metricsAddr == "" {
		return l, err
	}
	if l.Metrics, err = command.Listen("metrics-addr", metricsAddr); err != nil {
		err = errors.Join(err, l.Public.Close())
	}
	return l, err
}

// Close closes the listeners.
func (l Listeners) Close() error {
	err := l.Public.Close()
	if l.Metrics != nil {
		err = errors.Join(err, l.Metrics.Close())
	}
	return err
}

// A Service runs in Limits.Serve until its context ends.
type Service struct {
	Listeners
	Log        *slog.Logger
	Handler    http.Handler // serves Public
	Operations http.Handler // serves Metrics
	Drain      func()       // called first, so that /readyz fails from then on
	// Work runs until the last request is answered, which cancels its context. An error ends the service.
	Work []func(context.Context) error
}

// Serve serves until ctx ends and the last request is answered. It waits for DrainDelay first, with /readyz
// failing. It returns the first error of a listener or of Work.
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
		s.Log.Info("told to stop", "drain_delay", l.DrainDelay.String())
		s.Drain()
		select {
		case <-time.After(l.DrainDelay):
		case <-rest.Done():
		}
		return nil
	})
	group.Go(func() error {
		defer end()
		return server.Serve(draining, s.Public, s.Handler, s.Log)
	})
	for _, work := range s.Work {
		group.Go(func() error { return work(rest) })
	}
	if s.Metrics != nil {
		s.Log.Info("serving metrics", "url", "http://"+s.Metrics.Addr().String()+"/metrics")
		group.Go(func() error { return server.Serve(rest, s.Metrics, s.Operations, s.Log) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	s.Log.Info("stopped")
	return nil
}
