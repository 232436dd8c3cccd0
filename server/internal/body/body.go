// Package body reads request bodies within bounds of memory and time.
package body

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"
	"unicode/utf8"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/server/internal/gate"
	"github.com/followpress/followpress/server/internal/listen"
	"github.com/followpress/followpress/site"
)

// MostBytes bounds the memory of one body and its parsed form: each user takes at least a byte and
// two quotation marks or commas in the body, and a string header once parsed.
const MostBytes = 8 * site.MaxBatchBytes

// FirstBytes is granted before a body is read, the rest once these bytes have arrived: an announced
// Content-Length costs nothing.
const FirstBytes = 4 << 10

// A Reader reads bodies. It is safe for concurrent use.
type Reader struct {
	Receiving *gate.Gate // requests whose body is being read
	Arriving  *gate.Gate // bytes of the first parts of bodies being read
	Growing   *gate.Gate // bytes of the remaining parts
	Done      *gate.Gate // bytes of bodies that are read completely

	Timeout time.Duration // longest time for one request
}

// A Batch is a body that was read.
type Batch struct {
	Users   []*string     // a null in the body is a nil
	Problem *site.Problem // the fault of the body; nil for none
	Stalled bool          // the client sent the body too slowly
	Granted int64         // bytes taken from Reader.Done; the caller gives them back
}

// Read reads the request body if the route takes one. It returns gate.ErrBusy if no memory is free
// in time, and no other error.
func (b *Reader) Read(ctx context.Context, w http.ResponseWriter, r *http.Request, resolution site.Resolution) (read Batch, err error) {
	if resolution.Route == nil || !resolution.Route.Post {
		return Batch{}, nil
	}
	size := r.ContentLength
	switch {
	case size > site.MaxBatchBytes:
		return Batch{Problem: site.BodyTooLarge}, nil
	case size < 0:
		size = site.MaxBatchBytes
	}
	if !b.Receiving.TryTake(1) {
		return Batch{}, gate.ErrBusy
	}
	defer b.Receiving.Give(1)
	body, err := b.receive(ctx, w, r, size)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.Is(err, gate.ErrBusy):
		return Batch{}, gate.ErrBusy
	case errors.As(err, &tooLarge):
		return Batch{Problem: site.BodyTooLarge}, nil
	case err != nil: // the client is gone or too slow; the deadline stays, since net/http would wait forever for the rest
		return Batch{Problem: site.BadBatch, Stalled: errors.Is(err, os.ErrDeadlineExceeded)}, nil
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // net/http would take a passed deadline for a closed connection
	read.Granted = int64(len(body)) * (MostBytes / site.MaxBatchBytes)
	if b.Done.Take(ctx, read.Granted) != nil {
		return Batch{}, gate.ErrBusy
	}
	listen.GoOn(w, r)
	if resolution.Action == site.AnswerProblem { // the path is wrong; of the body, only its size matters before the path
		return read, nil
	}
	var ok bool
	if read.Users, ok = parse(body); !ok {
		read.Problem = site.BadBatch
	}
	return read, nil
}

// receive reads a body of at most size bytes. It returns gate.ErrBusy if ctx ends while it waits
// for memory.
func (b *Reader) receive(ctx context.Context, w http.ResponseWriter, r *http.Request, size int64) ([]byte, error) {
	body := http.MaxBytesReader(w, r.Body, site.MaxBatchBytes)
	// fill reads until part is full or the body ends.
	fill := func(part []byte) (n int, ended bool, err error) {
		// A slow client must not hold the memory for long. It fails only for writers that are not connections.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(b.Timeout / 2))
		n, err = io.ReadFull(body, part)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return n, true, nil
		}
		return n, false, err
	}
	size++ // one more byte, to see the end of the body
	first := min(size, FirstBytes)
	if b.Arriving.Take(ctx, first) != nil {
		return nil, gate.ErrBusy
	}
	defer b.Arriving.Give(first)
	read := make([]byte, first)
	n, ended, err := fill(read)
	if rest := size - first; err == nil && !ended && rest > 0 {
		// Take the rest at once: no request waits while holding a part.
		if b.Growing.Take(ctx, rest) != nil {
			return nil, gate.ErrBusy
		}
		defer b.Growing.Give(rest)
		read = append(make([]byte, 0, size), read...)
		n, _, err = fill(read[first:size])
		n += int(first)
	}
	return read[:n], err
}

// parse parses the body of a batch. ok is false unless the body is a UTF-8 JSON array of 1 to
// site.MaxBatch strings or nulls.
func parse(body []byte) (users []*string, ok bool) {
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) || !utf8.Valid(body) || !json.Valid(body) {
		return nil, false
	}
	if json.Unmarshal(body, &users) != nil || len(users) < 1 || len(users) > site.MaxBatch {
		return nil, false
	}
	return users, true
}
