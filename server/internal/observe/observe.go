// Package observe does what every request needs: headers, a limit of concurrent requests, a request
// ID, recovery from panics, metrics and the log.
package observe

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

	"github.com/followpress/followpress/server/internal/gate"
	"github.com/followpress/followpress/server/internal/metrics"
	"github.com/followpress/followpress/server/internal/reply"
	"github.com/followpress/followpress/site"
)

// An Observer observes the requests of successive handlers. It is safe for concurrent use.
type Observer struct {
	Requests *gate.Gate // requests being answered
	Metrics  *metrics.Metrics
	Replies  reply.Writer
	Log      *slog.Logger
}

// An Outcome collects the facts about a request for the metrics and the log.
type Outcome struct {
	Begun  time.Time
	Route  *site.Route // nil if no route matched
	Status int

	id     []string // request ID, as a header value
	counts bool     // counts against the limit of concurrent requests
	made   func()   // called once the answer is made; may be nil
}

// StatusClientGone is the status that nginx logs when the client has closed the connection. It is
// counted, never sent.
const StatusClientGone = 499

// Observe answers a request by calling respond, which records the route and the status. It calls
// made once the answer is made and before it is sent; made may be nil.
func (o *Observer) Observe(w http.ResponseWriter, r *http.Request, made func(), respond func(http.ResponseWriter, *http.Request, *Outcome)) {
	seen := Outcome{Begun: time.Now(), Status: http.StatusInternalServerError, id: requestID(r), made: made} // the status of a panic
	reply.SetHeaders(w.Header())
	w.Header()[headerRequestID] = seen.id
	defer o.finish(w, r, &seen)
	if seen.counts = o.Requests.TryTake(1); !seen.counts {
		seen.Status = o.Replies.Write(reply.Problem(site.Unavailable), w, r)
		return
	}
	respond(w, r, &seen)
}

// Context returns ctx with the request ID.
func (seen *Outcome) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, requestIDKey{}, seen.id[0])
}

// Rendered marks the answer as ready to send. A slow reader then no longer keeps other requests
// out.
func (o *Observer) Rendered(seen *Outcome) {
	if seen.counts {
		seen.counts = false
		o.Requests.Give(1)
	}
	if made := seen.made; made != nil {
		seen.made = nil
		made()
	}
}

// finish counts and logs a request. The caller defers it, so that it can recover from a panic.
func (o *Observer) finish(w http.ResponseWriter, r *http.Request, seen *Outcome) {
	if fault := recover(); fault != nil {
		o.recover(w, r, seen, fault)
	}
	o.Rendered(seen)
	took := time.Since(seen.Begun)
	o.Metrics.Answered(seen.Route, seen.Status, took)
	if ctx := r.Context(); o.Log.Enabled(ctx, slog.LevelDebug) {
		o.Logger(seen.Context(ctx)).Debug("request", "method", r.Method, "path", r.URL.Path, "query", r.URL.RawQuery, "status", seen.Status, "took", took)
	}
}

// recover answers a request that panicked, so that the process keeps serving others.
func (o *Observer) recover(w http.ResponseWriter, r *http.Request, seen *Outcome, fault any) {
	if err, ok := fault.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(fault) // net/http ends the connection
	}
	ctx := seen.Context(r.Context())
	o.Logger(ctx).Error("panic", "method", r.Method, "path", r.URL.Path, "fault", fault, "stack", string(debug.Stack()))
	o.Replies.Write(reply.Problem(site.InternalError), w, r)
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

// Logger returns a logger that adds the request ID in ctx.
func (o *Observer) Logger(ctx context.Context) *slog.Logger {
	if id, ok := ctx.Value(requestIDKey{}).(string); ok {
		return o.Log.With("request_id", id)
	}
	return o.Log
}
