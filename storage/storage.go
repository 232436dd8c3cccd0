package storage

import (
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage/internal/object"
	"github.com/followpress/followpress/storage/internal/s3"
)

// Errors that callers distinguish. After any other error, the request may have taken effect.
var (
	// ErrNotFound means that no object has the key. It equals site.ErrNotFound.
	ErrNotFound = site.ErrNotFound
	// ErrCondition means that the condition of a Put did not hold; nothing was written.
	ErrCondition = object.ErrCondition
	// ErrUnsupported means that the server does not support this kind of request.
	ErrUnsupported = object.ErrUnsupported
	// ErrDamaged means that a body differs from its digest.
	ErrDamaged = object.ErrDamaged
	// ErrTooLarge means that an object is larger than any object of its kind, so it must not be loaded into memory.
	ErrTooLarge = object.ErrTooLarge
	// ErrNoBucket means that the bucket does not exist.
	ErrNoBucket = object.ErrNoBucket
)

// An Object is a body with its key, digest and headers.
type Object = object.Object

// Info describes a stored object.
type Info = object.Info

// A Condition must hold for a Put to take effect: Always, IfAbsent, or the ETag that the stored
// object must have.
type Condition = object.Condition

// Conditions other than an ETag.
const (
	Always   = object.Always
	IfAbsent = object.IfAbsent
)

// A Request is a kind of request, as listed on price lists.
type Request = object.Request

// The kinds of requests.
const (
	Get    = object.Get
	Head   = object.Head
	Put    = object.Put
	List   = object.List
	Delete = object.Delete // deletes one object or up to MaxDelete
)

// MaxDelete is the maximum number of keys per Delete.
const MaxDelete = s3.MaxDelete

// An UnansweredError is an error for which Unanswered holds.
type UnansweredError = object.UnansweredError

// Temporary reports whether an error is retryable: the network failed, or the server was busy.
func Temporary(err error) bool { return object.Temporary(err) }

// Unanswered reports whether a failed request may still take effect, now or later. That includes the end of a
// context, because the request may already have been sent.
func Unanswered(err error) bool { return object.Unanswered(err) }
