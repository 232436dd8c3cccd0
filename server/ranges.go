package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/followpress/followpress/server/internal/cache"
	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// Objects of routes with site.Route.Ranges are too large to read whole for each part, or to hold in
// memory. If the store reads parts, the requested part is copied from the store to the client.
// Otherwise the whole object is in memory like any other: a checked store needs the whole object,
// since a signature does not cover a part.

// streamBytes is the memory of one copy: a buffer on either side.
const streamBytes = 64 << 10

// opened returns the answer with an object that is streamed from the store. The caller closes the
// stream.
func (h *Handler) opened(ctx, during context.Context, r site.Resolution) (response, error) {
	if err := h.gates.streams.Take(ctx, streamBytes); err != nil {
		return response{}, err
	}
	stream, err := h.fetcher.Open(ctx, during, r.Key)
	if err != nil {
		h.gates.streams.Give(streamBytes)
		if errors.Is(err, storage.ErrNotFound) {
			return absent(r, r.Absent), nil
		}
		return response{}, err
	}
	a := whole(r.Route, cache.Elsewhere(stream.ETag))
	a.stream = stream
	return a, nil
}

// closeStream closes the stream of an answer, if any, and logs why the store ended it early. The
// client notices by Content-Length.
func (h *Handler) closeStream(ctx context.Context, a response) {
	if a.stream == nil {
		return
	}
	defer h.gates.streams.Give(streamBytes)
	if err := a.stream.Close(); err != nil && ctx.Err() == nil {
		h.failures.Do(func() { h.logger(ctx).Error("answer was cut off", "error", err) })
	}
}

// A counted is a ResponseWriter that records the status.
type counted struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (c *counted) WriteHeader(status int) {
	c.status = status
	c.ResponseWriter.WriteHeader(status)
}

// writeRange sends the part of the object named by the Range header. It sends the whole object
// where RFC 9110 lets a server ignore the header: for several parts, for units other than bytes,
// and for answers without a body.
func (a response) writeRange(w http.ResponseWriter, r *http.Request) (status int) {
	if named := r.Header.Get("Range"); r.Method != http.MethodGet || !strings.HasPrefix(named, "bytes=") || strings.Contains(named, ",") {
		r.Header.Del("Range")
	}
	var content io.ReadSeeker = bytes.NewReader(a.object.Body)
	if a.stream != nil {
		content = &announced{Stream: a.stream, header: w.Header()}
	}
	to := &counted{ResponseWriter: w}
	http.ServeContent(to, r, "", time.Time{}, content)
	return to.status
}

// An announced stream is read up to the Content-Length of the answer, which http.ServeContent sets
// before it reads.
type announced struct {
	*fetch.Stream
	header http.Header
}

// Read implements io.Reader.
func (s *announced) Read(p []byte) (int, error) {
	if s.header != nil {
		if length, err := strconv.ParseInt(s.header.Get("Content-Length"), 10, 64); err == nil {
			s.Limit(length)
		}
		s.header = nil
	}
	return s.Stream.Read(p)
}
