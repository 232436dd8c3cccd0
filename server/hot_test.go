package server_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/storage"
)

// An answer from the cache by its path alone is the one that a request gets otherwise: the same
// status, headers and body, however odd the request.
func TestHotAnswersAreTheSame(t *testing.T) {
	t.Parallel()
	memory, _, err := generator.ToMemory(t.Context(), conformanceSnapshot(), generator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	handler := newHandler(t, storage.NewFolder(memory), server.Options{})
	cases := readCases(t)
	random := rand.New(rand.NewPCG(1, 14))
	hot := 0
	for n := range servers.Rounds(2, 20) * len(cases) {
		path := cases[n%len(cases)].Path
		plain, _, _ := strings.Cut(path, "?")
		etag := ask(handler, plain).Header().Get("Etag")
		ask(handler, path)
		if handler.IsHot(plain) {
			hot++
		}
		request := "GET " + path + " HTTP/1.1\r\n"
		if n >= len(cases) {
			request = oddRequest(random, plain, path, etag)
		}
		fast, ok := parsedAnswer(handler, request)
		if !ok { // net/http refuses it
			continue
		}
		handler.Forget()
		slow, _ := parsedAnswer(handler, request)
		if fast.Code != slow.Code || !reflect.DeepEqual(fast.Header(), slow.Header()) || fast.Body.String() != slow.Body.String() {
			t.Errorf("%q:\n got %d %v %.200s\nwant %d %v %.200s", request, fast.Code, fast.Header(), fast.Body, slow.Code, slow.Header(), slow.Body)
		}
	}
	if hot < len(cases)/4 {
		t.Errorf("got %d answers by path alone, want more of them", hot)
	}
}

// parsedAnswer answers a request line with headers, as net/http parses it.
func parsedAnswer(handler http.Handler, request string) (*httptest.ResponseRecorder, bool) {
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(request + "Host: example.org\r\nX-Request-Id: one\r\n\r\n")))
	if err != nil {
		return nil, false
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w, true
}

// oddRequest returns a request for a path of the API, or one near it, that few clients send.
func oddRequest(random *rand.Rand, plain, path, etag string) string {
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	at := 1 + random.IntN(len(plain)-1)
	target := pick(plain, plain, plain, path,
		plain+"?", plain+"?x=1", plain+"?cache=fresh", plain+"?includeTags=false", plain+"?includeTags=true&includeTags=false", plain+"?limit=3", plain+"?%zz", plain+"?;",
		plain+"/", "/"+plain, plain+"#x", plain+"%00", plain+"%20", plain+"/../"+plain[1:], strings.ToUpper(plain), strings.Replace(plain, "/", "%2F", 2), strings.Replace(plain, "/", "//", 2),
		plain[:at]+fmt.Sprintf("%%%02x", plain[at])+plain[at+1:], plain[:at]+fmt.Sprintf("%%%02X", plain[at])+plain[at+1:], plain[:at]+"é"+plain[at:], plain[:at],
		"http://example.org"+plain, "*")
	headers := ""
	for range random.IntN(3) {
		headers += pick("If-None-Match: "+etag, "If-None-Match: W/"+etag, `If-None-Match: "other", `+etag, "If-None-Match: *", `If-None-Match: "other"`, "If-None-Match: "+strings.Trim(etag, `"`),
			"If-Match: "+etag, "If-Modified-Since: Mon, 01 Jan 2035 00:00:00 GMT", "Range: bytes=0-9", "Range: bytes=5-\r\nIf-Range: "+etag,
			"Accept-Encoding: gzip", "Accept: text/html", "Origin: https://example.org", "Connection: close", "Expect: 100-continue") + "\r\n"
	}
	method := pick("GET", "GET", "GET", "GET", "HEAD", "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "get", "PURGE")
	return method + " " + target + " " + pick("HTTP/1.1", "HTTP/1.1", "HTTP/1.0") + "\r\n" + headers
}

// Records without tags are made of the records in the cache, not read again.
func TestRecordsWithoutTagsOfTheCache(t *testing.T) {
	t.Parallel()
	store := &recordingStore{Store: storage.NewFolder(demo(t))}
	handler := newHandler(t, store, server.Options{})
	want := ask(handler, largeList+"records?includeTags=false").Body.String()
	handler.Forget()
	ask(handler, largeList+"records")
	store.objects()
	if got := ask(handler, largeList+"records?includeTags=false").Body.String(); got != want {
		t.Errorf("got %.300s, want %.300s", got, want)
	}
	if got := store.objects(); len(got) != 0 {
		t.Errorf("got %d reads, want none: %v", len(got), got)
	}
}

// Records without tags are not made of records that have to be read again.
func TestOldRecordsAreReadAgain(t *testing.T) {
	t.Parallel()
	store := &recordingStore{Store: storage.NewFolder(demo(t))}
	clock := &stoppedClock{}
	clock.now.Store(time.Now().UnixNano())
	o := server.Options{}
	o.SetClock(clock)
	handler := newHandler(t, store, o)
	ask(handler, largeList+"records")
	clock.pass(6 * time.Minute)
	store.objects()
	ask(handler, largeList+"records?includeTags=false")
	if len(store.objects()) == 0 {
		t.Error("got no read, want one")
	}
}
