package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/followpress/followpress/site"
)

// mostBodyBytes is what the largest body of a request takes, with what it is parsed into: users have a
// byte and two quotation marks or commas at least, and take the header of a string each.
const mostBodyBytes = 8 * site.MaxBatchBytes

// A batch is the body of a request.
type batch struct {
	users   []string
	problem *site.Problem // of the body; nil for none
	granted int64         // bytes of Handler.bodies, which the caller releases
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
	// The memory is granted before the body is read: nobody waits with a part of one.
	granted := size * (mostBodyBytes / site.MaxBatchBytes)
	if h.bodies.Acquire(ctx, granted) != nil {
		return batch{}, errBusy
	}
	b.granted = granted
	// A slow client must not keep the memory for long. A writer without deadlines is no connection.
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(time.Now().Add(h.timeout / 2))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, site.MaxBatchBytes))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		b.problem = site.BodyTooLarge
		return b, nil
	case err != nil: // the client is gone or too slow
		b.problem = site.BadBatch
		return b, nil
	}
	goOn(w, r)
	_ = conn.SetReadDeadline(time.Time{})        // net/http would take its end for that of the client
	if resolution.Action == site.AnswerProblem { // the path is wrong: only the size comes before that
		return b, nil
	}
	var ok bool
	if b.users, ok = parseBatch(body); !ok {
		b.problem = site.BadBatch
	}
	return b, nil
}
