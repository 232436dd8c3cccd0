package s3

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/followpress/followpress/storage/internal/object"
)

// A meter counts and logs requests, and measures the offset of the server's clock.
type meter struct {
	next   http.RoundTripper
	log    *slog.Logger
	offset atomic.Int64 // lead of the server's clock in nanoseconds

	mu     sync.Mutex
	counts map[object.Request]int
}

func newMeter(next http.RoundTripper, log *slog.Logger) *meter {
	return &meter{next: next, log: cmp.Or(log, slog.New(slog.DiscardHandler)), counts: map[object.Request]int{}}
}

// RoundTrip sends a request unless its context has ended. If the process is suspended after that check, the server
// refuses the request once its signature is 15 minutes old. Headers are not logged, because they contain the
// signature.
func (m *meter) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	kind := kindOf(r)
	m.mu.Lock()
	m.counts[kind]++
	m.mu.Unlock()

	begun := time.Now()
	response, err := m.next.RoundTrip(r)
	if m.log.Enabled(context.Background(), slog.LevelDebug) {
		attributes := []any{"method", r.Method, "path", r.URL.Path, "kind", kind, "took", time.Since(begun)}
		if err == nil {
			attributes = append(attributes, "status", response.StatusCode)
		} else {
			attributes = append(attributes, "error", err)
		}
		m.log.Debug("request", attributes...)
	}
	if err != nil {
		return nil, err
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		m.offset.Store(int64(time.Until(date)))
	}
	if kind != object.Get { // readers of objects set their own limit
		response.Body = &documentBody{ReadCloser: response.Body}
	}
	return response, nil
}

// Limits of the XML in responses other than objects. The library keeps some hundred bytes for each element. A
// thousand escaped keys of 1 KiB take 4 MiB and some 25,000 tags.
const (
	maxDocumentBytes = 8 << 20
	maxDocumentTags  = 1 << 16
)

// A documentBody is a response body that fails once it exceeds the limits.
type documentBody struct {
	io.ReadCloser
	bytes, tags int
}

var errLongDocument = fmt.Errorf("the server sent a document of more than %d MiB or %d tags", maxDocumentBytes>>20, maxDocumentTags)

// Read implements io.Reader.
func (d *documentBody) Read(p []byte) (int, error) {
	n, err := d.ReadCloser.Read(p)
	d.bytes += n
	d.tags += bytes.Count(p[:n], []byte{'<'})
	if d.bytes > maxDocumentBytes || d.tags > maxDocumentTags {
		return 0, errLongDocument
	}
	return n, err
}

func kindOf(r *http.Request) object.Request {
	query := r.URL.Query()
	switch {
	case query.Has("policy"), query.Has("cors"), query.Has("location"):
		return object.SetUp
	case query.Has("list-type"):
		return object.List
	case r.Method == http.MethodPost, r.Method == http.MethodDelete:
		return object.Delete
	case r.Method == http.MethodHead:
		return object.Head
	case r.Method == http.MethodPut:
		return object.Put
	}
	return object.Get
}

func (m *meter) requests() map[object.Request]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.counts)
}

func (m *meter) now() time.Time { return time.Now().Add(time.Duration(m.offset.Load())) }
