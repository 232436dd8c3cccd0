package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"

	"github.com/followpress/followpress/server/internal/listen"
)

// WriteTimeout is how long clients have to take an answer.
const WriteTimeout = listen.WriteTimeout

// Serve answers requests on a listener until ctx ends. Then it closes the listener and gives the
// requests in flight 10 seconds to finish. It returns nil after that, and an error only if
// the listener or the shutdown fails. Serve logs misbehaving clients to log at debug level.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, log *slog.Logger) error {
	return listen.Serve(ctx, listener, handler, log, listen.Limits{})
}

// Probes returns a handler that also answers health checks: /healthz with 200 while the process
// runs, /readyz with 200, or with 503 and the reason that notReady returns.
func Probes(next http.Handler, notReady func() error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/healthz":
			probe(w, r, nil)
		case "/readyz":
			probe(w, r, notReady())
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func probe(w http.ResponseWriter, r *http.Request, fault error) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	text, status := "ok", http.StatusOK
	if fault != nil {
		text, status = fault.Error(), http.StatusServiceUnavailable
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(text + "\n")) // an error means that the client is gone
	}
}

var errNotReady = errors.New("not ready")

// Probes returns the handler with health checks, as the function Probes does.
func (h *Handler) Probes() http.Handler {
	return Probes(h, func() error {
		if h.Ready() {
			return nil
		}
		return errNotReady
	})
}
