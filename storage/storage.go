// Package storage is where sites are kept: a folder, a tar file, or a bucket, of
// an S3-compatible server or of a folder with the same semantics.
//
// Whoever uses a storage names the part that it needs in an interface of its own.
// All methods may be called from many goroutines.
package storage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/followpress/followpress/site"
)

// Errors that callers decide something by. All others mean that it is not known
// whether the request had an effect.
var (
	// ErrNotFound says that there is no object with that key.
	ErrNotFound = errors.New("no such object")
	// ErrCondition says that the condition of a Put did not hold; nothing was written.
	ErrCondition = errors.New("the object is not what the condition names")
	// ErrUnsupported says that the server does not know this kind of request.
	ErrUnsupported = errors.New("the server does not support this")
	// ErrDamaged says that a body does not have the digest that goes with it.
	ErrDamaged = errors.New("the bytes do not have the MD5 that the manifest names")
	// ErrUnchanged says that an object is the one that was seen before.
	ErrUnchanged = errors.New("the object has not changed")
	// ErrNoBucket says that the bucket does not exist.
	ErrNoBucket = errors.New("no such bucket")
)

// An Object is what a bucket stores under a key.
type Object struct {
	site.Entry
	Body         []byte
	ContentType  string
	CacheControl string
}

// Info is what a bucket knows about an object besides its body.
type Info struct {
	Key      site.Key
	Size     int64
	ETag     string    // without quotation marks; of an object that was put plainly the MD5 in hexadecimal, but under SSE-KMS
	Modified time.Time // by the bucket's clock
	Place    string    // of the root in a folder: another one if the folder was not there all the time; else ""

	contentType, cacheControl string // after a Read
}

// A Condition has to hold for a Put to have an effect: Always, IfAbsent, or the
// ETag that the object must have.
type Condition string

// The conditions that are no ETag.
const (
	Always   Condition = ""
	IfAbsent Condition = "*"
)

// Temporary reports whether trying again may help: the request may have failed for
// reasons of the network or of a busy server.
func Temporary(err error) bool {
	var t *temporaryError
	var u *UnansweredError
	return errors.As(err, &t) || errors.As(err, &u) && !errors.Is(err, context.Canceled)
}

// Unanswered reports whether a request failed in a way that does not tell whether the
// server carries it out: it may do so now, later, or never. A context that ended
// counts, because it cuts off what may have been sent.
func Unanswered(err error) bool {
	var u *UnansweredError
	return errors.As(err, &u) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// An UnansweredError is an error for which Unanswered holds.
type UnansweredError struct{ Err error }

func (u *UnansweredError) Error() string { return u.Err.Error() }
func (u *UnansweredError) Unwrap() error { return u.Err }

// A temporaryError marks an error that may go away by itself.
type temporaryError struct{ err error }

func (t *temporaryError) Error() string { return t.err.Error() }
func (t *temporaryError) Unwrap() error { return t.err }

// check compares a body with its digest, where no server does.
func (o Object) check() error {
	if int64(len(o.Body)) != o.Size || site.Sum(o.Body) != o.MD5 {
		return fmt.Errorf("%s: %w", o.Key, ErrDamaged)
	}
	return nil
}
