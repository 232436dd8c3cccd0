package purger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Times and sizes of requests.
const (
	attemptTime = 30 * time.Second
	firstWait   = 500 * time.Millisecond
	longestWait = 20 * time.Second
	largestBody = 1 << 20 // of an answer
	largestWord = 200     // of an answer, as an error quotes it
)

// A verdict says what an answer means.
type verdict int

const (
	byStatus verdict = iota // what its status says
	good
	nothing // good: it had nothing to forget
	tryAgain
)

// A client makes requests, and makes them again when they fail for a reason that may
// go away.
type client struct {
	name      string
	http      *http.Client
	patience  time.Duration
	firstWait time.Duration
	pollWait  time.Duration
	log       *slog.Logger
	tell      func(line string)
	retries   atomic.Int64
	empty     atomic.Int64 // answers that there was nothing to forget
	hide      *strings.Replacer
}

func newClient(name string, secrets []string, o Options) *client {
	c := &client{name: name, hide: hiding(secrets), patience: o.Patience, firstWait: o.firstWait, pollWait: o.pollWait, log: o.Log, tell: o.Tell}
	c.http = &http.Client{
		Transport: http.DefaultTransport,
		// Another method, or our token, is not for another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if c.firstWait == 0 {
		c.firstWait = firstWait
	}
	if c.pollWait == 0 {
		c.pollWait = pollWait
	}
	return c
}

// A statusError is an answer that says no.
type statusError struct {
	status int
	word   string // the beginning of the answer
	after  error  // a backoff.RetryAfterError if the server says when to try again
}

func (e *statusError) Error() string {
	text := fmt.Sprintf("the answer is %d %s", e.status, http.StatusText(e.status))
	if e.word != "" {
		text += ": " + e.word
	}
	if e.status == http.StatusUnauthorized || e.status == http.StatusForbidden {
		text += " (check the credentials, and what they permit)"
	}
	return text
}

func (e *statusError) Unwrap() error { return e.after }

// do makes a request until an attempt succeeds, and gives the body of the answer. Each
// attempt has a request of its own: a signature has a time.
func (c *client) do(ctx context.Context, verdicts judge, request func(context.Context) (*http.Request, error)) ([]byte, error) {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval, wait.Multiplier = c.firstWait, longestWait, 2
	tried := false
	answer, err := backoff.Retry(ctx, func() ([]byte, error) {
		answer, again, err := c.attempt(ctx, verdicts, request)
		tried = again
		if err != nil && !again {
			err = backoff.Permanent(err)
		}
		return answer, err
	}, backoff.WithBackOff(wait), backoff.WithMaxElapsedTime(c.patience), backoff.WithNotify(func(err error, next time.Duration) {
		level := slog.LevelInfo
		if c.retries.Add(1) == 1 { // the first one tells a person why nothing moves
			level = slog.LevelWarn
		}
		c.log.Log(ctx, level, "trying again", "purge", c.name, "after", next.Round(time.Millisecond), "error", err)
	}))
	if err != nil && tried && ctx.Err() == nil {
		err = fmt.Errorf("%w (tried for %s)", err, c.patience)
	}
	return answer, err
}

// attempt makes a request once; again is whether an error may go away.
func (c *client) attempt(ctx context.Context, verdicts judge, request func(context.Context) (*http.Request, error)) (answer []byte, again bool, err error) {
	limited, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	r, err := request(limited)
	if err != nil {
		return nil, false, withoutURL(err)
	}
	response, err := c.http.Do(r)
	if err != nil {
		return nil, ctx.Err() == nil, withoutURL(err)
	}
	answer, err = io.ReadAll(io.LimitReader(response.Body, largestBody))
	err = errors.Join(err, response.Body.Close())
	c.log.Debug("request", "purge", c.name, "method", r.Method, "status", response.StatusCode)
	if err != nil {
		return nil, ctx.Err() == nil, err
	}
	status, said := response.StatusCode, byStatus
	if verdicts != nil {
		said = verdicts.judge(status, answer)
	}
	if said == nothing {
		c.empty.Add(1)
	}
	if said == good || said == nothing || said == byStatus && status/100 == 2 {
		return answer, false, nil
	}
	again = said == tryAgain || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout || status >= http.StatusInternalServerError &&
		status != http.StatusNotImplemented
	return nil, again, &statusError{status, c.word(answer), retryAfter(response.Header)}
}

// withoutURL keeps what went wrong: the URL may be a template that somebody put a
// secret into.
func withoutURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// retryAfter reads the header, in seconds or as a time.
func retryAfter(h http.Header) error {
	text := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil && seconds >= 0 {
		return backoff.RetryAfter(seconds)
	}
	if at, err := http.ParseTime(text); err == nil {
		return &backoff.RetryAfterError{Duration: max(0, time.Until(at))}
	}
	return nil
}

// word is the beginning of an answer, in one line. Servers like to say what they were
// asked for: our secrets are taken out.
func (c *client) word(answer []byte) string {
	text := c.hide.Replace(string(answer))
	return strings.Join(strings.Fields(strings.ToValidUTF8(text[:min(len(text), largestWord)], "")), " ")
}

// shortestSecret keeps the words of a URL like /purge?all=1 readable.
const shortestSecret = 6

// hiding takes secrets out of a text.
func hiding(secrets []string) *strings.Replacer {
	// Where two of them match, the first does: one may begin another.
	secrets = slices.SortedFunc(slices.Values(secrets), func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var pairs []string
	for _, s := range secrets {
		if len(s) >= shortestSecret {
			pairs = append(pairs, s, "[hidden]")
		}
	}
	return strings.NewReplacer(pairs...)
}

// secretsIn are the parts of a URL, or of a template, that may be secret: all but the
// server's name.
func secretsIn(template string) []string {
	u, err := url.Parse(strings.NewReplacer(urlPlace, "", pathPlace, "").Replace(template))
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

// percent is a byte of a URL, whose digits may be of either case.
var percent = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// echoes are the ways in which a server may repeat a part of a URL.
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
