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

// firstBodyBytes are granted before a body is read, and more as it arrives: what a client announces costs
// nothing.
const firstBodyBytes = 4 << 10

// readGrowing reads up to the end. It starts with memory for that many bytes, and asks grow for more. It
// returns errNoRoom if there is no more.
func readGrowing(r io.Reader, bytes int64, grow func(more int64) bool) ([]byte, error) {
	body := make([]byte, 0, bytes)
	for {
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case errors.Is(err, io.EOF):
			return body, nil
		case err != nil:
			return body, err
		case len(body) < cap(body):
			continue
		case !grow(int64(cap(body))):
			return nil, errNoRoom
		}
		body = append(make([]byte, 0, 2*cap(body)), body...)
	}
}

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
	held := min(size+1, firstBodyBytes) // one more to see the end
	if h.arriving.Acquire(ctx, held) != nil {
		return batch{}, errBusy
	}
	defer func() { h.arriving.Release(held) }()
	// A slow client must not keep the memory for long. A writer without deadlines is no connection.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(h.timeout / 2))
	body, err := readGrowing(http.MaxBytesReader(w, r.Body, site.MaxBatchBytes), held, func(more int64) bool {
		if !h.arriving.TryAcquire(more) { // nobody waits with a part of a body
			return false
		}
		held += more
		return true
	})
	if errors.Is(err, errNoRoom) {
		return batch{}, errBusy
	}
	granted := int64(len(body)) * (mostBodyBytes / site.MaxBatchBytes)
	if h.bodies.Acquire(ctx, granted) != nil {
		return batch{}, errBusy
	}
	b.granted = granted
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		b.problem = site.BodyTooLarge
	case err != nil: // the client is gone or too slow
		b.problem = site.BadBatch
	case resolution.Action != site.AnswerProblem: // else the path is wrong: only the size comes before that
		var ok bool
		if b.users, ok = parseBatch(body); !ok {
			b.problem = site.BadBatch
		}
	}
	return b, nil
}
