package fresh

import (
	"context"
	"maps"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// clients limits the refreshes per client. It is safe for concurrent use.
type clients struct {
	rate rate.Limit

	mu     sync.Mutex
	known  map[netip.Addr]*rate.Limiter // clients below their burst, at most mostClients
	others *rate.Limiter                // shared by all other clients
}

const (
	clientBurst = 10
	mostClients = 4096 // some 128 bytes each
)

// clientKey is the context key of the client.
type clientKey struct{}

func newClients(perSecond float64) *clients {
	limit := rate.Limit(perSecond)
	return &clients{rate: limit, known: map[netip.Addr]*rate.Limiter{}, others: rate.NewLimiter(limit, clientBurst)}
}

func (c *clients) wait(client netip.Addr, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if missing := 1 - c.limiter(client, now).TokensAt(now); missing > 0 {
		return time.Duration(missing / float64(c.rate) * float64(time.Second))
	}
	return 0
}

func (c *clients) count(client netip.Addr, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limiter(client, now).AllowN(now, 1)
}

func (c *clients) limiter(client netip.Addr, now time.Time) *rate.Limiter {
	if l := c.known[client]; l != nil {
		return l
	}
	if len(c.known) >= mostClients {
		maps.DeleteFunc(c.known, func(_ netip.Addr, l *rate.Limiter) bool { return l.TokensAt(now) >= clientBurst })
	}
	if len(c.known) >= mostClients {
		return c.others
	}
	l := rate.NewLimiter(c.rate, clientBurst)
	c.known[client] = l
	return l
}

// WithClient returns a context for Refresh that holds the client of a request (see ClientOf).
func WithClient(ctx context.Context, r *http.Request, proxies int) context.Context {
	return context.WithValue(ctx, clientKey{}, ClientOf(r, proxies))
}

// ClientOf returns the address of the client of a request that came through the given number of
// proxies. Entries of X-Forwarded-For before theirs may be forged. For IPv6 it returns the /64
// network, since a client has all of its addresses.
func ClientOf(r *http.Request, proxies int) netip.Addr {
	host := r.RemoteAddr
	if proxies > 0 {
		passed := strings.Split(strings.Join(r.Header["X-Forwarded-For"], ","), ",")
		if n := len(passed) - proxies; n >= 0 {
			host = strings.TrimSpace(passed[n])
		}
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		withPort, _ := netip.ParseAddrPort(host) // the zero value after an error, so all such clients count as one
		address = withPort.Addr()
	}
	address = address.Unmap().WithZone("")
	if address.Is6() {
		network, _ := address.Prefix(64) // never fails for IPv6
		address = network.Addr()
	}
	return address
}
