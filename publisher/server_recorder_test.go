package publisher_test

import (
	"archive/tar"
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A request is recorded and classified independently of the code under test.
type request struct {
	method string
	list   bool
	keys   []site.Key // one, or many for a delete or an archive
	status int        // 0 without an answer
}

// A recorder is a transport that records requests in order.
type recorder struct {
	prefix string // prefix of paths: bucket and prefix
	next   http.RoundTripper

	mu       sync.Mutex
	requests []*request
}

func newRecorder(at storage.Location) *recorder {
	next := http.DefaultTransport.(*http.Transport).Clone()
	next.MaxIdleConnsPerHost = 64
	return &recorder{prefix: "/" + at.Bucket + "/" + at.Prefix, next: next}
}

func (r *recorder) RoundTrip(in *http.Request) (*http.Response, error) {
	q := &request{method: in.Method, list: in.URL.Query().Has("list-type")}
	key := site.Key(strings.TrimPrefix(in.URL.Path, r.prefix))
	var body bytes.Buffer
	archive := in.Header.Get("X-Amz-Meta-Snowball-Auto-Extract") != ""
	if in.Method == http.MethodPost || archive {
		in = in.Clone(in.Context())
		in.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(in.Body, &body), in.Body}
	}
	r.mu.Lock()
	r.requests = append(r.requests, q)
	r.mu.Unlock()

	response, err := r.next.RoundTrip(in)

	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		q.status = response.StatusCode
	}
	switch {
	case archive:
		q.keys = keysOfArchive(body.Bytes(), strings.SplitN(r.prefix, "/", 3)[2])
	case in.Method == http.MethodPost:
		q.keys = keysOfDelete(body.Bytes(), strings.SplitN(r.prefix, "/", 3)[2])
	case !q.list:
		q.keys = []site.Key{key}
	}
	return response, err
}

func keysOfArchive(body []byte, prefix string) (keys []site.Key) {
	for archive := tar.NewReader(bytes.NewReader(body)); ; {
		header, err := archive.Next()
		if err != nil { // at the end, or where the request was cut off
			return keys
		}
		keys = append(keys, site.Key(strings.TrimPrefix(header.Name, prefix)))
	}
}

func keysOfDelete(body []byte, prefix string) (keys []site.Key) {
	var list struct {
		Object []struct{ Key string }
	}
	if err := xml.Unmarshal(body, &list); err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	for _, o := range list.Object {
		keys = append(keys, site.Key(strings.TrimPrefix(o.Key, prefix)))
	}
	return keys
}

// count returns the number of requests that choose accepts.
func (r *recorder) count(choose func(*request) bool) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, q := range r.requests {
		if choose(q) {
			n++
		}
	}
	return n
}

func (r *recorder) of(methods ...string) int {
	return r.count(func(q *request) bool { return !q.list && slices.Contains(methods, q.method) })
}

func (r *recorder) all() int   { return r.count(func(*request) bool { return true }) }
func (r *recorder) lists() int { return r.count(func(q *request) bool { return q.list }) }

// put counts the puts of each key.
func (r *recorder) put() map[site.Key]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := map[site.Key]int{}
	for _, q := range r.requests {
		if q.method == http.MethodPut {
			for _, key := range q.keys {
				keys[key]++
			}
		}
	}
	return keys
}

// objectsPut is put without the publisher's own objects.
func (r *recorder) objectsPut() map[site.Key]int {
	keys := r.put()
	maps.DeleteFunc(keys, func(key site.Key, _ int) bool {
		return key == site.LockKey || key == site.MarkKey || key == site.PackKey
	})
	return keys
}

// found reports whether a key existed when it was first read.
func (r *recorder) found(key site.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.requests {
		if q.method == http.MethodGet && slices.Contains(q.keys, key) && (q.status == http.StatusOK || q.status == http.StatusNotFound) {
			return q.status == http.StatusOK
		}
	}
	return false
}
