package storage_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/followpress/followpress/internal/testenv/fakes3"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/parts"
)

// A server that deletes one object per request returns ErrUnsupported and deletes nothing; parts are then removed one
// by one.
func TestDeletingSeveralObjectsIsErrUnsupported(t *testing.T) {
	for _, status := range []int{http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusNotImplemented} {
		server := fakes3.Start(t, fakes3.Lacks{Deletes: status})
		b := openS3With(t, storage.Location{Bucket: "bucket"}, storage.S3Options{Endpoint: server.Endpoint})
		put(t, b, object("a", "1"), object("b", "2"))
		if err := b.Delete(t.Context(), []site.Key{"a", "b"}); !errors.Is(err, storage.ErrUnsupported) || storage.Temporary(err) {
			t.Errorf("%d: got %v, want ErrUnsupported", status, err)
		}
		if n := len(server.Keys()); n != 2 {
			t.Errorf("%d: got %d objects, want both", status, n)
		}
		place, err := parts.Open(t.Context(), "s3://bucket", storage.S3Options{Endpoint: server.Endpoint})
		if err != nil {
			t.Fatal(err)
		}
		if err := place.Remove(t.Context(), "a", "b"); err != nil || len(server.Keys()) > 0 {
			t.Errorf("%d: parts: got %v and %q, want none left", status, err, server.Keys())
		}
	}
}

// A server that refuses If-Match with the stored ETag in every form has no conditional writes, which is detected
// once. A mismatch of ETags is no such sign.
func TestAServerThatRefusesEveryETag(t *testing.T) {
	server := fakes3.Start(t, fakes3.Lacks{Match: fakes3.None})
	b := openS3With(t, storage.Location{Bucket: "bucket"}, storage.S3Options{Endpoint: server.Endpoint})
	first, second := object("key", "1"), object("key", "2")
	put(t, b, first)
	for _, c := range []struct {
		condition storage.Object
		want      error
		puts      int
	}{{second, storage.ErrCondition, 1}, {first, storage.ErrUnsupported, 3}, {first, storage.ErrUnsupported, 0}, {second, storage.ErrUnsupported, 0}} {
		before := server.Requests(http.MethodPut)
		_, err := b.Put(t.Context(), second, storage.Condition(c.condition.MD5.String()))
		if !errors.Is(err, c.want) || storage.Temporary(err) {
			t.Errorf("condition %q: got %v, want %v", c.condition.Body, err, c.want)
		}
		if n := server.Requests(http.MethodPut) - before; n != c.puts {
			t.Errorf("condition %q: got %d puts, want %d", c.condition.Body, n, c.puts)
		}
	}
	holds(t, b, first)
	if _, err := b.Put(t.Context(), second, storage.IfAbsent); !errors.Is(err, storage.ErrCondition) {
		t.Errorf("if absent: got %v, want ErrCondition", err)
	}
}

// The form of If-Match that a server accepts is detected once for all objects.
func TestTheFormOfIfMatchIsRemembered(t *testing.T) {
	for form, tries := range map[string]int{fakes3.Quoted: 1, fakes3.Unquoted: 2, fakes3.Weak: 3} {
		server := fakes3.Start(t, fakes3.Lacks{Match: form})
		b := openS3With(t, storage.Location{Bucket: "bucket"}, storage.S3Options{Endpoint: server.Endpoint})
		put(t, b, object("a", "1"), object("b", "1"))
		for i, key := range []site.Key{"a", "b"} {
			puts, heads := server.Requests(http.MethodPut), server.Requests(http.MethodHead)
			if _, err := b.Put(t.Context(), object(key, "2"), storage.Condition(object(key, "1").MD5.String())); err != nil {
				t.Fatalf("%s: %v", form, err)
			}
			if i == 1 {
				tries = 1
			}
			if n, asked := server.Requests(http.MethodPut)-puts, server.Requests(http.MethodHead)-heads; n != tries || asked != tries-1 {
				t.Errorf("%s: got %d puts and %d looks at %s, want %d and %d", form, n, asked, key, tries, tries-1)
			}
			holds(t, b, object(key, "2"))
		}
	}
}

// A replacement between partial reads is detected by ETag without If-Match, which some servers refuse.
func TestReadsCompareETags(t *testing.T) {
	server := fakes3.Start(t, fakes3.Lacks{Match: fakes3.None, ETag: fakes3.Weak})
	b := openS3With(t, storage.Location{Bucket: "bucket"}, storage.S3Options{Endpoint: server.Endpoint})
	info := make([]storage.Info, 2)
	put(t, b, object("key", "1"))
	var err error
	if info[0], err = b.Stat(t.Context(), "key"); err != nil {
		t.Fatal(err)
	}
	listsOnly(t, b, "", "", object("key", "1"))
	if _, info[1], err = b.Read(t.Context(), "key"); err != nil {
		t.Fatal(err)
	}
	for _, is := range info {
		if want := object("key", "1").MD5.String(); is.ETag != want {
			t.Errorf("got the ETag %q, want %q", is.ETag, want)
		}
	}
}

// Google Cloud Storage is not asked to delete several objects, because the library would delete them one by one, for
// minutes.
func TestGoogleDeletesOneObjectPerRequest(t *testing.T) {
	fakes3.Start(t, fakes3.Lacks{})
	b := openS3With(t, storage.Location{Bucket: "bucket"}, storage.S3Options{Endpoint: "https://storage.googleapis.com", Transport: noTransport{t}})
	if err := b.Delete(t.Context(), []site.Key{"a", "b"}); !errors.Is(err, storage.ErrUnsupported) {
		t.Errorf("got %v, want ErrUnsupported", err)
	}
}

// A folder placeholder from a console, an empty object whose key ends in a slash, is not listed. An object with
// content is.
func TestPlaceholdersOfFoldersAreNotListed(t *testing.T) {
	server := fakes3.Start(t, fakes3.Lacks{})
	options := storage.S3Options{Endpoint: server.Endpoint}
	top := openS3With(t, storage.Location{Bucket: "bucket"}, options)
	put(t, top, object("site/", ""), object("site/api/", ""), object("site/_refresh/", ""), object("site/api/v1", "1"), object("site/x/", "2"))
	b := openS3With(t, storage.Location{Bucket: "bucket", Prefix: "site/"}, options)
	listsOnly(t, b, "", "", object("api/v1", "1"), object("x/", "2"))
	listsOnly(t, b, "_refresh/", "")
	listsOnly(t, top, "", "", object("site/api/v1", "1"), object("site/x/", "2"))
	put(t, top, object("site/", "with content"))
	listsOnly(t, b, "", "", object("api/v1", "1"), object("x/", "2"))
}

// A request whose response was lost may have taken effect. One that could not connect has not.
func TestALostAnswerIsUnanswered(t *testing.T) {
	fakes3.Start(t, fakes3.Lacks{}) // credentials
	arrived := 0
	front := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived++
		panic(http.ErrAbortHandler)
	}))
	b := openS3With(t, storage.Location{Bucket: "bucket"}, storage.S3Options{Endpoint: front.URL})
	for _, want := range []bool{true, false} { // while the server is there, and afterwards
		_, err := b.Put(t.Context(), object("key", "{}"), storage.Always)
		var unanswered *storage.UnansweredError
		if errors.As(err, &unanswered) != want || !storage.Temporary(err) {
			t.Errorf("got %v (%T), want a temporary error, unanswered: %v", err, err, want)
		}
		front.Close()
	}
	if arrived == 0 {
		t.Error("got no request, want one")
	}
}

// noTransport fails a test that sends a request.
type noTransport struct{ t *testing.T }

func (n noTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	n.t.Errorf("got the request %s %s, want none", r.Method, r.URL)
	return nil, errors.New("no requests")
}

// TestReadRange: a range comes from the object with the ETag, or the read fails.
func TestReadRange(t *testing.T) {
	server := fakes3.Start(t, fakes3.Lacks{})
	b, o := openS3With(t, storage.Location{Bucket: "site"}, storage.S3Options{Endpoint: server.Endpoint}), object("a", "0123456789")
	put(t, b, o)
	etag := o.MD5.String()
	for _, tc := range []struct {
		key            site.Key
		etag           string
		offset, length int64
		want           string
		err            error
	}{
		{"a", etag, 0, 10, "0123456789", nil}, {"a", etag, 0, 1, "0", nil}, {"a", etag, 3, 4, "3456", nil}, {"a", etag, 9, 1, "9", nil},
		{"a", "0123", 3, 4, "", storage.ErrCondition}, {"b", etag, 3, 4, "", storage.ErrNotFound},
	} {
		stream, err := b.ReadRange(t.Context(), tc.key, tc.etag, tc.offset, tc.length)
		var got []byte
		if err == nil {
			got, err = io.ReadAll(stream)
			err = errors.Join(err, stream.Close())
		}
		if string(got) != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("%d bytes of %s from %d on: got %q, %v, want %q, %v", tc.length, tc.key, tc.offset, got, err, tc.want, tc.err)
		}
	}
	if _, err := b.ReadRange(t.Context(), "a", etag, 8, 4); err == nil {
		t.Error("a part beyond the end: got no error, want one")
	}
}
