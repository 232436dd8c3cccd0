package purger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/followpress/followpress/internal/plain"
	"github.com/followpress/followpress/internal/retry"
	"github.com/followpress/followpress/internal/secret"
)

const (
	attemptTime    = 30 * time.Second
	firstBackoff   = 500 * time.Millisecond
	longestBackoff = 20 * time.Second
	maxAnswer      = 1 << 20 // bytes of an answer that are read
	maxQuote       = 200     // bytes of an answer that an error quotes
)

// A verdict is the meaning of an answer.
type verdict int

const (
	byStatus verdict = iota // the status decides
	nothing                 // success: the cache had nothing to purge
	tryAgain                // retryable
)

// A client makes requests, and retries them with exponential backoff after a retryable
// error. It may be used from many goroutines.
type client struct {
	name     string
	judge    func(status int, body []byte) verdict // judges answers of the service
	http     *http.Client
	retry    retry.Policy
	pollWait time.Duration
	log      *slog.Logger
	tell     func(line string)
	retries  atomic.Int64
	empty    atomic.Int64 // answers that found nothing to purge
	hide     *secret.Hider
}

func newClient(s service, hide *secret.Hider, o Options) *client {
	c := &client{name: s.name, judge: s.judge, hide: hide, pollWait: cmp.Or(o.pollWait, pollWait), log: o.Log, tell: o.Tell}
	c.retry = retry.Policy{
		Retryable: isRetryable, First: cmp.Or(o.firstBackoff, firstBackoff), Longest: longestBackoff, Patience: o.Patience,
		Log: o.Log, Retries: &c.retries,
	}
	c.http = &http.Client{
		Transport: http.DefaultTransport,
		// A redirect must not take our token, or a purge, to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c
}

// A statusError is an answer whose status means failure.
type statusError struct {
	status int
	quote  string // the beginning of the answer
}

// A retryableError marks an error after which another attempt may succeed.
type retryableError struct{ error }

func (e retryableError) Unwrap() error { return e.error }

func isRetryable(err error) bool { return errors.As(err, new(retryableError)) }

func (e *statusError) Error() string {
	text := fmt.Sprintf("the answer is %d %s", e.status, http.StatusText(e.status))
	if e.quote != "" {
		text += ": " + e.quote
	}
	if e.status == http.StatusUnauthorized || e.status == http.StatusForbidden {
		text += " (check the credentials, and what they permit)"
	}
	return text
}

// do makes a request until an attempt succeeds, and returns the body of the answer. Each
// attempt has its own request, because a signature contains the time.
func (c *client) do(ctx context.Context, request func(context.Context) (*http.Request, error)) (answer []byte, err error) {
	err = c.retry.Do(ctx, func() (err error) {
		answer, err = c.attempt(ctx, request)
		return err
	}, "purge", c.name)
	return answer, err
}

func (c *client) attempt(ctx context.Context, request func(context.Context) (*http.Request, error)) (answer []byte, err error) {
	limited, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	r, err := request(limited)
	if err != nil {
		return nil, withoutURL(err)
	}
	response, err := c.http.Do(r)
	if err != nil {
		return nil, unlessEnded(ctx, withoutURL(err))
	}
	answer, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	err = errors.Join(err, response.Body.Close())
	c.log.Debug("request", "purge", c.name, "method", r.Method, "status", response.StatusCode)
	if err != nil {
		return nil, unlessEnded(ctx, err)
	}
	status, said := response.StatusCode, byStatus
	if c.judge != nil {
		said = c.judge(status, answer)
	}
	if said == nothing {
		c.empty.Add(1)
	}
	if said == nothing || said == byStatus && status/100 == 2 {
		return answer, nil
	}
	err = &statusError{status, c.quote(answer)}
	if said == tryAgain || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout ||
		status >= http.StatusInternalServerError && status != http.StatusNotImplemented {
		err = afterHeader(response.Header, retryableError{err})
	}
	return nil, err
}

// unlessEnded makes an error retryable, unless the reason is that ctx has ended.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return retryableError{err}
}

// withoutURL drops the URL from an error: its template may hold a secret.
func withoutURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// afterHeader adds the wait that the server asks for in Retry-After, in seconds or as a time.
func afterHeader(h http.Header, err error) error {
	text := h.Get("Retry-After")
	if seconds, parseErr := strconv.Atoi(text); parseErr == nil && seconds >= 0 {
		return retry.After(err, time.Duration(min(seconds, math.MaxInt32))*time.Second)
	}
	if at, parseErr := http.ParseTime(text); parseErr == nil {
		return retry.After(err, time.Until(at))
	}
	return err
}

// quote returns the beginning of an answer as one printable line. Servers often repeat the request, so secrets are
// replaced first: a cut may leave half a secret.
func (c *client) quote(answer []byte) string {
	text := plain.Line(c.hide.Replace(string(answer)))
	return strings.ToValidUTF8(text[:min(len(text), maxQuote)], "")
}
