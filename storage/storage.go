// Package storage reads and writes sites: in a folder, a tar file, an S3-compatible bucket, or a
// local folder with the semantics of a bucket (Local).
//
// Callers describe the methods that they need in interfaces of their own. All methods of all types
// may be called from many goroutines, unless their comments say otherwise. S3 does not retry:
// Temporary tells callers which errors are retryable, and Unanswered after which ones a request may
// still take effect.
//
// The API may change until version 1.
package storage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/followpress/followpress/site"
)

// Errors for callers to tell apart. After any other error, the request may have had an effect.
var (
	// ErrNotFound says that no object has the key. It is that of package site.
	ErrNotFound = site.ErrNotFound
	// ErrCondition says that the condition of a Put did not hold; nothing was written.
	ErrCondition = errors.New("the object is not what the condition names")
	// ErrUnsupported says that the server does not support this kind of request.
	ErrUnsupported = errors.New("the server does not support this")
	// ErrDamaged says that a body differs from its digest.
	ErrDamaged = errors.New("the bytes do not have the MD5 that the manifest names")
	// ErrUnchanged says that an object has not changed since it was last read.
	ErrUnchanged = errors.New("the object has not changed")
	// ErrForbidden is what a site that is online says of some objects: buckets, of those that do not exist.
	ErrForbidden = errors.New("a bucket that nobody may list does not tell what is absent")
	// ErrTooLarge says that an object has more bytes than any of its kind: nobody should put it into memory.
	ErrTooLarge = errors.New("the object is too large")
	// ErrNoBucket says that the bucket does not exist.
	ErrNoBucket = errors.New("no such bucket")
)

// An Object is a body with its key, digest and headers.
type Object struct {
	site.Entry
	Body         []byte
	ContentType  string
	CacheControl string
	// Metadata is kept with the object by a server, and sent in headers: {"cache-tag": "a"} as
	// "x-amz-meta-cache-tag: a". A folder does not keep it.
	Metadata map[string]string
}

// Info describes a stored object.
type Info struct {
	Key      site.Key
	Size     int64
	ETag     string    // without quotation marks; usually the MD5 of the body in hexadecimal, but not under SSE-KMS
	Modified time.Time // by the bucket's clock
	Place    string    // identity of the folder and the links to it, only for the root in a folder; else ""

	contentType, cacheControl string // set by Read and Stat
}

// A Condition must hold for a Put to take effect: Always, IfAbsent, or the ETag that the stored
// object must have.
type Condition string

// Conditions other than an ETag.
const (
	Always   Condition = ""
	IfAbsent Condition = "*"
)

// Temporary reports whether an error is retryable: the network failed, or the server was busy.
func Temporary(err error) bool {
	var t *temporaryError
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

// A temporaryError marks an error as retryable.
type temporaryError struct{ err error }

func (t *temporaryError) Error() string { return t.err.Error() }
func (t *temporaryError) Unwrap() error { return t.err }

// check compares the body with its size and digest, for storage without a server that does.
func (o Object) check() error {
	if int64(len(o.Body)) != o.Size || site.Sum(o.Body) != o.MD5 {
		return fmt.Errorf("%s: %w", o.Key, ErrDamaged)
	}
	return nil
}
