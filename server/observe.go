package server

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/followpress/followpress/site"
)

// An outcome collects the facts about a request for the metrics and the log.
type outcome struct {
	begun  time.Time
	id     []string    // request ID, as a header value
	route  *site.Route // nil if no route matched
	status int
	counts bool   // counts against the limit of concurrent requests
	made   func() // called once the answer is made; may be nil
}

// context returns ctx with the request ID.
func (o *outcome) context(ctx context.Context) context.Context {
	return context.WithValue(ctx, requestIDKey{}, o.id[0])
}

// statusClientGone is the status that nginx logs when the client has closed the connection. It is
// counted, never sent.
const statusClientGone = 499

// ServeHTTP answers one request. It sets the headers that every answer has, limits concurrent
// requests, turns a panic into a 500, and counts and logs the outcome; respond does the rest.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.Answer(w, r, nil) }

// Answer is ServeHTTP, but calls made once the answer is made and before it is sent: from then on
// the request no longer needs the store, however slowly its client reads. made may be nil.
func (h *Handler) Answer(w http.ResponseWriter, r *http.Request, made func()) {
	h.observe(w, r, made, h.respond)
}

// observe answers a request by calling respond, and does what every request needs.
func (s *shared) observe(w http.ResponseWriter, r *http.Request, made func(), respond func(http.ResponseWriter, *http.Request, *outcome)) {
	seen := outcome{begun: time.Now(), id: requestID(r), status: http.StatusInternalServerError, made: made} // the status of a panic
	header := w.Header()
	for _, every := range everyAnswer {
		header[every.name] = every.values
	}
	header[headerRequestID] = seen.id
	defer s.finish(w, r, &seen)
	if seen.counts = s.gates.requests.TryTake(1); !seen.counts {
		seen.status = s.write(problem(site.Unavailable), w, r)
		return
	}
	respond(w, r, &seen)
}

// rendered marks the answer as ready to send. A slow reader then no longer keeps other requests
// out.
func (s *shared) rendered(seen *outcome) {
	if seen.counts {
		seen.counts = false
		s.gates.requests.Give(1)
	}
	if made := seen.made; made != nil {
		seen.made = nil
		made()
	}
}

// finish counts and logs a request. The caller defers it, so that it can recover from a panic.
func (s *shared) finish(w http.ResponseWriter, r *http.Request, seen *outcome) {
	if fault := recover(); fault != nil {
		s.recover(w, r, seen, fault)
	}
	s.rendered(seen)
	took := time.Since(seen.begun)
	s.metrics.answered(seen.route, seen.status, took)
	if ctx := r.Context(); s.log.Enabled(ctx, slog.LevelDebug) {
		s.logger(seen.context(ctx)).Debug("request", "method", r.Method, "path", r.URL.Path, "query", r.URL.RawQuery, "status", seen.status, "took", took)
	}
}

// recover answers a request that panicked, so that the process keeps serving others.
func (s *shared) recover(w http.ResponseWriter, r *http.Request, seen *outcome, fault any) {
	if err, ok := fault.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(fault) // net/http ends the connection
	}
	ctx := seen.context(r.Context())
	s.logger(ctx).Error("panic", "method", r.Method, "path", r.URL.Path, "fault", fault, "stack", string(debug.Stack()))
	s.write(problem(site.InternalError), w, r)
}

// headerRequestID identifies a request in the logs of this handler and of proxies.
const headerRequestID = "X-Request-Id"

type requestIDKey struct{}

// maxRequestID is the longest accepted ID from a client, in bytes.
const maxRequestID = 64

// requestID returns the client's request ID as a header value, or a new ID if the client sent none
// that is safe to log.
func requestID(r *http.Request) []string {
	if sent := r.Header[headerRequestID]; len(sent) == 1 && plainID(sent[0]) {
		return sent
	}
	return []string{strconv.FormatUint(rand.Uint64()|1<<63, 16)} // 16 hex digits
}

func plainID(id string) bool {
	return id != "" && len(id) <= maxRequestID && !strings.ContainsFunc(id, func(r rune) bool {
		letterOrDigit := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !letterOrDigit && !strings.ContainsRune("-_.:/=+", r)
	})
}

// logger returns a logger that adds the request ID in ctx.
func (s *shared) logger(ctx context.Context) *slog.Logger {
	if id, ok := ctx.Value(requestIDKey{}).(string); ok {
		return s.log.With("request_id", id)
	}
	return s.log
}
