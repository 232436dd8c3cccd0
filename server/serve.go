package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Limits are those of connections. A request is a line and a few headers; whoever
// needs longer for them than this, or never reads the answer, is let go. The zero
// value of a field means its default.
type Limits struct {
	HeaderTimeout  time.Duration // to send the request line and headers; 5 s
	RequestTimeout time.Duration // to send the whole request; 10 s
	WriteTimeout   time.Duration // from the end of the headers until the answer was taken; 30 s
	IdleTimeout    time.Duration // between the requests of a connection; 2 min
	DrainTimeout   time.Duration // for requests under way when Serve has to end; 10 s
	HeaderBytes    int           // of a request, its line included, more than LeastHeaderBytes; 16 KiB
}

func (l Limits) withDefaults() Limits {
	l.HeaderTimeout = cmp.Or(l.HeaderTimeout, 5*time.Second)
	l.RequestTimeout = cmp.Or(l.RequestTimeout, 10*time.Second)
	l.WriteTimeout = cmp.Or(l.WriteTimeout, 30*time.Second)
	l.IdleTimeout = cmp.Or(l.IdleTimeout, 2*time.Minute)
	l.DrainTimeout = cmp.Or(l.DrainTimeout, 10*time.Second)
	l.HeaderBytes = cmp.Or(l.HeaderBytes, 16<<10)
	return l
}

// Serve answers requests on a listener until the context ends; then it lets those
// under way finish, for a while.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, log *slog.Logger, l Limits) error {
	l = l.withDefaults()
	s := &http.Server{
		Handler:           endAfterBody(handler),
		ReadHeaderTimeout: l.HeaderTimeout,
		ReadTimeout:       l.RequestTimeout,
		WriteTimeout:      l.WriteTimeout,
		IdleTimeout:       l.IdleTimeout,
		MaxHeaderBytes:    max(1, l.HeaderBytes-LeastHeaderBytes),
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug), // clients that misbehave
	}
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.DrainTimeout)
	defer cancel()
	err := s.Shutdown(drain)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.Close()
	}
	if err := errors.Join(err, ignoreClosed(<-failed)); err != nil {
		return fmt.Errorf("stop serving: %w", err)
	}
	return nil
}

// LeastHeaderBytes is less than Limits.HeaderBytes can be: what net/http reads beyond
// its own limit before it refuses.
const LeastHeaderBytes = 4096

// endAfterBody closes the connection after a request that has a body, which no
// request of the API has, or is of HTTP/1.0. Where such a request ends is what a
// server in front may see otherwise than net/http, which takes a Content-Length
// beside chunks, and a Transfer-Encoding in HTTP/1.0, without a word: what one takes
// for a body must never be answered as the next request (RFC 9112, 6.1 and 11.2).
// Nor does the answer wait for a body.
func endAfterBody(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 || !r.ProtoAtLeast(1, 1) {
			w.Header().Set("Connection", "close")
		}
		handler.ServeHTTP(w, r)
	})
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Probes adds what those who run a server ask: /healthz, whether it runs, and
// /readyz, whether requests should be sent to it.
func (h *Handler) Probes() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/healthz":
			probe(w, r, true)
		case "/readyz":
			probe(w, r, h.Ready())
		default:
			h.ServeHTTP(w, r)
		}
	})
}

func probe(w http.ResponseWriter, r *http.Request, good bool) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	text, status := "ok\n", http.StatusOK
	if !good {
		text, status = "not ready\n", http.StatusServiceUnavailable
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(text)) // whoever asked may be gone
	}
}
