package edge_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// object answers with a body that is soon stale.
func object(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "public, max-age=1, stale-if-error=600")
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("X-Request-Id", "1")
		_, _ = io.WriteString(w, body)
	}
}

// An error of the bucket becomes a 503 in JSON without the bucket's body; cached answers
// are served on.
func TestWorkerBucketErrors(t *testing.T) {
	t.Parallel()
	const path = "/api/v1/lists/8/details"
	bucket := newWitness(t, object("kept"))
	base := startWorker(t, bucket.URL+"/bucket", "")
	for range 2 { // the second time out of the cache
		a := ask(t, http.MethodGet, base, path)
		if a.status != http.StatusOK || a.body != "kept" || a.header["Set-Cookie"] != nil || a.header["X-Request-Id"] != nil {
			t.Errorf("the first answer: got %d %v %s, want 200 without Set-Cookie and X-Request-Id", a.status, a.header, a.body)
		}
	}
	time.Sleep(1500 * time.Millisecond)
	for _, code := range []int{204, 206, 301, 302, 307, 400, 401, 402, 405, 409, 412, 416, 429, 500, 502, 503, 507} {
		bucket.answers(status(code))
		before := len(bucket.all())
		if a := ask(t, http.MethodGet, base, path); a.status != http.StatusOK || a.body != "kept" {
			t.Errorf("status %d of the bucket: got %d %s, want the stale answer", code, a.status, a.body)
		}
		isUnavailable(t, fmt.Sprint(code), ask(t, http.MethodGet, base, "/api/v1/lists/7/details"))
		if n := len(bucket.all()) - before; n != 2 {
			t.Errorf("status %d of the bucket: got %d requests, want 2", code, n)
		}
	}
	bucket.answers(object("new"))
	if a := ask(t, http.MethodGet, base, path); a.body != "new" {
		t.Errorf("the bucket is up again: got %s, want the new answer", a.body)
	}
}

// The origins receive neither the headers nor the body of a client.
func TestWorkerOriginsReceive(t *testing.T) {
	t.Parallel()
	bucket, fallback := newWitness(t, object("{}")), newWitness(t, object("{}"))
	base := startWorker(t, bucket.URL+"/bucket", fallback.URL)
	for _, path := range []string{"/api/v1/lists/8/details", "/api/v1/lists/8/searchFollowing?term=a", "/api/v1/lists/8/details?cache=fresh"} {
		a := ask(t, http.MethodGet, base, path, "If-Match", "mine", "Cookie", "mine", "Authorization", "mine", "X-Amz-Date", "mine", "Range", "bytes=0-1",
			"Referer", "mine", "X-Forwarded-For", "mine", "If-None-Match", "mine", "Origin", "mine")
		if a.status != http.StatusOK || a.header["Set-Cookie"] != nil || a.header["X-Request-Id"] != nil {
			t.Errorf("%s: got %d %v, want 200 without Set-Cookie and X-Request-Id", path, a.status, a.header)
		}
	}
	all := append(bucket.all(), fallback.all()...)
	if len(all) != 3 {
		t.Errorf("requests: got %d, want 3", len(all))
	}
	for _, r := range all {
		for name, values := range r.header {
			if strings.Contains(strings.Join(values, " "), "mine") || name == "Range" {
				t.Errorf("%s: got the header %s: %s, want none of the client's", r.uri, name, values)
			}
		}
	}
}

// An origin that does not answer counts as failed.
func TestWorkerHangingBucket(t *testing.T) {
	t.Parallel()
	const path = "/api/v1/lists/8/details"
	bucket := newWitness(t, object("kept"))
	base := startWorker(t, bucket.URL+"/bucket", "")
	ask(t, http.MethodGet, base, path)
	time.Sleep(1500 * time.Millisecond)
	bucket.answers(hang(t))
	begun := time.Now()
	if a := ask(t, http.MethodGet, base, path); a.status != http.StatusOK || a.body != "kept" {
		t.Errorf("the bucket hangs: got %d %s, want the stale answer", a.status, a.body)
	}
	if took := time.Since(begun); took < 10*time.Second || took > time.Minute {
		t.Errorf("the bucket hangs: got an answer after %v, want 10s to a minute", took)
	}
	isUnavailable(t, "nothing kept", ask(t, http.MethodGet, base, "/api/v1/lists/7/details"))
}
