// Package listen serves a handler on a listener, with limits for clients.
package listen

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

// Limits bound the time and size of connections. Slower clients are disconnected. Each field's
// comment ends with its default, used for the zero value.
type Limits struct {
	HeaderTimeout  time.Duration // until the request line and headers have arrived; 5 s
	RequestTimeout time.Duration // until the whole request has arrived; 10 s
	WriteTimeout   time.Duration // from the end of the headers until the answer is sent; 30 s
	IdleTimeout    time.Duration // between two requests of a connection; 2 min
	DrainTimeout   time.Duration // for requests in flight when Serve ends; 10 s
	HeaderBytes    int           // limit for request line and headers, more than leastHeaderBytes; 16 KiB
}

// WriteTimeout is how long clients have to take an answer.
const WriteTimeout = 30 * time.Second

func (l Limits) withDefaults() Limits {
	l.HeaderTimeout = cmp.Or(l.HeaderTimeout, 5*time.Second)
	l.RequestTimeout = cmp.Or(l.RequestTimeout, 10*time.Second)
	l.WriteTimeout = cmp.Or(l.WriteTimeout, WriteTimeout)
	l.IdleTimeout = cmp.Or(l.IdleTimeout, 2*time.Minute)
	l.DrainTimeout = cmp.Or(l.DrainTimeout, 10*time.Second)
	l.HeaderBytes = cmp.Or(l.HeaderBytes, 16<<10)
	return l
}

// Serve answers requests on a listener until ctx ends. Then it closes the listener and gives the
// requests in flight DrainTimeout to finish. It returns nil after that, and an error only if the
// listener or the shutdown fails. It logs misbehaving clients to log at debug level.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, log *slog.Logger, l Limits) error {
	l = l.withDefaults()
	s := &http.Server{
		Handler:           endAfterBody(handler),
		ReadHeaderTimeout: l.HeaderTimeout,
		ReadTimeout:       l.RequestTimeout,
		WriteTimeout:      l.WriteTimeout,
		IdleTimeout:       l.IdleTimeout,
		MaxHeaderBytes:    max(1, l.HeaderBytes-leastHeaderBytes),
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug), // misbehaving clients
	}
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(problemListener{listener}) }()
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
	if served := <-failed; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	if err != nil {
		return fmt.Errorf("stop serving: %w", err)
	}
	return nil
}

// leastHeaderBytes is the number of bytes that net/http reads beyond its own limit before it
// rejects a request. Limits.HeaderBytes must be larger.
const leastHeaderBytes = 4096

// endAfterBody prevents request smuggling (RFC 9112, sections 6.1 and 11.2). It closes the
// connection after a request that has a body or uses HTTP/1.0, unless the handler has read a body
// with an unambiguous end (GoOn). net/http accepts Content-Length together with chunks, and
// Transfer-Encoding in HTTP/1.0, so a proxy may disagree about where the request ends. Bytes
// that a proxy takes for a body must never be answered as the next request.
func endAfterBody(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 || !r.ProtoAtLeast(1, 1) {
			w.Header().Set("Connection", "close")
		}
		handler.ServeHTTP(w, r)
	})
}

// GoOn keeps the connection open after a body that was read completely and has only a
// Content-Length: all servers agree about its end.
func GoOn(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength > 0 && r.ProtoAtLeast(1, 1) {
		w.Header().Del("Connection")
	}
}
