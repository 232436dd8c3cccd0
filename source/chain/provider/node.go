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

// A node is the server at one URL.
type node struct {
	host    string // name in errors and reports
	origin  string // a quorum counts the nodes of one origin as one host
	url     string // may contain a key
	http    *http.Client
	hide    *secret.Hider
	o       *Options
	share   *share
	limiter *rate.Limiter // the pace of this node, at most that of its share
	sizes   *sizes
	log     *slog.Logger

	sent, received atomic.Int64
	chain          atomic.Uint64         // its answer; 0 before it was asked
	head           atomic.Pointer[Block] // last head that it reported to be in its chain; nil for none
	batches        atomic.Bool           // it has answered a batch
	apart          atomic.Bool           // there is no Multicall3

	mu     sync.Mutex
	cost   Cost
	broken error // reason why it is no longer asked

	fewer      int // largest accepted batch; 0 if none was rejected
	unbatch    int // failures of first batches; from batchAttempts on, it accepts none
	fewerCalls int // largest accepted number of Multicall3 calls; 0 for mostCalls

	rest     time.Time // do not ask it before this time
	why      error     // failure that it rests for
	failedAt time.Time // time of that failure
	waits    retry.Waits
	busy     int       // requests running, or waiting for the pace
	ended    time.Time // end of the last request
	answered time.Time // time of the last answer
	paced    time.Time // start of the pace measurement
	since    int       // answers since paced
	growth   float64   // factor of the next increase of the pace
}

func newNode(u *url.URL, name string, o *Options) *node {
	n := &node{
		host: name, origin: originOf(u), url: u.String(), hide: hiding(u), o: o, log: o.Log, share: o.Shares.shareOf(u, o),
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

// originOf returns the host of a URL in normal form.
func originOf(u *url.URL) string {
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(host, port)
}

// transport returns a transport whose connections count bytes. It uses gzip and HTTP/2 like Go's
// default.
func (n *node) transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ForceAttemptHTTP2 = true // a custom DialContext disables it
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
