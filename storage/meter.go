package storage

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// A Request is a kind of request, as in price lists.
type Request string

// The kinds of requests.
const (
	Get    Request = "get"
	Head   Request = "head"
	Put    Request = "put"
	List   Request = "list"
	Delete Request = "delete" // of one object or of up to 1,000
	SetUp  Request = "set_up" // of the bucket: policy and so on
)

// A meter counts and logs requests, and measures the offset of the server's clock.
type meter struct {
	next   http.RoundTripper
	log    *slog.Logger
	offset atomic.Int64 // nanoseconds that the server's clock is ahead

	mu     sync.Mutex
	counts map[Request]int
}

func newMeter(next http.RoundTripper, log *slog.Logger) *meter {
	return &meter{next: next, log: cmp.Or(log, slog.New(slog.DiscardHandler)), counts: map[Request]int{}}
}

// RoundTrip sends a request unless its context has ended. The request is already signed, so if this
// process is stopped after the check, the server refuses the request once the signature is more
// than 15 minutes old. Headers are not logged, because they contain the signature.
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
	return response, nil
}

func kindOf(r *http.Request) Request {
	query := r.URL.Query()
	switch {
	case query.Has("policy"), query.Has("cors"), query.Has("location"):
		return SetUp
	case query.Has("list-type"):
		return List
	case r.Method == http.MethodPost, r.Method == http.MethodDelete:
		return Delete
	case r.Method == http.MethodHead:
		return Head
	case r.Method == http.MethodPut:
		return Put
	}
	return Get
}

func (m *meter) requests() map[Request]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.counts)
}

func (m *meter) now() time.Time { return time.Now().Add(time.Duration(m.offset.Load())) }
