// Package ask sends requests for JSON to HTTP services within a budget. It waits for rate limits
// and retries temporary failures, and gives up on a service that keeps failing.
package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/followpress/followpress/source"
)

const (
	attemptTime  = 2 * time.Minute // limit of one request; a worker may have to resolve 50 names
	maxHead      = 64 << 10        // bytes of response headers
	firstWait    = time.Second     // after a failure; doubles with each further one
	longestWait  = time.Minute
	attempts     = 3                // attempts at a request, before the caller gets the error
	mostFailures = 10               // consecutive failures of all requests before the run gives up
	patience     = 10 * time.Minute // longest wait for rate limits without an answer
)

var (
	// ErrSpent means that the budget is spent.
	ErrSpent = errors.New("the budget is spent")
	// ErrGaveUp means that the service failed too often, or asks to wait too long.
	ErrGaveUp = errors.New("gave up")
	// ErrFailed means that a request failed repeatedly.
	ErrFailed = errors.New("the request failed")

	errLong   = errors.New("the answer is too long")
	errStatus = errors.New("status")
)

// Options configure a Client.
type Options struct {
	URL       string        // base URL of the service
	Header    http.Header   // sent with each request
	Budget    source.Budget // starts with New
	Log       *slog.Logger  // nil for none
	Transport http.RoundTripper
}

// A Client sends requests to one service. It is safe for concurrent use.
type Client struct {
	root   string
	host   string // for messages: the rest of the URL may be secret
	header http.Header
	budget source.Budget
	begun  time.Time
	log    *slog.Logger
	http   *http.Client

	mu       sync.Mutex
	cost     Cost
	failures int           // consecutive failures
	limited  time.Duration // wait for rate limits since the last answer
}

// A Cost is the use of a service.
type Cost struct {
	Requests int           // including failed ones
	Bytes    int64         // response bytes
	Waited   time.Duration // for rate limits and failures
}

// New returns a Client. It fails if the URL is not an HTTP URL or a header is invalid. Its errors
// contain neither, since both may be secret.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the URL must be like https://HOST or https://HOST/PATH")
	}
	for name, values := range o.Header {
		if strings.ContainsFunc(strings.Join(values, ""), unicode.IsControl) {
			return nil, fmt.Errorf("the value of %s contains a control character, such as a line end", name)
		}
	}
	transport := o.Transport
	if transport == nil {
		own := http.DefaultTransport.(*http.Transport).Clone()
		own.MaxResponseHeaderBytes = maxHead
		transport = own
	}
	return &Client{
		root: strings.TrimRight(o.URL, "/"), host: u.Host, header: o.Header, budget: o.Budget, begun: time.Now(), log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)),
		http: &http.Client{
			Transport: transport,
			// A redirect is a failure: only the configured host may answer.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Cost returns the use of the service so far.
func (c *Client) Cost() Cost {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cost
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// A Lane is a kind of requests with its own rate limit. It is safe for concurrent use.
type Lane struct {
	// Own, unless nil, reports whether an error answer is about the requested item, such as a name
	// that cannot be resolved, rather than a failure of the service to retry.
	Own func(Answer) bool

	client *Client

	mu      sync.Mutex
	pace    time.Duration // minimum time between the starts of two requests
	limited time.Duration // pace after the service has limited the rate
	next    time.Time     // when the next request may start
	hits    int           // consecutive answers with a rate limit
	hit     bool          // whether there was one
}

// Lane returns a lane whose requests start at least pace apart, or at least limited apart after the
// service answered 429 without a time to wait.
func (c *Client) Lane(pace, limited time.Duration) *Lane {
	return &Lane{client: c, pace: pace, limited: limited}
}

// Limited reports whether the service has limited the rate.
func (l *Lane) Limited() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hit
}

// An Answer is an answer of a service with any status that Get does not retry.
type Answer struct {
	Status int
	Body   []byte // nil if it is unreadable and the status is not 200
}

// Get requests a path below the base URL and reads at most maxBytes. It retries a request that was
// cut off or answered with 408 or 5xx (except 501), and waits as long as the service asks for. The
// error wraps ErrFailed if the request failed several times, ErrGaveUp if the run should send the
// service no more requests, and ErrSpent if the budget does not allow the request; otherwise ctx
// has ended. It names the host only, not the URL.
func (l *Lane) Get(ctx context.Context, path string, query url.Values, maxBytes int64) (Answer, error) {
	failed := 0
	for {
		if err := l.start(ctx); err != nil {
			return Answer{}, err
		}
		answer, asked, err := l.client.attempt(ctx, path, query, maxBytes)
		if ctx.Err() != nil {
			return Answer{}, context.Cause(ctx)
		}
		if errors.Is(err, errStatus) && l.Own != nil && l.Own(answer) {
			err = nil
		}
		var wait time.Duration
		switch {
		case err == nil && answer.Status == http.StatusTooManyRequests:
			wait, err = l.limit(asked)
		case err == nil:
			l.succeeded()
			return answer, nil
		default:
			failed++
			wait, err = l.client.fail(err, asked, failed < attempts && !errors.Is(err, errLong))
		}
		if err != nil {
			return Answer{}, err
		}
		if err := l.client.wait(ctx, wait, "trying again"); err != nil {
			return Answer{}, err
		}
	}
}

// start waits until a request may start, and takes it from the budget.
func (l *Lane) start(ctx context.Context) error {
	l.mu.Lock()
	now := time.Now()
	at := now
	if l.next.After(now) {
		at = l.next
	}
	l.next = at.Add(l.pace)
	l.mu.Unlock()
	if err := l.client.wait(ctx, at.Sub(now), ""); err != nil {
		return err
	}
	c := l.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.budget.Requests > 0 && c.cost.Requests >= c.budget.Requests || c.budget.Time > 0 && time.Since(c.begun) >= c.budget.Time {
		return ErrSpent
	}
	if c.failures >= mostFailures {
		return fmt.Errorf("%w: %s failed before", ErrGaveUp, c.host) // another goroutine has the error
	}
	c.cost.Requests++
	return nil
}

// wait waits, unless that would exceed the budget. why is for the log; "" for a wait that is part
// of the pace.
func (c *Client) wait(ctx context.Context, d time.Duration, why string) error {
	if d <= 0 {
		return nil
	}
	if c.budget.Time > 0 && time.Since(c.begun)+d >= c.budget.Time {
		return ErrSpent
	}
	if why != "" {
		c.log.Info(why, "host", c.host, "after", d.Round(time.Millisecond))
		c.mu.Lock()
		c.cost.Waited += d
		c.mu.Unlock()
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// limit returns how long to wait after a 429. If the service asks for no wait, or hardly any, the
// lane gets slower, and consecutive answers of this kind double the wait.
func (l *Lane) limit(asked time.Duration) (time.Duration, error) {
	l.mu.Lock()
	wait := asked
	if asked < firstWait {
		l.pace = max(l.pace, l.limited)
		wait = min(max(l.pace, firstWait)<<min(l.hits, 10), longestWait)
	}
	l.hits++
	l.hit = true
	l.next = time.Now().Add(wait) // applies to other goroutines too
	l.mu.Unlock()

	c := l.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.limited += wait; c.limited > patience {
		return 0, fmt.Errorf("%w: %s limits the rate for more than %s", ErrGaveUp, c.host, patience)
	}
	return wait, nil
}

func (l *Lane) succeeded() {
	l.mu.Lock()
	l.hits = 0
	l.mu.Unlock()
	l.client.mu.Lock()
	l.client.failures, l.client.limited = 0, 0
	l.client.mu.Unlock()
}

// fail returns how long to wait after a failure. The error wraps ErrFailed unless again is set.
func (c *Client) fail(err error, asked time.Duration, again bool) (time.Duration, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures++
	wait := max(asked, min(firstWait<<min(c.failures-1, 10), longestWait))
	switch {
	case c.failures >= mostFailures:
		return 0, fmt.Errorf("%w: %s: the last %d requests failed: %w", ErrGaveUp, c.host, c.failures, err)
	case wait > patience:
		return 0, fmt.Errorf("%w: %s asks to wait %s: %w", ErrGaveUp, c.host, wait, err)
	case !again:
		return 0, fmt.Errorf("%w: %s: %w", ErrFailed, c.host, err)
	}
	c.log.Info("request failed", "host", c.host, "error", err)
	return wait, nil
}

// attempt makes one request. asked is the wait that the service asks for; 0 for none.
func (c *Client) attempt(ctx context.Context, path string, query url.Values, maxBytes int64) (answer Answer, asked time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	target := c.root + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
	if err != nil {
		return answer, 0, withoutURL(err)
	}
	for name, values := range c.header {
		request.Header[name] = values
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "followpress")
	response, err := c.http.Do(request)
	if err != nil {
		return answer, 0, withoutURL(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBytes+1))
	c.mu.Lock()
	c.cost.Bytes += int64(len(body))
	c.mu.Unlock()
	asked = retryAfter(response.Header.Get("Retry-After"))
	answer = Answer{response.StatusCode, body}
	long := int64(len(body)) > maxBytes
	switch {
	case passing(response.StatusCode):
		return answer, asked, fmt.Errorf("%w %d", errStatus, response.StatusCode)
	case response.StatusCode != http.StatusOK && (err != nil || long):
		answer.Body = nil // the status suffices
	case err != nil:
		return answer, asked, withoutURL(err)
	case long:
		return answer, asked, fmt.Errorf("%w: more than %d bytes", errLong, maxBytes)
	}
	return answer, asked, nil
}

// passing reports whether a request with this status may succeed later.
func passing(status int) bool {
	return status >= 500 && status != http.StatusNotImplemented || status == http.StatusRequestTimeout
}

// retryAfter parses the header, seconds or a date; 0 for none.
func retryAfter(text string) time.Duration {
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

func withoutURL(err error) error {
	var in *url.Error
	if errors.As(err, &in) {
		return in.Err
	}
	return err
}
