package reply

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/followpress/followpress/server/internal/fetch"
)

// writeRange sends the part of the object named by the Range header. It sends the whole object
// where RFC 9110 lets a server ignore the header: for several parts, for units other than bytes,
// and for answers without a body.
func (a *Reply) writeRange(w http.ResponseWriter, r *http.Request) (status int) {
	if named := r.Header.Get("Range"); r.Method != http.MethodGet || !strings.HasPrefix(named, "bytes=") || strings.Contains(named, ",") {
		r.Header.Del("Range")
	}
	var content io.ReadSeeker = bytes.NewReader(a.Object.Body)
	if a.Stream != nil {
		content = &announced{Stream: a.Stream, header: w.Header()}
	}
	to := &counted{ResponseWriter: w}
	http.ServeContent(to, r, "", time.Time{}, content)
	return to.status
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
