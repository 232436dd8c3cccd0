package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/followpress/followpress/server/internal/answer"
	"github.com/followpress/followpress/server/internal/gate"
	"github.com/followpress/followpress/site"
)

// mostBodyBytes bounds the memory of one request body and its parsed form: each user takes at least
// a byte and two quotation marks or commas in the body, and a string header once parsed.
const mostBodyBytes = 8 * site.MaxBatchBytes

// firstBodyBytes is granted before a body is read, the rest once these bytes have arrived: an
// announced Content-Length costs nothing.
const firstBodyBytes = 4 << 10

// readBody reads a body of at most size bytes. It returns gate.ErrBusy if ctx ends while it waits
// for memory.
func (h *Handler) readBody(ctx context.Context, w http.ResponseWriter, r *http.Request, size int64) ([]byte, error) {
	body := http.MaxBytesReader(w, r.Body, site.MaxBatchBytes)
	hurry := func() { // a slow client must not hold the memory for long
		// It fails only for writers that are not connections.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(h.timeout / 2))
	}
	size++ // one more byte, to see the end of the body
	first := min(size, firstBodyBytes)
	if h.gates.bodies.arriving.Take(ctx, first) != nil {
		return nil, gate.ErrBusy
	}
	defer h.gates.bodies.arriving.Give(first)
	hurry()
	read := make([]byte, first)
	n, err := io.ReadFull(body, read)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return read[:n], nil
	}
	if rest := size - first; err == nil && rest > 0 {
		// Take the rest at once: no request waits while holding a part.
		if h.gates.bodies.growing.Take(ctx, rest) != nil {
			return nil, gate.ErrBusy
		}
		defer h.gates.bodies.growing.Give(rest)
		hurry()
		read = append(make([]byte, 0, size), read...)
		n, err = io.ReadFull(body, read[first:size])
		read = read[:first+int64(n)]
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = nil
		}
	}
	return read, err
}

type batch struct {
	users   []*string     // a null in the body is a nil
	problem *site.Problem // the fault of the body; nil for none
	stalled bool          // the client sent the body too slowly
	granted int64         // bytes taken from bodyGates.read; the caller gives them back
}

// readBatch reads the request body if the route takes one. It fails only if no memory is free.
func (h *Handler) readBatch(ctx context.Context, w http.ResponseWriter, r *http.Request, resolution site.Resolution) (b batch, err error) {
	if resolution.Route == nil || !resolution.Route.Post {
		return batch{}, nil
	}
	size := r.ContentLength
	switch {
	case size > site.MaxBatchBytes:
		return batch{problem: site.BodyTooLarge}, nil
	case size < 0:
		size = site.MaxBatchBytes
	}
	if !h.gates.bodies.receiving.TryTake(1) {
		return batch{}, gate.ErrBusy
	}
	defer h.gates.bodies.receiving.Give(1)
	body, err := h.readBody(ctx, w, r, size)
	if err == nil { // after a failure the deadline stays: net/http would wait forever for the rest
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // net/http would take a passed deadline for a closed connection
	}
	if errors.Is(err, gate.ErrBusy) {
		return batch{}, gate.ErrBusy
	}
	b.stalled = errors.Is(err, os.ErrDeadlineExceeded)
	if b.problem = bodyProblem(err); b.problem != nil { // ctx has ended: net/http takes the client for gone
		return b, nil
	}
	granted := int64(len(body)) * (mostBodyBytes / site.MaxBatchBytes)
	if h.gates.bodies.read.Take(ctx, granted) != nil {
		return batch{}, gate.ErrBusy
	}
	b.granted = granted
	goOn(w, r)
	if resolution.Action == site.AnswerProblem { // the path is wrong; of the body, only its size matters before the path
		return b, nil
	}
	var ok bool
	if b.users, ok = answer.ParseBatch(body); !ok {
		b.problem = site.BadBatch
	}
	return b, nil
}

// bodyProblem returns the problem to answer when reading the body failed with err; nil for no
// error.
func bodyProblem(err error) *site.Problem {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return site.BodyTooLarge
	case err != nil: // the client is gone or too slow
		return site.BadBatch
	}
	return nil
}
