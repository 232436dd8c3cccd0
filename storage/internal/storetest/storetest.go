// Package storetest provides helpers for tests of several stores.
package storetest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/testenv/tempdir"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage/internal/location"
	"github.com/followpress/followpress/storage/internal/object"
	"github.com/followpress/followpress/storage/internal/s3"
)

// Main runs the tests of a package with temporary files in memory and without waits before retries.
func Main(m *testing.M) {
	tempdir.InMemory()
	minio.DefaultRetryUnit = time.Millisecond // the library waits even after its last attempt
	s3.ReadRetry.First = time.Millisecond
	m.Run()
}

// OnServers runs a test against a server of each kind.
func OnServers(t *testing.T, check func(*testing.T, *servers.Server)) {
	for _, kind := range servers.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			server := servers.Start(t, kind)
			server.Env(t)
			check(t, server)
		})
	}
}

// OpenS3 opens a bucket of a server.
func OpenS3(t *testing.T, server *servers.Server, at location.Location) *s3.Bucket {
	t.Helper()
	return OpenS3With(t, at, s3.Options{Endpoint: server.Endpoint})
}

// OpenS3With opens a bucket with the given options.
func OpenS3With(t *testing.T, at location.Location, o s3.Options) *s3.Bucket {
	t.Helper()
	b, err := s3.Open(t.Context(), at.Bucket, at.Prefix, o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Object returns an object with the headers of a site's object.
func Object(key site.Key, body string) object.Object {
	return object.Object{
		Entry: site.Entry{Key: key, Size: int64(len(body)), MD5: site.Sum([]byte(body))}, Body: []byte(body),
		ContentType: "application/json", CacheControl: "public, max-age=60, stale-if-error=86400",
	}
}

// Put stores objects concurrently, and fails the test if an ETag is not the MD5.
func Put(t *testing.T, to interface {
	Put(ctx context.Context, o object.Object, condition object.Condition) (string, error)
}, objects ...object.Object) {
	t.Helper()
	var group errgroup.Group
	group.SetLimit(16)
	for _, o := range objects {
		group.Go(func() error {
			etag, err := to.Put(t.Context(), o, object.Always)
			if err == nil && etag != o.MD5.String() {
				err = fmt.Errorf("put %s: the ETag is %s, not the MD5 %s", o.Key, etag, o.MD5)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// Awkward returns keys that some layer might misinterpret. Any of their last segments may be a user name.
func Awkward() []site.Key {
	keys := []site.Key{
		"_site", "a-b", "a/b", "a.b", "a/b-c", "a/c/d e", "a/ leading", "a/trailing ", "a+b", "a%20b", "a%2Fb", "a&b=c;d", "a?b#c", `a"b'c`,
		"a<b>c", "a&amp;b", "a:b@c", "a*b|c", "a,b", "a~b", "a(b)[c]{d}", "a$b!c^d`e", `back\slash`, "UPPER/lower", "..a", "a..", "...",
		"ü/ö", "日本語/テスト", "עברית", "🦜🦜", "👩‍👩‍👧", "a/\u2028", "a=", "xl.meta/key", "users/part.1/key", "users/null/key", "users/con/key",
	}
	for _, name := range []string{strings.Repeat("n", 255), strings.Repeat("é", 127), strings.Repeat("🦜", 63)} {
		keys = append(keys, site.Key("users/"+name+"/searchFollowing"), site.Key(name))
	}
	return keys
}

// A Busy transport lets every third request through and answers the others with 503.
type Busy struct{ requests atomic.Int64 }

// RoundTrip implements http.RoundTripper.
func (b *Busy) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.requests.Add(1)%3 == 0 {
		return http.DefaultTransport.RoundTrip(r)
	}
	return &http.Response{
		Status: "503 Service Unavailable", StatusCode: http.StatusServiceUnavailable, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: r,
	}, nil
}
