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

// Errors that callers distinguish. After any other error, the request may have taken effect.
var (
	ErrNotFound    = site.ErrNotFound
	ErrCondition   = errors.New("the object has changed")
	ErrUnsupported = errors.New("the server does not support this")
	ErrDamaged     = errors.New("the content does not match its MD5")
	ErrTooLarge    = errors.New("the object is too large")
	ErrNoBucket    = errors.New("no such bucket")
	// ErrForbidden means 403. Buckets that do not allow listing answer so for missing objects.
	ErrForbidden = errors.New("the object is missing, or the bucket forbids access")
)

// Temporary reports whether an error is retryable: the network failed, or the server was busy.
func Temporary(err error) bool {
	var t *TemporaryError
	var u *UnansweredError
	return errors.As(err, &t) || errors.As(err, &u) && !errors.Is(err, context.Canceled)
}

// Unanswered reports whether a failed request may still take effect, now or later. That includes the end of a
// context, because the request may already have been sent.
func Unanswered(err error) bool {
	var u *UnansweredError
	return errors.As(err, &u) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// An UnansweredError marks an error for which Unanswered holds.
type UnansweredError struct{ Err error }

func (u *UnansweredError) Error() string { return u.Err.Error() }
func (u *UnansweredError) Unwrap() error { return u.Err }

// A TemporaryError marks an error as retryable.
type TemporaryError struct{ Err error }

func (t *TemporaryError) Error() string { return t.Err.Error() }
func (t *TemporaryError) Unwrap() error { return t.Err }

// UnknownHost returns the host that DNS does not know, if that is the error, else "".
func UnknownHost(err error) string {
	var dns *net.DNSError
	if errors.As(err, &dns) && dns.IsNotFound {
		return dns.Name
	}
	return ""
}

// IsNetworkError reports whether err is a network failure, so that a retry may succeed.
func IsNetworkError(err error) bool {
	var address *net.AddrError // not a valid address
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
	// net/http has no error types for truncated response headers, and minio-go replaces an unexpected EOF by text.
	return strings.Contains(err.Error(), "transport connection broken") || strings.Contains(err.Error(), "malformed HTTP") ||
		strings.Contains(err.Error(), "server closed idle connection") || strings.Contains(err.Error(), "Connection closed by foreign host")
}
