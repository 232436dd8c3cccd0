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
	"testing"

	"github.com/minio/minio-go/v7"

	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// The number of requests of a run follows from what changed.
func TestARunTakesFewRequests(t *testing.T) {
	first := demo(t)
	few := first.Changed(t, 50, " ")
	steps := []struct {
		name    string
		site    memory
		deletes bool
	}{
		{"the first site", first, false},
		{"unchanged", first, false},
		{"few objects", few, false},
		{"lists are gone", few.WithoutLists(t, 2), true},
		{"lists come back", few, false},
		{"another number of shards", few.With(t, func(_ memory, root *site.Root) { root.ShardDigits = 2 }), true},
	}
	onServers(t, func(t *testing.T, server *servers.Server) {
		p := newPlace(t, server, "")
		for _, step := range steps {
			objects, shards := differences(p.list(t), step.site)
			if shards > 0 { // deltas: more shards may be read than differ in their stored bytes
				shards = len(step.site.Root(t).Manifest)
			}
			most := objects + 2*shards + 10
			switch {
			case objects+shards == 0:
				most = 3
			case step.deletes:
				most++
			}
			r := newRecorder(p.at)
			bucket := p.open(t, r)
			publish(t, step.site, unpacking(false, bucket), publisher.Options{})
			p.lists(t, step.site)
			if n := r.all(); n > most {
				t.Errorf("%s: got %d requests for %d objects in %d shards, want at most %d", step.name, n, objects, shards, most)
			}
			lists := 0
			if step.name == "the first site" { // looks for foreign objects
				lists = 1
			}
			if r.lists() != lists || r.of(http.MethodHead) > 0 {
				t.Errorf("%s: got %d listings and %d requests for headers, want %d and none", step.name, r.lists(), r.of(http.MethodHead), lists)
			}
			if many := r.of(http.MethodPost); many != 0 && !step.deletes || many != 1 && step.deletes {
				t.Errorf("%s: got %d requests that delete many objects, want 1 if there are deletes, else 0", step.name, many)
			}
			if one := r.of(http.MethodDelete); one > 1 {
				t.Errorf("%s: got %d requests that delete one object, want only that of the mark", step.name, one)
			}
			counted := map[storage.Request]int{storage.Get: r.of(http.MethodGet), storage.List: lists, storage.Put: r.of(http.MethodPut),
				storage.Delete: r.of(http.MethodDelete, http.MethodPost)}
			maps.DeleteFunc(counted, func(_ storage.Request, n int) bool { return n == 0 })
			if told := bucket.Requests(); !maps.Equal(told, counted) {
				t.Errorf("%s: got %v requests by the bucket, want %v as the transport", step.name, told, counted)
			}
		}
	})
}

// differences counts the objects and the manifest shards in which a bucket differs from a site.
func differences(listed map[site.Key]minio.ObjectInfo, want memory) (objects, shards int) {
	for key, body := range want {
		switch {
		case listed[key].ETag == site.Sum([]byte(body)).String() || key == site.RootKey:
		case len(key) > len(site.ManifestKey("")) && key[:len(site.ManifestKey(""))] == site.ManifestKey(""):
			shards++
		default:
			objects++
		}
	}
	return objects, shards
}

// If the server unpacks archives, many objects take few requests.
func TestMinIOTakesManyObjectsAtOnce(t *testing.T) {
	site1 := demo(t)
	server := servers.Start(t, servers.MinIO)
	p := newPlace(t, server, "below/")
	r := newRecorder(p.at)
	report := publish(t, site1, p.open(t, r), publisher.Options{})
	p.holds(t, site1)
	if n, most := r.of(http.MethodPut), 30; n > most || !report.Bulk {
		t.Errorf("got %d puts of %d objects, want at most %d; the report says bulk: %v", n, len(site1), most, report.Bulk)
	}
	for key, n := range r.objectsPut() {
		if n > 1 {
			t.Logf("%s was put %d times", key, n)
		}
	}
}

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
