package s3

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// fence makes connections send no byte of a request after its context has ended. Without it, net/http hands a request
// to another goroutine before writing it, and continues a body until it notices the end. After a process was
// suspended, that is too late.
func fence(t *http.Transport) http.RoundTripper {
	dial := t.DialContext
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &fencedConn{Conn: c}, nil
	}
	return fenced{t}
}

type fenced struct{ transport *http.Transport }

func (f fenced) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	response, err := f.transport.RoundTrip(r.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			c := info.Conn
			for { // HTTPS through an HTTPS proxy is TLS inside TLS
				secure, ok := c.(interface{ NetConn() net.Conn })
				if !ok {
					break
				}
				c = secure.NetConn()
			}
			if c, ok := c.(*fencedConn); ok {
				c.request.Store(&ctx)
			}
		},
	})))
	// A refused write closes the connection, and the transport may report that instead.
	if ended := ctx.Err(); err != nil && ended != nil && !errors.Is(err, ended) {
		err = fmt.Errorf("%w: %w", ended, err)
	}
	return response, err
}

// A fencedConn carries one request at a time, because the transport speaks HTTP/1.1.
type fencedConn struct {
	net.Conn
	request atomic.Pointer[context.Context] // context of the current request
}

// Write checks the context right before the system call.
func (c *fencedConn) Write(p []byte) (int, error) {
	if ctx := c.request.Load(); ctx != nil {
		if err := (*ctx).Err(); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(p)
}
