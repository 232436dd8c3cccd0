package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Limits of a connection. A request is a line and a few headers; whoever needs
// longer for them than this, or never reads the answer, is let go.
const (
	headerTimeout  = 5 * time.Second
	requestTimeout = 10 * time.Second
	answerTimeout  = 30 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 16 << 10
	drainTimeout   = 10 * time.Second
)

// Serve answers requests on a listener until the context ends; then it lets those
// under way finish, for a while.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, log *slog.Logger) error {
	s := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       requestTimeout,
		WriteTimeout:      answerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug), // clients that misbehave
	}
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
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

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
