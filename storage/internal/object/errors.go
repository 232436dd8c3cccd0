package object

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/followpress/followpress/site"
)

// Errors for callers to tell apart. After any other error, the request may have had an effect.
var (
	ErrNotFound    = site.ErrNotFound
	ErrCondition   = errors.New("the object is not what the condition names")
	ErrUnsupported = errors.New("the server does not support this")
	ErrDamaged     = errors.New("the bytes do not have the MD5 that the manifest names")
	ErrTooLarge    = errors.New("the object is too large")
	ErrNoBucket    = errors.New("no such bucket")
	// ErrForbidden is what a site that is online says of some objects: buckets, of those that do not exist.
	ErrForbidden = errors.New("a bucket that nobody may list does not tell what is absent")
)

// Temporary reports whether an error is retryable: the network failed, or the server was busy.
func Temporary(err error) bool {
	var t *TemporaryError
	var u *UnansweredError
	return errors.As(err, &t) || errors.As(err, &u) && !errors.Is(err, context.Canceled)
}

// Unanswered reports whether a failed request may still take effect, now or later. That includes
// the end of a context, because the request may have been sent before.
func Unanswered(err error) bool {
	var u *UnansweredError
	return errors.As(err, &u) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// An UnansweredError is an error for which Unanswered holds.
type UnansweredError struct{ Err error }

func (u *UnansweredError) Error() string { return u.Err.Error() }
func (u *UnansweredError) Unwrap() error { return u.Err }

// A TemporaryError marks an error as retryable.
type TemporaryError struct{ Err error }

func (t *TemporaryError) Error() string { return t.Err.Error() }
func (t *TemporaryError) Unwrap() error { return t.Err }

// UnknownHost is the host that DNS does not know, if that is the error.
func UnknownHost(err error) string {
	var dns *net.DNSError
	if errors.As(err, &dns) && dns.IsNotFound {
		return dns.Name
	}
	return ""
}

// IsNetworkError reports whether the network failed, so that the same request may succeed later.
func IsNetworkError(err error) bool {
	var address *net.AddrError // what was asked for is no address
	switch {
	case UnknownHost(err) != "", errors.As(err, &address):
		return false
	case errors.Is(err, context.Canceled):
		return false
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		return true
	}
	var operation *net.OpError
	var network net.Error
	if errors.As(err, &operation) || errors.As(err, &network) && network.Timeout() {
		return true
	}
	// net/http has no error types for answers that end within their headers, and the library
	// replaces an unexpected end of file by a text.
	return strings.Contains(err.Error(), "transport connection broken") || strings.Contains(err.Error(), "malformed HTTP") ||
		strings.Contains(err.Error(), "server closed idle connection") || strings.Contains(err.Error(), "Connection closed by foreign host")
}
