package ask_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/followpress/followpress/internal/testenv/upstreams"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/internal/ask"
)

const root = "https://user:secret@example.com/secret"

// client asks a handler without a network.
func client(t testing.TB, o ask.Options, h http.HandlerFunc) *ask.Client {
	t.Helper()
	o.URL, o.Transport = root, upstreams.Transport(h)
	c, err := ask.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// inTurn answers each request by the next handler, and the rest by the last.
func inTurn(handlers ...http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := handlers[0]
		if len(handlers) > 1 {
			handlers = handlers[1:]
		}
		h(w, r)
	}
}

func status(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, fmt.Sprint(code))
	}
}

func cut(w http.ResponseWriter, _ *http.Request) { upstreams.Cut(w) }

// TestGet: which requests are retried, how long that takes, and the result.
func TestGet(t *testing.T) {
	long := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 101)) }
	for name, tc := range map[string]struct {
		handlers []http.HandlerFunc
		status   int
		err      error
		requests int
		takes    time.Duration
	}{
		"an answer":                   {[]http.HandlerFunc{status(200)}, 200, nil, 1, 0},
		"not found":                   {[]http.HandlerFunc{status(404)}, 404, nil, 1, 0},
		"a redirect":                  {[]http.HandlerFunc{status(302, "Location", "https://other.example/")}, 302, nil, 1, 0},
		"501":                         {[]http.HandlerFunc{status(501)}, 501, nil, 1, 0},
		"a passing failure":           {[]http.HandlerFunc{status(502), status(200)}, 200, nil, 2, time.Second},
		"a busy server":               {[]http.HandlerFunc{status(503, "Retry-After", "7"), status(200)}, 200, nil, 2, 7 * time.Second},
		"cut off":                     {[]http.HandlerFunc{cut, cut, status(200)}, 200, nil, 3, 3 * time.Second},
		"three failures":              {[]http.HandlerFunc{status(500)}, 0, ask.ErrFailed, 3, 3 * time.Second},
		"too long":                    {[]http.HandlerFunc{long}, 0, ask.ErrFailed, 1, 0},
		"limited, seconds":            {[]http.HandlerFunc{status(429, "Retry-After", "30"), status(200)}, 200, nil, 2, 30 * time.Second},
		"limited, a date":             {[]http.HandlerFunc{status(429, "Retry-After", "Sat, 01 Jan 2000 00:00:42 GMT"), status(200)}, 200, nil, 2, 42 * time.Second},
		"limited, nothing":            {[]http.HandlerFunc{status(429), status(429), status(429), status(200)}, 200, nil, 4, (7 + 14 + 28) * time.Second},
		"limited, nonsense":           {[]http.HandlerFunc{status(429, "Retry-After", "-3"), status(200)}, 200, nil, 2, 7 * time.Second},
		"limited, no wait":            {[]http.HandlerFunc{status(429, "Retry-After", "0"), status(200)}, 200, nil, 2, 7 * time.Second},
		"limited, a past date":        {[]http.HandlerFunc{status(429, "Retry-After", "Wed, 21 Oct 1998 07:28:00 GMT"), status(200)}, 200, nil, 2, 7 * time.Second},
		"limited for ever":            {[]http.HandlerFunc{status(429)}, 0, ask.ErrGaveUp, 13, 585 * time.Second},
		"limited for a day":           {[]http.HandlerFunc{status(429, "Retry-After", "86400")}, 0, ask.ErrGaveUp, 1, 0},
		"busy for a day":              {[]http.HandlerFunc{status(503, "Retry-After", "86400")}, 0, ask.ErrGaveUp, 1, 0},
		"a failure, then a 404":       {[]http.HandlerFunc{status(500), status(404)}, 404, nil, 2, time.Second},
		"a long answer that is a 404": {[]http.HandlerFunc{inTurn(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(404); long(w, r) })}, 404, nil, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := client(t, ask.Options{}, inTurn(tc.handlers...))
				begun := time.Now()
				answer, err := c.Lane(0, 7*time.Second).Get(t.Context(), "/path", url.Values{"q": {"secret"}}, 100)
				if answer.Status != tc.status || !errors.Is(err, tc.err) {
					t.Errorf("got %d, %v, want %d, %v", answer.Status, err, tc.status, tc.err)
				}
				if err != nil && (strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "example.com")) {
					t.Errorf("got %v, want the host and nothing secret", err)
				}
				if got := c.Cost().Requests; got != tc.requests {
					t.Errorf("requests: got %d, want %d", got, tc.requests)
				}
				if took := time.Since(begun); took.Round(time.Second) != tc.takes {
					t.Errorf("took %v, want %v", took, tc.takes)
				}
			})
		})
	}
}

// TestGiveUp: a service that keeps failing is not asked for ever, but one that answers now and then is.
func TestGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, ask.Options{}, status(500))
		lane := c.Lane(0, 0)
		for range 100 {
			if _, err := lane.Get(t.Context(), "/", nil, 100); errors.Is(err, ask.ErrGaveUp) {
				break
			} else if !errors.Is(err, ask.ErrFailed) {
				t.Fatalf("got %v, want ErrFailed", err)
			}
		}
		if got := c.Cost().Requests; got != 10 {
			t.Errorf("requests: got %d, want 10", got)
		}
		if _, err := lane.Get(t.Context(), "/", nil, 100); !errors.Is(err, ask.ErrGaveUp) || c.Cost().Requests != 10 {
			t.Errorf("after giving up: got %v, %d requests, want no more", err, c.Cost().Requests)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		n := 0
		c := client(t, ask.Options{}, func(w http.ResponseWriter, r *http.Request) {
			n++
			status(map[bool]int{true: 200, false: 500}[n%3 == 0])(w, r)
		})
		lane := c.Lane(0, 0)
		for range 50 {
			if _, err := lane.Get(t.Context(), "/", nil, 100); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestOwn: a failure about the requested item is an answer.
func TestOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, ask.Options{}, inTurn(status(502), status(500), status(502)))
		lane := c.Lane(0, 0)
		lane.Own = func(a ask.Answer) bool { return string(a.Body) == "502" }
		for _, requests := range []int{1, 3} {
			answer, err := lane.Get(t.Context(), "/", nil, 100)
			if err != nil || answer.Status != 502 || c.Cost().Requests != requests {
				t.Errorf("got %d, %v after %d requests, want 502 after %d", answer.Status, err, c.Cost().Requests, requests)
			}
		}
	})
}

// TestPace: requests keep their distance, a longer one after a limit.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var at []time.Duration
		c := client(t, ask.Options{}, func(w http.ResponseWriter, r *http.Request) {
			at = append(at, time.Since(begun))
			status(map[bool]int{true: 429, false: 200}[len(at) == 3])(w, r)
		})
		lane := c.Lane(time.Second, 5*time.Second)
		for range 4 {
			if _, err := lane.Get(t.Context(), "/", nil, 100); err != nil {
				t.Fatal(err)
			}
		}
		want := []time.Duration{0, time.Second, 2 * time.Second, 7 * time.Second, 12 * time.Second}
		if !slices.Equal(at, want) || !lane.Limited() {
			t.Errorf("requests at %v, limited %v, want %v and limited", at, lane.Limited(), want)
		}
	})
}

func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, ask.Options{Budget: source.Budget{Requests: 3}}, status(200))
		lane := c.Lane(0, 0)
		for range 3 {
			if _, err := lane.Get(t.Context(), "/", nil, 100); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := lane.Get(t.Context(), "/", nil, 100); !errors.Is(err, ask.ErrSpent) {
			t.Errorf("the fourth of three requests: got %v, want ErrSpent", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := client(t, ask.Options{Budget: source.Budget{Time: time.Minute}}, inTurn(status(200), status(429, "Retry-After", "59"), status(200), status(429, "Retry-After", "59")))
		lane, begun := c.Lane(0, 0), time.Now()
		var err error
		for n := 0; err == nil && n < 10; n++ {
			_, err = lane.Get(t.Context(), "/", nil, 100)
		}
		if took := time.Since(begun); !errors.Is(err, ask.ErrSpent) || took > time.Minute {
			t.Errorf("got %v after %v, want ErrSpent within a minute", err, took)
		}
	})
}

// TestCancelled: canceling the context ends the wait.
func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, ask.Options{}, status(429))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		begun := time.Now()
		if _, err := c.Lane(0, time.Minute).Get(ctx, "/", nil, 100); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) > 4*time.Second {
			t.Errorf("got %v after %v, want the end of the context", err, time.Since(begun))
		}
	})
}

func TestNew(t *testing.T) {
	for _, text := range []string{"", "example.com", "ftp://example.com", "https://", "https://example.com/?key=secret", "https://example.com/#secret", "https://example.com/\x00secret"} {
		if _, err := ask.New(ask.Options{URL: text}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got %v, want an error without the URL", text, err)
		}
	}
	_, err := ask.New(ask.Options{URL: "https://example.com", Header: http.Header{"X-Api-Key": {"secret\n"}}})
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a key with a line end: got %v, want an error without it", err)
	}
}

// TestNetwork: over a real connection, with compression, cut answers, and a server that is not there.
func TestNetwork(t *testing.T) {
	body := strings.Repeat("a", 5000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/base/cut":
			upstreams.Cut(w)
		case r.Header.Get("Accept-Encoding") != "gzip" || r.Header.Get("X-API-Key") != "key":
			http.Error(w, "not compressed", http.StatusBadRequest)
		default:
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write([]byte(body))
			_ = z.Close()
		}
	}))
	defer server.Close()
	var log bytes.Buffer
	header := http.Header{}
	header.Set("X-API-Key", "key")
	c, err := ask.New(ask.Options{URL: server.URL + "/base/", Header: header, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	lane := c.Lane(0, 0)
	if answer, err := lane.Get(t.Context(), "/path", nil, 5000); err != nil || string(answer.Body) != body {
		t.Errorf("got %d bytes, %v, want 5000", len(answer.Body), err)
	}
	if _, err := lane.Get(t.Context(), "/path", nil, 4999); !errors.Is(err, ask.ErrFailed) { // compressed it is shorter
		t.Errorf("one byte too long: got %v, want ErrFailed", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if answer, err := lane.Get(ctx, "/cut", nil, 5000); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("cut off: got %v, %v, want no answer", answer, err)
	}
	if !strings.Contains(log.String(), "EOF") || strings.Contains(log.String(), "/cut") {
		t.Errorf("log: got %s, want the failure without the URL", log.String())
	}
}
