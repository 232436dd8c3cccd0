package server

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
)

// headerRequestID ties the lines of a log to a request, here and at whoever sent it on.
const headerRequestID = "X-Request-Id"

type requestIDKey struct{}

// maxRequestID bounds what is taken over from a client.
const maxRequestID = 64

// requestID is the request's ID, or a new one where it has none that can be logged.
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

// logger is the log of the request that a context belongs to.
func (h *Handler) logger(ctx context.Context) *slog.Logger {
	if id, ok := ctx.Value(requestIDKey{}).(string); ok {
		return h.log.With("request_id", id)
	}
	return h.log
}
