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

	"github.com/followpress/followpress/cmd/internal/key"
	"github.com/followpress/followpress/internal/secret"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site/note"
)

// Upstreams are the flags about fresh data (cache=fresh).
type Upstreams struct {
	ProfileUpstream string `placeholder:"URL" help:"Source of fresh profiles for cache=fresh: a URL with {address} in it."`
	BadgeUpstream   string `placeholder:"URL" help:"Source of fresh badges for cache=fresh: a URL with {address} and {event_id} in it. $FOLLOWPRESS_BADGE_API_KEY is sent to it as X-API-Key."`
	RefreshKey      string `placeholder:"KEYFILE" help:"Sign what is refreshed with this key, which followpress key made. A signed site and readers with keys take only that (--refreshed-key)."`
	StrictRefresh   bool   `help:"Answer a refresh that is asked for too often with 429, not with the stored object."`
	Proxies         int    `placeholder:"N" help:"How many servers before this one append the address of their client to X-Forwarded-For. 0, the default, means that clients connect directly."`

	secret string // the key, as a pipe can be read once
}

// badgeKey is the variable of the key of the badges' upstream. It is no flag, since others can see the
// flags of a process.
const badgeKey = "FOLLOWPRESS_BADGE_API_KEY"

// Refresh says where fresh data comes from.
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

// Signing is what --refresh-key says, with other keys that are believed too.
func (u *Upstreams) Signing(others ...string) (s server.RefreshSigning, err error) {
	if u.RefreshKey == "" {
		return s, nil
	}
	if !u.Refresh().Refreshes() {
		return s, errors.New("--refresh-key is for --profile-upstream and --badge-upstream: it signs what they are asked for")
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

// RefreshPublic is the public key of --refresh-key, "" without one.
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

// Limits are the flags about what a server takes, and how it stops.
type Limits struct {
	CacheBytes   uint64        `default:"29360128" placeholder:"BYTES" help:"Memory of the cache of hot objects (default ${default})."`
	Timeout      time.Duration `default:"5s" placeholder:"DURATION" help:"Time limit for an answer; if the store is slower, the answer is a 503 (default ${default})."`
	DrainDelay   time.Duration `default:"0s" placeholder:"DURATION" help:"How long to keep serving after SIGTERM while /readyz returns 503 (default ${default}). Set it to the time that a load balancer needs to notice."`
	DrainTimeout time.Duration `default:"10s" placeholder:"DURATION" help:"After that delay, how long to wait for requests in flight (default ${default})."`
}

// Check checks the flags.
func (l *Limits) Check() error {
	for _, least := range []struct {
		flag string
		good bool
	}{
		{"timeout", l.Timeout > 0}, {"drain-timeout", l.DrainTimeout > 0}, {"cache-bytes", l.CacheBytes > 0},
	} {
		if !least.good {
			return fmt.Errorf("--%s must be positive", least.flag)
		}
	}
	switch {
	case l.Timeout >= server.WriteTimeout-server.UpstreamTimeout:
		return fmt.Errorf("--timeout=%v must be less than %v: clients have %v to take an answer, of which an upstream may take %v",
			l.Timeout, server.WriteTimeout-server.UpstreamTimeout, server.WriteTimeout, server.UpstreamTimeout)
	case l.DrainDelay < 0:
		return errors.New("--drain-delay cannot be negative")
	}
	return nil
}

// Handling are the options of a handler within the limits.
func (l *Limits) Handling() server.Options {
	return server.Options{CacheBytes: l.CacheBytes, Timeout: l.Timeout}
}

func (l *Limits) connections() server.Limits {
	return server.Limits{DrainTimeout: l.DrainTimeout}
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
