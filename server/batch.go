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

// mostBodyBytes is what the largest body of a request takes, with what it is parsed into: users have a
// byte and two quotation marks or commas at least, and take the header of a string each.
const mostBodyBytes = 8 * site.MaxBatchBytes

// firstBodyBytes are granted before a body is read, and the rest when they have arrived: what a client
// announces costs nothing.
const firstBodyBytes = 4 << 10

// readBody reads a body of at most size bytes. It returns gate.ErrBusy if ctx ends before there is memory for it.
func (h *Handler) readBody(ctx context.Context, w http.ResponseWriter, r *http.Request, size int64) ([]byte, error) {
	body := http.MaxBytesReader(w, r.Body, site.MaxBatchBytes)
	hurry := func() { // a slow client must not keep the memory for long
		// A writer without deadlines is no connection.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(h.timeout / 2))
	}
	size++ // to see the end
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
		// All at once: nobody waits with some of it.
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
	users   []*string     // nil for a null
	problem *site.Problem // of the body; nil for none
	stalled bool          // the client took too long to send it
	granted int64         // bytes of bodyGates.read, which the caller releases
}

// readBatch reads the body of a request, if its route has one. An error means that there is no memory for
// it at the moment.
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
	if err == nil { // else net/http would wait for the rest without an end
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // net/http would take its end for that of the client
	}
	if errors.Is(err, gate.ErrBusy) {
		return batch{}, gate.ErrBusy
	}
	b.stalled = errors.Is(err, os.ErrDeadlineExceeded)
	if b.problem = bodyProblem(err); b.problem != nil { // ctx has ended: for net/http, the client is gone
		return b, nil
	}
	granted := int64(len(body)) * (mostBodyBytes / site.MaxBatchBytes)
	if h.gates.bodies.read.Take(ctx, granted) != nil {
		return batch{}, gate.ErrBusy
	}
	b.granted = granted
	goOn(w, r)
	if resolution.Action == site.AnswerProblem { // the path is wrong: only the size comes before that
		return b, nil
	}
	var ok bool
	if b.users, ok = answer.ParseBatch(body); !ok {
		b.problem = site.BadBatch
	}
	return b, nil
}

// bodyProblem is the problem of a body that could not be read.
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
