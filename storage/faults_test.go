package storage_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/followpress/followpress/internal/testenv/fakes3"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/internal/s3"
	"github.com/followpress/followpress/storage/internal/storetest"
	"github.com/followpress/followpress/storage/parts"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestAServerThatIsGoneIsTemporary(t *testing.T) {
	onServers(t, func(t *testing.T, server *servers.Server) {
		bucket := server.Bucket(t)
		b := openS3(t, server, storage.Location{Bucket: bucket})
		put(t, b, object("there", "{}")) // a connection is open when the server goes
		server.Stop()
		for range 2 {
			for name, operation := range operations() {
				if err := operation(t.Context(), b); !storage.Temporary(err) {
					t.Errorf("%s: got %v, want a temporary error", name, err)
				}
			}
		}
		server.Start()
		holds(t, b, object("there", "{}"))
	})
}

// TestAConnectionThatBreaksIsTemporary breaks responses at many points: either the result is complete, or the error
// is temporary.
func TestAConnectionThatBreaksIsTemporary(t *testing.T) {
	onServers(t, func(t *testing.T, server *servers.Server) {
		at := storage.Location{Bucket: server.Bucket(t)}
		direct := openS3(t, server, at)
		there := object("there", strings.Repeat("followpress", 200))
		all := []storage.Object{there}
		for i := range 20 {
			all = append(all, object(site.Key(fmt.Sprintf("kept/%02d", i)), "{}"))
		}
		put(t, direct, all...)
		if err := direct.AllowRead(t.Context(), []string{"*"}); err != nil {
			t.Fatal(err)
		}

		operations := operations()
		operations["read"] = func(ctx context.Context, b *s3.Bucket) error {
			body, _, err := b.Read(ctx, there.Key)
			if err == nil && string(body) != string(there.Body) {
				t.Errorf("truncated read: got %d bytes of %d, want an error", len(body), there.Size)
			}
			return err
		}
		operations["list"] = func(ctx context.Context, b *s3.Bucket) error {
			n := 0
			err := b.List(ctx, "kept/", "", func(storage.Info) error { n++; return nil })
			if err == nil && n != 20 {
				t.Errorf("truncated listing: got %d objects of 20, want an error", n)
			}
			return err
		}
		operations["put if"] = func(ctx context.Context, b *s3.Bucket) error {
			_, err := b.Put(ctx, object("never", "{}"), "00000000000000000000000000000000")
			if err == nil {
				t.Error("put under a condition that does not hold: got no error, want one")
			} else if errors.Is(err, storage.ErrCondition) {
				return nil
			}
			return err
		}
		operations["unpacks"] = func(ctx context.Context, b *s3.Bucket) error {
			_, err := b.Unpacks(ctx, []storage.Object{object("u", "{}")})
			return err
		}

		large := object("large", strings.Repeat("z", 1<<20))
		operations["put large"] = func(ctx context.Context, b *s3.Bucket) error {
			_, err := b.Put(ctx, large, storage.Always)
			return err
		}

		var cuts []int64
		for n := int64(0); n < 8000; n += 1 + n/12 {
			cuts = append(cuts, n)
		}
		for name, operation := range operations {
			t.Run(name, func(t *testing.T) {
				var group sync.WaitGroup
				limit := make(chan struct{}, 8)
				var failed, succeeded int
				var mu sync.Mutex
				for i, cut := range cuts {
					proxy := server.Proxy(t)
					proxy.Break(cut, i%2 == 0)
					b := openS3With(t, at, storage.S3Options{Endpoint: proxy.Endpoint})
					limit <- struct{}{}
					group.Go(func() {
						defer func() { <-limit }()
						err := operation(t.Context(), b)
						mu.Lock()
						defer mu.Unlock()
						if err == nil || name == "allow origin" && errors.Is(err, storage.ErrUnsupported) {
							succeeded++
							return
						}
						failed++
						if !storage.Temporary(err) {
							t.Errorf("cut after %d bytes: got %v, want a temporary error", cut, err)
						}
					})
				}
				group.Wait()
				if failed == 0 || succeeded == 0 {
					t.Errorf("cuts: got %d failures and %d successes, want some of both", failed, succeeded)
				}
			})
		}
		holds(t, direct, there)
	})
}

// Keys missing from a delete response may not be deleted, so they are deleted one by one. Errors of single keys are
// errors.
func TestADeleteIsWhatTheServerSaysItIs(t *testing.T) {
	pattern := regexp.MustCompile(`(?s)<Deleted>.*?</Deleted>`)
	first := func(by string) func(string) string {
		return func(body string) string { return replaceFirst(pattern, body, by) }
	}
	objects := []storage.Object{object("a", "1"), object("b & c", "2"), object("ü", "3")}
	onServersAndFake(t, func(t *testing.T, endpoint, bucket string) {
		at := storage.Location{Bucket: bucket, Prefix: "p/"}
		direct := openS3With(t, at, storage.S3Options{Endpoint: endpoint})
		for name, c := range map[string]struct {
			rewrite   func(body string) string // rewrites the answer
			left      int                      // objects that are there still
			says      string
			temporary bool
		}{
			"as it is":                {rewrite: func(body string) string { return body }},
			"one is left out":         {rewrite: first(""), left: 1},
			"another instead":         {rewrite: first("<Deleted><Key>p/other</Key></Deleted>"), left: 1},
			"only errors are told":    {rewrite: func(body string) string { return pattern.ReplaceAllString(body, "") }, left: 3},
			"one is busy":             {rewrite: first("<Error><Key>p/a</Key><Code>SlowDown</Code></Error>"), left: 1, says: "SlowDown", temporary: true},
			"one is denied":           {rewrite: first("<Error><Key>p/a</Key><Code>AccessDenied</Code></Error>"), left: 1, says: "AccessDenied"},
			"one the library ignores": {rewrite: first("<Error><Key>p/a</Key><Code>InvalidArgument</Code></Error>"), left: 1},
		} {
			t.Run(name, func(t *testing.T) {
				put(t, direct, objects...)
				front := httptest.NewServer(&httputil.ReverseProxy{
					Rewrite: func(r *httputil.ProxyRequest) {
						r.Out.URL.Scheme, r.Out.URL.Host = "http", strings.TrimPrefix(endpoint, "http://")
					},
					ModifyResponse: func(r *http.Response) error {
						if !r.Request.URL.Query().Has("delete") {
							return nil
						}
						put(t, direct, objects[:c.left]...)
						body, err := io.ReadAll(r.Body)
						body = []byte(c.rewrite(string(body)))
						r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
						r.Header.Del("Content-Length")
						return err
					},
				})
				t.Cleanup(front.Close)
				b := openS3With(t, at, storage.S3Options{Endpoint: front.URL})
				err := b.Delete(t.Context(), []site.Key{"a", "b & c", "ü"})
				if c.says == "" {
					if err != nil {
						t.Error(err)
					}
					listsOnly(t, direct, "", "")
				} else if err == nil || !strings.Contains(err.Error(), c.says) || storage.Temporary(err) != c.temporary {
					t.Errorf("error: got %v (temporary: %v), want %q (%v)", err, storage.Temporary(err), c.says, c.temporary)
				}
			})
		}
	})
}

func replaceFirst(pattern *regexp.Regexp, text, by string) string {
	place := pattern.FindStringIndex(text)
	if place == nil {
		return text
	}
	return text[:place[0]] + by + text[place[1]:]
}

func TestADeadlineIsTemporaryAndACancelIsNot(t *testing.T) {
	onServers(t, func(t *testing.T, server *servers.Server) {
		b := openS3(t, server, storage.Location{Bucket: server.Bucket(t)})
		late, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
		defer cancel()
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		for name, operation := range operations() {
			if err := operation(late, b); !storage.Temporary(err) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s with no time left: got %v, want DeadlineExceeded", name, err)
			}
			if err := operation(cancelled, b); storage.Temporary(err) || !errors.Is(err, context.Canceled) {
				t.Errorf("%s, cancelled: got %v, want Canceled", name, err)
			}
		}
	})
}

func TestTheWrongSchemeIsNotTemporary(t *testing.T) {
	onServers(t, func(t *testing.T, server *servers.Server) {
		endpoint := strings.Replace(server.Endpoint, "http://", "https://", 1)
		b := openS3With(t, storage.Location{Bucket: "bucket"}, storage.S3Options{Endpoint: endpoint})
		if _, _, err := b.Read(t.Context(), "key"); err == nil || storage.Temporary(err) {
			t.Errorf("error: got %v, want a permanent error", err)
		}
	})
}

// A reader answers with a function of the attempt's number.
type reader func(ctx context.Context, attempt int, admit func(ctx context.Context, size int64) error) ([]byte, error)

type counted struct {
	reader
	attempts int
}

func (c *counted) GetAdmitted(ctx context.Context, _ site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	c.attempts++
	return c.reader(ctx, c.attempts, admit)
}

// TestRetrying: temporary failures are retried until the patience ends, a hanging read is interrupted, and no read
// exceeds its limit, whether the server states the size or not.
func TestRetrying(t *testing.T) {
	t.Parallel()
	lost := &storage.UnansweredError{Err: errors.New("the network failed")}
	said := func(size int64, body string) reader {
		return func(ctx context.Context, _ int, admit func(context.Context, int64) error) ([]byte, error) {
			if err := admit(ctx, size); err != nil {
				return nil, err
			}
			return []byte(body), nil
		}
	}
	for _, c := range []struct {
		name     string
		from     reader
		attempts int
		took     [2]time.Duration // at least, at most
		body     string
		err      error
	}{
		{"an answer", said(4, "body"), 1, [2]time.Duration{}, "body", nil},
		{"an answer at the bound", said(8, "12345678"), 1, [2]time.Duration{}, "12345678", nil},
		{"too large, as the server says", said(9, "never sent"), 1, [2]time.Duration{}, "", storage.ErrTooLarge},
		{"too large, and the server has not said", said(0, "123456789"), 1, [2]time.Duration{}, "", storage.ErrTooLarge},
		{"busy twice", func(_ context.Context, n int, _ func(context.Context, int64) error) ([]byte, error) {
			if n < 3 {
				return nil, lost
			}
			return []byte("body"), nil
		}, 3, [2]time.Duration{200 * time.Millisecond, time.Second}, "body", nil},
		{"no such object", func(context.Context, int, func(context.Context, int64) error) ([]byte, error) {
			return nil, storage.ErrNotFound
		}, 1, [2]time.Duration{}, "", storage.ErrNotFound},
		{"one request hangs", func(ctx context.Context, n int, _ func(context.Context, int64) error) ([]byte, error) {
			if n == 1 {
				<-ctx.Done()
				return nil, &storage.UnansweredError{Err: ctx.Err()}
			}
			return []byte("body"), nil
		}, 2, [2]time.Duration{7 * time.Second, 8 * time.Second}, "body", nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			from := &counted{reader: c.from}
			begun := time.Now()
			body, err := storage.Retrying{From: from, Retry: storage.Retry{Patience: time.Minute, Attempt: 7 * time.Second}}.GetBounded(t.Context(), "key", 8)
			took := time.Since(begun)
			if !errors.Is(err, c.err) || c.err == nil && string(body) != c.body {
				t.Errorf("%s: got %q, %v, want %q, %v", c.name, body, err, c.body, c.err)
			}
			if from.attempts != c.attempts || took < c.took[0] || took > c.took[1] {
				t.Errorf("%s: got %d attempts in %v, want %d in %v", c.name, from.attempts, took, c.attempts, c.took)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		from := &counted{reader: func(context.Context, int, func(context.Context, int64) error) ([]byte, error) { return nil, lost }}
		begun := time.Now()
		_, err := storage.Retrying{From: from, Retry: storage.Retry{Patience: time.Minute, Hint: "look"}}.GetBounded(t.Context(), "key", 8)
		if took := time.Since(begun); !errors.Is(err, lost) || took > time.Minute || took < 50*time.Second {
			t.Errorf("never an answer: got %v after %v, want its error within the patience of a minute", err, took)
		}
	})
}

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
