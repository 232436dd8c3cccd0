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
	"time"

	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/internal/s3"
	"github.com/followpress/followpress/storage/internal/storetest"
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
