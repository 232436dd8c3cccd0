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
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/followpress/followpress/internal/retry"
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
	byStatus verdict = iota // as its status says
	good
	nothing  // success: the cache had nothing to purge
	tryAgain // retryable
)

// A client makes requests, and retries them with exponential backoff after a retryable
// error. It may be used from many goroutines.
type client struct {
	name     string
	judge    func(status int, body []byte) verdict // of the service
	http     *http.Client
	retry    retry.Policy
	pollWait time.Duration
	log      *slog.Logger
	tell     func(line string)
	retries  atomic.Int64
	empty    atomic.Int64 // answers that there was nothing to purge
	hide     *strings.Replacer
}

func newClient(s service, secrets []string, o Options) *client {
	c := &client{name: s.name, judge: s.judge, hide: hiding(secrets), pollWait: cmp.Or(o.pollWait, pollWait), log: o.Log, tell: o.Tell}
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
// attempt has a request of its own, because a signature contains the time.
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
	if said == good || said == nothing || said == byStatus && status/100 == 2 {
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

// withoutURL drops the URL from an error: it may come from a template with a secret in it.
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

// quote is the beginning of an answer, in one line. Servers often repeat the request, so our
// secrets are replaced.
func (c *client) quote(answer []byte) string {
	text := c.hide.Replace(string(answer))
	return strings.Join(strings.Fields(strings.ToValidUTF8(text[:min(len(text), maxQuote)], "")), " ")
}

// shortestSecret keeps short words of a URL like /purge?all=1 readable.
const shortestSecret = 6

func hiding(secrets []string) *strings.Replacer {
	// Longest first: one secret may be the beginning of another, and the first match wins.
	secrets = slices.SortedFunc(slices.Values(secrets), func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var pairs []string
	for _, s := range secrets {
		if len(s) >= shortestSecret {
			pairs = append(pairs, s, "[hidden]")
		}
	}
	return strings.NewReplacer(pairs...)
}

// secretParts returns the parts of a URL, or of a template, that may be secret: all except the
// host.
func secretParts(template string) []string {
	u, err := url.Parse(strings.NewReplacer(urlPlaceholder, "", pathPlaceholder, "").Replace(template))
	if err != nil {
		return nil // it will be refused
	}
	all := strings.Split(u.EscapedPath(), "/")
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		name, value, _ := strings.Cut(pair, "=")
		all = append(all, name, value)
	}
	for _, part := range all {
		all = append(all, echoes(part)...)
	}
	return all
}

// percent matches an encoded byte of a URL, whose digits may be of either case.
var percent = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// echoes returns the spellings in which a server may repeat a part of a URL.
func echoes(part string) []string {
	all := []string{part}
	for _, unescape := range []func(string) (string, error){url.QueryUnescape, url.PathUnescape} {
		if plain, err := unescape(part); err == nil {
			all = append(all, plain, url.QueryEscape(plain), url.PathEscape(plain))
		}
	}
	for _, text := range all {
		all = append(all, percent.ReplaceAllStringFunc(text, strings.ToUpper), percent.ReplaceAllStringFunc(text, strings.ToLower))
	}
	return all
}
