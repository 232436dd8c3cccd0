package storage_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/followpress/followpress/internal/testenv/fakes3"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A server that deletes one object per request says so, and nothing is deleted; parts are removed one
// by one then.
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
		parts, err := storage.OpenParts(t.Context(), "s3://bucket", storage.S3Options{Endpoint: server.Endpoint})
		if err != nil {
			t.Fatal(err)
		}
		if err := parts.Remove(t.Context(), "a", "b"); err != nil || len(server.Keys()) > 0 {
			t.Errorf("%d: parts: got %v and %q, want none left", status, err, server.Keys())
		}
	}
}

// Google Cloud Storage is not asked to delete several objects: the library would delete one after the
// other, for minutes, in what looks like one request.
func TestGoogleDeletesOneObjectPerRequest(t *testing.T) {
	fakes3.Start(t, fakes3.Lacks{})
	b := openS3With(t, storage.Location{Bucket: "bucket"}, storage.S3Options{Endpoint: "https://storage.googleapis.com", Transport: noTransport{t}})
	if err := b.Delete(t.Context(), []site.Key{"a", "b"}); !errors.Is(err, storage.ErrUnsupported) {
		t.Errorf("got %v, want ErrUnsupported", err)
	}
}

// A folder that somebody has made in a console is an empty object whose key ends in a slash. It is no
// object of a bucket; one that has content is.
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

// A request whose answer was lost may have taken effect. One that could not connect has not.
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
