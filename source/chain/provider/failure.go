package provider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/plain"
	"github.com/followpress/followpress/internal/secret"
)

// A kind of failure determines what to do about it.
type kind int

const (
	passing kind = iota // retry
	slow                // retry, perhaps with a smaller question: no answer in time, or an incomplete one
	limited             // too many requests, or too fast
	refused             // the URL answers nothing, for example because of a wrong key
	spent               // like refused until tomorrow: the quota of a day or a plan is used up
	asked               // the node cannot answer this question, for example because its range is too large
	behind              // the node does not have a block: not yet, or no longer
	fatal               // ask no URL any more: one of them is of another chain
)

// A failure is the reason for a missing answer.
type failure struct {
	kind  kind
	host  string        // may be empty
	after time.Duration // wait that the node asks for; negative for none
	err   error
}

func (f *failure) Error() string {
	if f.host == "" {
		return f.err.Error()
	}
	return f.host + ": " + f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

func fail(k kind, err error) *failure { return &failure{kind: k, after: -1, err: err} }

func kindOf(err error) kind {
	var f *failure
	if errors.As(err, &f) {
		return f.kind
	}
	return passing
}

// IsOtherChain reports whether err means that a URL belongs to another chain.
func IsOtherChain(err error) bool { return kindOf(err) == fatal }

// maxQuote limits the bytes of an answer quoted in an error.
const maxQuote = 200

// failedStatus returns the failure for an answer whose status is not 2xx. hide replaces secrets
// before the quote is cut.
func failedStatus(r *http.Response, hide *secret.Hider) *failure {
	// Some nodes send JSON-RPC errors with an error status.
	f, body := readError(r.Body, hide)
	if f != nil {
		f.err = fmt.Errorf("status %d, %w", r.StatusCode, f.err)
	} else {
		f = fail(passing, fmt.Errorf("status %d: %s", r.StatusCode, quote(hide.Replace(string(body)))))
	}
	switch status := r.StatusCode; status {
	case http.StatusTooManyRequests:
		f.kind = limited
		if spentWords.Match(body) {
			f.kind = spent
		}
	case http.StatusPaymentRequired:
		if f.kind != asked || !sizeWords.Match(body) {
			f.kind = spent
		}
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		if f.kind == passing || f.kind == asked && !sizeWords.Match(body) {
			f.kind, f.err = refused, fmt.Errorf("%w (check the URL and its key)", f.err)
		}
	case http.StatusRequestTimeout:
		if f.kind != asked { // providers report too large ranges by JSON-RPC errors
			f.kind = slow
		}
	case http.StatusGatewayTimeout, statusTimeout:
		f.kind = slow
	default:
		if f.kind == passing && status/100 == 3 {
			f.kind = refused
		} else if f.kind == passing && status/100 == 4 {
			f.kind = asked
		}
	}
	f.after = retryAfter(r.Header)
	return f
}

// readError decodes a JSON-RPC error, alone or as the first of a batch. f is nil if the answer is
// neither.
func readError(from io.Reader, hide *secret.Hider) (f *failure, body []byte) {
	body, _ = io.ReadAll(io.LimitReader(from, 64<<10)) // the part received may suffice
	type answer struct {
		Error *struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	all := make([]answer, 1)
	err := json.Unmarshal(body, &all[0])
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte{'['}) {
		err = json.Unmarshal(body, &all)
	}
	if err == nil && len(all) > 0 && all[0].Error != nil && all[0].Error.Code != 0 {
		f = failedCall(all[0].Error.Code, hide.Replace(all[0].Error.Message))
	}
	return f, body
}

// statusTimeout is Cloudflare's status for a server timeout.
const statusTimeout = 524

// retryAfter parses the header Retry-After, in seconds or as a time; negative for none.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds >= 0 && seconds < 1e6 {
		return time.Duration(seconds * float64(time.Second))
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return -1
	}
	now, err := http.ParseTime(h.Get("Date")) // by the same clock
	if err != nil {
		now = time.Now()
	}
	return max(0, at.Sub(now))
}

// classify converts an error of a request to a failure. ctx is that of the question, without the
// time limit of the request; for hide, see failedStatus.
func classify(ctx context.Context, err error, hide *secret.Hider) error {
	var f *failure
	var called *calledError
	var value *valueError
	var of *url.Error
	told := err
	if errors.As(err, &of) {
		told = of.Err // its URL may contain a key
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &f):
		return f
	case errors.As(err, &called):
		return failedCall(called.code, hide.Replace(called.text))
	case errors.Is(err, context.DeadlineExceeded):
		return fail(slow, errors.New("no answer in time"))
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, errMissing), errors.Is(err, errCut):
		return fail(slow, fmt.Errorf("the answer is cut off: %s", quote(hide.Replace(told.Error()))))
	}
	if errors.As(err, &value) {
		return fail(asked, &valueError{errors.New(quote(hide.Replace(told.Error())))})
	}
	if dns := (*net.DNSError)(nil); errors.As(err, &dns) && dns.IsNotFound {
		return fail(passing, errors.New(quote(hide.Replace(told.Error()))+": check --rpc, or the machine's DNS"))
	}
	return fail(passing, errors.New(quote(hide.Replace(told.Error()))))
}

func failedCall(code int, text string) *failure {
	err := fmt.Errorf("error %d: %s", code, quote(text))
	switch {
	case spentWords.MatchString(text):
		return fail(spent, err)
	case isRateLimit(code, text):
		return fail(limited, err)
	case code == codePruned || prunedWords.MatchString(text):
		return fail(behind, err)
	case behindWords.MatchString(text):
		return fail(behind, fmt.Errorf("%w: %w", err, ErrBehind))
	}
	return fail(asked, err)
}

// codePruned is the error code for old blocks that a node has deleted.
const codePruned = 4444

// Codes that providers use for rate limits only.
var rateCodes = map[int]bool{429: true, -32007: true, -32016: true, -32029: true, -32090: true, -32097: true}

var (
	rateWords  = regexp.MustCompile(`(?i)rate.?limit|over rate|too many (concurrent )?req|request (rate|count|limit)|requests? per |/ ?sec|capacity|throughput|compute units|quota|credits`)
	spentWords = regexp.MustCompile(`(?i)\b(daily|monthly)\b.*\b(limit|count|quota|cap|capacity|exceeded)\b|\bper (day|month)\b|` +
		`\b(credits?|quota|balance|plan)\b.*\b(exhausted|used up|depleted|expired)\b|\b(out of|insufficient|no more) (\w+ )?(credits?|quota|balance)\b`)
	behindWords = regexp.MustCompile(`(?i)beyond.*\bhead\b|(header|block) not found|unknown block|cannot be found|greater than (the )?latest|after last accepted`)
	prunedWords = regexp.MustCompile(`(?i)history.*(pruned|unavailable)|pruned history|has been pruned`)
	// Some messages contain words of the other kind, such as "limited to 1024 blocks per request".
	sizeWords = regexp.MustCompile(`(?i)block.?range|range (is )?(too|exceed)|results|response size|size exceeded|blocks? (range )?(per|is|are|limit)|cap of`)
)

// isRateLimit reports whether an error is about the number of requests rather than the question.
// Providers distinguish these only in prose; code -32005, for example, stands for both.
func isRateLimit(code int, text string) bool {
	return !sizeWords.MatchString(text) && (rateCodes[code] || rateWords.MatchString(text))
}

// quote returns the beginning of a node's text as one line that is safe for a terminal.
func quote[T string | []byte](from T) string {
	return plain.Line(strings.ToValidUTF8(string(from[:min(len(from), maxQuote)]), ""))
}

// hiding returns a Hider for the parts of a URL that may be secret, since nodes often repeat them.
func hiding(u *url.URL) *secret.Hider {
	h := &secret.Hider{}
	h.UseURL(u.String())
	return h
}
