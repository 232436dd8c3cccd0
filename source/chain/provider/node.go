package provider

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/followpress/followpress/internal/retry"
	"github.com/followpress/followpress/internal/secret"
)

// A node is what answers at one URL.
type node struct {
	host    string // how errors and reports name it
	origin  string // nodes of one origin are one host to a quorum
	url     string // it may have a key
	http    *http.Client
	hide    *secret.Hider
	o       *Options
	share   *share
	limiter *rate.Limiter // the pace of this node, which is not faster than that of its share
	sizes   *sizes
	log     *slog.Logger

	sent, received atomic.Int64
	chain          atomic.Uint64         // what it said; 0 before it was asked
	head           atomic.Pointer[Block] // the last head of which it said that it is part of its chain; nil for none
	batches        atomic.Bool           // it has answered a batch
	apart          atomic.Bool           // there is no Multicall3

	mu     sync.Mutex
	cost   Cost
	broken error // why it is not asked any more

	whole      int // logs of its largest answer that had all of them
	fewer      int // the largest batch that it takes; 0 means that all were taken
	unbatch    int // batches that failed before; batchAttempts means that it takes none
	fewerCalls int // of Multicall3, that it takes at a time; 0 means mostCalls

	rest     time.Time // it is not asked until then
	why      error     // the failure that it rests for
	failedAt time.Time // when that was
	waits    retry.Waits
	busy     int       // requests under way, or waiting for the pace
	ended    time.Time // when the last request ended
	answered time.Time // when the last answer came
	paced    time.Time // since when the pace is measured
	since    int       // answers since then
	growth   float64   // by which part the pace is made higher next
}

func newNode(u *url.URL, name string, o *Options) *node {
	n := &node{
		host: name, origin: originOf(u), url: u.String(), hide: hiding(u), o: o, log: o.Log, share: o.Shares.of(u, o),
		sizes: newSizes(o.MaxRange), waits: retry.Waits{First: firstRest, Longest: longestRest}, paced: time.Now(),
		cost: Cost{Host: name, Calls: map[string]int64{}},
	}
	n.limiter = rate.NewLimiter(rate.Inf, 1)
	if o.Rate > 0 {
		n.limiter.SetLimit(rate.Limit(o.Rate))
	}
	over := o.Transport
	if over == nil {
		over = n.transport()
	}
	n.http = &http.Client{Transport: over, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return n
}

// originOf is the host of a URL, however it is written.
func originOf(u *url.URL) string {
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(host, port)
}

// transport has connections that count bytes. It asks for gzip and HTTP/2, as Go's own does.
func (n *node) transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ForceAttemptHTTP2 = true // a DialContext of one's own turns it off
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second}
	t.MaxIdleConnsPerHost = n.o.Concurrency
	t.MaxResponseHeaderBytes = 64 << 10
	dialer := &net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &countedConn{c, n}, nil
	}
	return t
}

type countedConn struct {
	net.Conn
	n *node
}

func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.n.received.Add(int64(n))
	return n, err
}

func (c *countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.n.sent.Add(int64(n))
	return n, err
}
