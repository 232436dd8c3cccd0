package object

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/followpress/followpress/site"
)

// An Object is a body with its key, digest and headers.
type Object struct {
	site.Entry
	Body         []byte
	ContentType  string
	CacheControl string
	// Metadata is stored with the object and sent as headers: {"cache-tag": "a"} becomes "x-amz-meta-cache-tag: a".
	// Folders drop it.
	Metadata map[string]string
}

// Check compares the body with its size and digest, for stores whose server does not.
func (o Object) Check() error {
	if int64(len(o.Body)) != o.Size || site.Sum(o.Body) != o.MD5 {
		return fmt.Errorf("%s: %w", o.Key, ErrDamaged)
	}
	return nil
}

// Info describes a stored object.
type Info struct {
	Key      site.Key
	Size     int64
	ETag     string    // unquoted; usually the MD5 of the body in hexadecimal, but not under SSE-KMS
	Modified time.Time // by the bucket's clock
	Place    string    // identity of the folder and the links to it; only for the root of a folder, else ""
}

// InfoOfFile returns the Info of an object stored as a file.
func InfoOfFile(key site.Key, digest site.MD5, file fs.FileInfo) Info {
	return Info{Key: key, Size: file.Size(), ETag: digest.String(), Modified: file.ModTime()}
}

// A Condition must hold for a Put to take effect: Always, IfAbsent, or the ETag that the stored
// object must have.
type Condition string

// Conditions other than an ETag.
const (
	Always   Condition = ""
	IfAbsent Condition = "*"
)

// A Request is a kind of request, as listed on price lists.
type Request string

// The kinds of requests.
const (
	Get    Request = "get"
	Head   Request = "head"
	Put    Request = "put"
	List   Request = "list"
	Delete Request = "delete" // deletes one object or up to 1,000
	SetUp  Request = "set_up" // policy and so on
)

// AdmitAll admits an object of any size.
func AdmitAll(context.Context, int64) error { return nil }

// A Version distinguishes successive bodies of one name.
type Version struct {
	ID   string // ETag, or modification time
	Size int64  // in bytes
}

// Fill fills a buffer from a stream and returns the number of bytes read, which is smaller if the stream ends early.
func Fill(stream io.Reader, into []byte) (int64, error) {
	n, err := io.ReadFull(stream, into)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return int64(n), err
}
