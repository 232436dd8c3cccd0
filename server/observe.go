package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/followpress/followpress/site"
)

// An outcome is what the metrics and the log tell about a request.
type outcome struct {
	route  *site.Route // nil if the request has none
	status int
}

// statusClientGone is what nginx logs for a client that did not wait. It is counted, not sent.
const statusClientGone = 499

// ServeHTTP answers one request. It sets the headers that every answer has, bounds the requests
// that are answered at the same time, turns a panic into a 500, and counts and logs the outcome;
// respond does the rest.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begun := time.Now()
	id := requestID(r)
	ctx := context.WithValue(r.Context(), requestIDKey{}, id)
	header := w.Header()
	maps.Copy(header, everyAnswer)
	header[headerRequestID] = []string{id}

	seen := outcome{status: http.StatusInternalServerError} // of a panic
	defer func() {
		if fault := recover(); fault != nil {
			h.recover(ctx, w, r, fault)
		}
		took := time.Since(begun)
		h.metrics.answered(seen.route, seen.status, took)
		if h.log.Enabled(ctx, slog.LevelDebug) {
			h.logger(ctx).Debug("request", "method", r.Method, "path", r.URL.Path, "query", r.URL.RawQuery, "status", seen.status, "took", took)
		}
	}()
	if h.answering.Add(1) > h.maxRequests {
		h.answering.Add(-1) // before the 503 goes out, which a slow client may take its time to read
		seen.status = problem(site.Unavailable).write(w, r)
		return
	}
	defer h.answering.Add(-1)
	h.respond(ctx, w, r, &seen)
}

// recover answers a request that panicked, so that the others are answered too.
func (h *Handler) recover(ctx context.Context, w http.ResponseWriter, r *http.Request, fault any) {
	if err, ok := fault.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(fault) // how net/http ends a connection
	}
	h.logger(ctx).Error("panic", "method", r.Method, "path", r.URL.Path, "fault", fault, "stack", string(debug.Stack()))
	problem(site.InternalError).write(w, r)
}

// headerRequestID identifies a request in the logs of the handler and of servers before it.
const headerRequestID = "X-Request-Id"

type requestIDKey struct{}

// maxRequestID is the longest ID that is accepted from a client, in bytes.
const maxRequestID = 64

// requestID is the ID that the client sent, or a new one if it sent none that can be logged.
func requestID(r *http.Request) string {
	if sent := r.Header[headerRequestID]; len(sent) == 1 && plainID(sent[0]) {
		return sent[0]
	}
	return fmt.Sprintf("%016x", rand.Uint64())
}

func plainID(id string) bool {
	return id != "" && len(id) <= maxRequestID && !strings.ContainsFunc(id, func(r rune) bool {
		letterOrDigit := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !letterOrDigit && !strings.ContainsRune("-_.:/=+", r)
	})
}

// logger adds the ID of the request that ctx belongs to.
func (h *Handler) logger(ctx context.Context) *slog.Logger {
	if id, ok := ctx.Value(requestIDKey{}).(string); ok {
		return h.log.With("request_id", id)
	}
	return h.log
}
