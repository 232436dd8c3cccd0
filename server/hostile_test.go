package server_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	json "github.com/goccy/go-json"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/storage"
)

// impatient are limits that a test can wait for.
var impatient = server.Limits{
	HeaderTimeout: 300 * time.Millisecond, RequestTimeout: 400 * time.Millisecond,
	WriteTimeout: 500 * time.Millisecond, IdleTimeout: 300 * time.Millisecond,
}

// patience is how long a test waits for what normally takes less than a second.
const patience = 20 * time.Second

// serveDemo serves the demo site as the commands do. returned checks that the process
// holds no more than it did at first.
func serveDemo(t *testing.T, limits server.Limits) (base string, returned func()) {
	t.Helper()
	base = listenWithin(t, newHandler(t, storage.NewFolder(demo(t)), server.Options{}).Probes(), limits)
	askDemo(t, base) // the first request allocates
	before := measure()
	return base, func() {
		t.Helper()
		askDemo(t, base)
		var after use
		waitFor(t, func() bool {
			after = measure()
			return after.goroutines <= before.goroutines && after.bytes <= before.bytes+memoryMargin
		}, func() string { return fmt.Sprintf("%+v, want at most %+v", after, before) })
	}
}

// memoryMargin is the memory that the runtime may keep: some 450 bytes per goroutine that ever ran
// concurrently, of which one test has 10,000.
const memoryMargin = 8 << 20

// use is the resource use of a process.
type use struct {
	goroutines int
	bytes      uint64 // heap and stacks
}

func measure() use {
	http.DefaultClient.CloseIdleConnections()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return use{runtime.NumGoroutine(), m.HeapAlloc + m.StackInuse}
}

func waitFor(t *testing.T, done func() bool, told func() string) {
	t.Helper()
	for begun := time.Now(); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > patience {
			t.Fatalf("after %v: got %s", patience, told())
		}
	}
}

// askDemo sends requests of a well-behaved client, which must always be answered.
func askDemo(t *testing.T, base string) {
	t.Helper()
	var response *http.Response
	waitFor(t, func() (answered bool) {
		r, err := http.Get(base + largeList + "details")
		response = r
		return err == nil
	}, func() string { return "no answer for an honest client" })
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || !json.Valid(body) {
		t.Errorf("an honest client: got %d %s %v, want 200 and JSON", response.StatusCode, body, err)
	}
}

func dial(t *testing.T, base string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // perhaps it is closed already
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// A reply is an answer on a connection that a test writes to byte by byte.
type reply struct {
	*http.Response
	body []byte
}

// exchange sends bytes and returns all answers until the server closes the connection,
// which it must.
func exchange(t *testing.T, base, sent string) []reply {
	t.Helper()
	return talk(t, dial(t, base), sent)
}

// talk is exchange over a connection.
func talk(t *testing.T, conn net.Conn, sent string) []reply {
	t.Helper()
	go func() { _, _ = io.WriteString(conn, sent) }() // the server may have seen enough before the end
	answers := bufio.NewReader(conn)
	var replies []reply
	for {
		if _, err := answers.Peek(1); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%.80q: got a connection that stays open, want an end", sent)
			}
			return replies
		}
		response, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Errorf("%.80q: got %v, want an answer", sent, err)
			return replies
		}
		body, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			t.Errorf("%.80q: got %v, want a whole answer", sent, err)
		}
		replies = append(replies, reply{response, body})
	}
}

func statuses(replies []reply) (all []int) {
	for _, r := range replies {
		all = append(all, r.StatusCode)
	}
	return all
}

// Clients slower than the limits are disconnected while others get answers at once. Their resources
// are freed.
func TestSlowClients(t *testing.T) {
	base, returned := serveDemo(t, impatient)
	var group sync.WaitGroup
	const line = "GET " + largeList + "records HTTP/1.1\r\nHost: x\r\n"
	for _, c := range []struct {
		name, sent string
		statuses   []int // before the connection ends
	}{
		{"nothing", "", nil},
		{"half a line", "GET /api", []int{400}},
		{"half the headers", line + "X-Slow", []int{400}},
		{"no body", "POST /_site HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n", []int{405}},
		{"half a body", line + "Content-Length: 10\r\n\r\nhalf", []int{200}},
		{"an endless body", line + "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n", []int{200}},
		{"a body that was not asked for", line + "Expect: 100-continue\r\nContent-Length: 10\r\n\r\n", []int{200}},
		{"no second request", line + "\r\n", []int{200}},
		{"half a second request", line + "\r\nGET /", []int{200, 400}},
	} {
		for range 50 {
			group.Go(func() {
				if got := statuses(exchange(t, base, c.sent)); fmt.Sprint(got) != fmt.Sprint(c.statuses) {
					t.Errorf("%s: got %v, want %v", c.name, got, c.statuses)
				}
			})
		}
		askDemo(t, base)
	}
	group.Wait()
	returned()
}

// A client that sends its headers byte by byte gets no more time than one that sends
// none.
func TestDrippingClients(t *testing.T) {
	base, returned := serveDemo(t, impatient)
	conn := dial(t, base)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, conn) // until the server ends it
	}()
	drip := time.NewTicker(20 * time.Millisecond)
	defer drip.Stop()
	request := bytes.NewBufferString("GET / HTTP/1.1\r\nX-Drip: " + strings.Repeat("x", 2000))
	for begun := time.Now(); ; {
		select {
		case <-ended:
			returned()
			return
		case <-drip.C:
			_, _ = conn.Write(request.Next(1)) // the end shows on the other side
		}
		if time.Since(begun) > patience {
			t.Fatal("the listener: got an open one, want it closed")
		}
	}
}

// A client that sends requests and never reads does not make the server buffer the answers.
func TestClientsThatNeverRead(t *testing.T) {
	base, returned := serveDemo(t, impatient)
	asked := strings.Repeat("GET "+largeList+"records HTTP/1.1\r\nHost: x\r\n\r\n", 1000)
	for range 20 {
		conn := dial(t, base)
		if err := conn.SetReadBuffer(4096); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.WriteString(conn, asked) }() // until the server ends it
	}
	askDemo(t, base)
	returned()
}

// Requests larger than the limit are refused, whichever part is large; smaller ones are
// not.
func TestLargeRequests(t *testing.T) {
	const large = 1 << 20
	base, returned := serveDemo(t, server.Limits{HeaderBytes: 8 << 10, IdleTimeout: impatient.IdleTimeout})
	var group sync.WaitGroup
	for _, c := range []struct {
		name, sent string
		status     int
	}{
		{"path", "GET /" + strings.Repeat("x", large) + " HTTP/1.1\r\nHost: x\r\n\r\n", 431},
		{"query", "GET /_site?" + strings.Repeat("x=y&", large/4) + " HTTP/1.1\r\nHost: x\r\n\r\n", 431},
		{"method", strings.Repeat("GET", large/3) + " /_site HTTP/1.1\r\nHost: x\r\n\r\n", 431},
		{"header", "GET /_site HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", large) + "\r\n\r\n", 431},
		{"name of a header", "GET /_site HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("x", large) + ": x\r\n\r\n", 431},
		{"many headers", "GET /_site HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X: y\r\n", large/6) + "\r\n", 431},
		{"just over", "GET /_site HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 8<<10) + "\r\n\r\n", 431},
		{"just below", "GET /_site HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 8<<10-100) + "\r\n\r\n", 200},
		{"long tag", "GET /_site HTTP/1.1\r\nHost: x\r\nIf-None-Match: " + strings.Repeat(`"x", `, 1500) + "\r\n\r\n", 200},
		{"body", "POST /_site HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n" + strings.Repeat("x", large), 405},
		{"body that is too long for numbers", "POST /_site HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n", 400},
	} {
		group.Go(func() {
			if got := statuses(exchange(t, base, c.sent)); len(got) != 1 || got[0] != c.status {
				t.Errorf("%s: got %v, want %d", c.name, got, c.status)
			}
		})
	}
	group.Wait()
	returned()
}

// Request smuggling: a server in front may disagree about where a request ends. A
// request that is hidden in another one is never answered.
func TestRequestSmuggling(t *testing.T) {
	const (
		start  = "GET /_errors/no-such-list HTTP/1.1\r\nHost: x\r\n"
		hidden = "GET /_site HTTP/1.1\r\nHost: x\r\n\r\n"
	)
	base, returned := serveDemo(t, impatient)
	if got := statuses(exchange(t, base, start+"\r\n"+hidden)); fmt.Sprint(got) != "[200 200]" {
		t.Fatalf("two honest requests: got %v, want [200 200]", got)
	}
	for _, sent := range []string{
		// Two lengths, of which one is wrong.
		start + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		start + "Transfer-Encoding: chunked\r\nContent-Length: 37\r\n\r\n0\r\n\r\n" + hidden,
		start + "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		start + "Content-Length: 0\r\nContent-Length: 32\r\n\r\n" + hidden,
		start + "Content-Length: 32\r\nContent-Length: 0\r\n\r\n" + hidden,
		start + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello" + hidden,
		start + "Content-Length: 0, 32\r\n\r\n" + hidden,
		// Lengths that servers parse differently.
		start + "Content-Length: +0\r\n\r\n" + hidden,
		start + "Content-Length: -1\r\n\r\n" + hidden,
		start + "Content-Length: 0x0\r\n\r\n" + hidden,
		start + "Content-Length: 0 0\r\n\r\n" + hidden,
		start + "Content-Length: 5\r\n\r\nhello" + hidden,
		start + "Content-Length : 32\r\n\r\n" + hidden,
		start + " Content-Length: 32\r\n\r\n" + hidden,
		start + "Content-Length\t: 32\r\n\r\n" + hidden,
		start + "Content\x00-Length: 32\r\n\r\n" + hidden,
		start + "Content-Length:\r\n 5\r\n\r\nhello" + hidden,
		start + "X: y\nContent-Length: 5\r\n\r\nhello" + hidden,
		start + "X: y\rContent-Length: 32\r\n\r\n" + hidden,
		// Obscured and unknown transfer encodings.
		start + "Transfer-Encoding: identity\r\n\r\n" + hidden,
		start + "Transfer-Encoding: xchunked\r\n\r\n" + hidden,
		start + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + hidden,
		start + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + hidden,
		start + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + hidden,
		start + "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n" + hidden,
		start + "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n" + hidden,
		start + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" + hidden,
		start + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + hidden,
		start + "X: y\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		start + "Transfer-Encoding\r\n: chunked\r\n\r\n0\r\n\r\n" + hidden,
		// Invalid chunks.
		start + "Transfer-Encoding: chunked\r\n\r\n" + hidden,
		start + "Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n" + hidden,
		start + "Transfer-Encoding: chunked\r\n\r\n5\r\nhelloGARBAGE\r\n0\r\n\r\n" + hidden,
		start + "Transfer-Encoding: chunked\r\n\r\n0;x=\n\r\n\r\n" + hidden,
		start + "Transfer-Encoding: chunked\r\n\r\n-0\r\n\r\n" + hidden,
		start + "Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n\r\n" + hidden,
		start + "Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 32\r\n\r\n" + hidden,
		// Other versions, and bytes before a request.
		"GET /_errors/no-such-list HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n" + hidden,
		"GET /_errors/no-such-list HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + hidden,
		"GET /_errors/no-such-list HTTP/0.9\r\nHost: x\r\n\r\n" + hidden,
		"GET /_errors/no-such-list HTTP/2.0\r\nHost: x\r\n\r\n" + hidden,
		"GET /_errors/no-such-list\r\n\r\n" + hidden,
		"GET /_errors/no-such-list HTTP/1.1\r\n\r\n" + hidden,
		"GET /_errors/no-such-list HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n" + hidden,
		"GET /_errors/no-such-list HTTP/1.1 HTTP/1.1\r\nHost: x\r\n\r\n" + hidden,
		"GET  /_errors/no-such-list HTTP/1.1\r\nHost: x\r\n\r\n" + hidden,
		"POST /_site HTTP/1.1\r\nHost: x\r\nContent-Length: 32\r\n\r\n" + hidden + hidden,
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + hidden,
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + hidden,
	} {
		replies := exchange(t, base, sent)
		if len(replies) > 1 {
			t.Errorf("%q: got %d answers, want at most one: %v", sent, len(replies), statuses(replies))
			continue
		}
		for _, r := range replies {
			if r.StatusCode != http.StatusBadRequest && !r.Close {
				t.Errorf("%q: got %d and a connection that goes on, want its end", sent, r.StatusCode)
			}
			if bytes.Contains(r.body, []byte(`"as_of"`)) {
				t.Errorf("%q: got an answer to the hidden request, want none", sent)
			}
		}
	}
	returned()
}

// No spelling of a path leads to an object that is not part of the site.
func TestTraversal(t *testing.T) {
	// These are objects in a bucket that are not part of the site.
	files := demo(t)
	const secret = `{"secret":true}`
	for _, private := range []string{"_lock", "_publishing", "_publishing.tar", "_refresh/notes/104", "_refresh/104", "secret"} {
		if err := afero.WriteFile(files, private, []byte(secret), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	handler := newHandler(t, storage.NewFolder(files), server.Options{})
	base := listenWithin(t, handler.Probes(), impatient)
	const list = "/api/v1/lists/"
	for status, targets := range map[int][]string{
		200: {
			"/_site", largeList + "details", "http://elsewhere" + largeList + "details", "/%5fsite", "/a%70i/v1/lists/104/details",
		},
		404: {
			"/", "//", "/.", "/..", "/../", "/../../../../etc/passwd", "//_site", "/_site/", "/./_site", "/api/v1/../../_site",
			"/_lock", "/_publishing", "/_publishing.tar", "/_refresh/notes/104", "/_refresh/104", "/_refresh", "/_refresh/", "/secret",
			"/%5flock", "/_%6cock", "/_lock%00", "/_lock?x", "//_lock", "/./_lock", "/_refresh%2fnotes%2f104", "/%5Frefresh/notes/104",
			"/api/v1/../../_lock", "/api/v1/%2e%2e/%2e%2e/_lock", "/api/v1/..%2f..%2f_lock", "/api/v1/lists/../../../_lock",
			"/_errors/../_lock", "/_errors/..%2f_lock", "/_errors/%2e%2e/_lock", "/_errors/%2e%2e%2f_lock", "/_errors/", "/_errors/.", "/_errors/..",
			"/_search/lists/1/..%2f..%2f..%2f_lock", "/_search/lists/..%2f..%2f_refresh/details", "/_search/users/../../_lock",
			"/_manifest/../_lock", "/_manifest/%2e%2e%2f_lock", "/_manifest/", "/_variants/leaderboard/followers/limit=..%2f..%2f_lock",
			"/_variants/leaderboard/..%2f..%2f_lock", "/api/v1/leaderboard/..%2f..%2f..%2f_lock", "/api/v1/leaderboard/../lists/104/details",
			list + "104", list + "104/", list + "104/details/", list + "104//details", list + "/104/details", list + "104/..%2fdetails",
			list + "104/%2e%2e/104/details", list + "104/DETAILS", "/api/v1/users/..%2f..%2f..%2f_lock/searchFollowing",
			"/api/v1/users/%2e%2e/searchFollowing", "/api/v1/users//searchFollowing", "/api/v1/users/%2F/searchFollowing",
			"/api/v1/users/a%00b/searchFollowing", "/api/v1/users/a%5cb/searchFollowing", "/api/v1/users/%ff%fe/searchFollowing",
			`/_errors\..\_lock`, `/\_lock`, `/..\_lock`, "/%5c..%5c_lock", "/..%5c_lock",
			"/%c0%ae%c0%ae/_lock", "/%c0%ae%c0%ae%c0%af_lock", "/_errors/%c0%ae%c0%ae%c0%af_lock", "/%e0%80%ae%e0%80%ae/_lock", "//%00", "/api%2fv1/../_site",
			"/%252e%252e/_lock", "/_errors/%252e%252e%252f_lock", "/_errors/no-such-list%00", "/_errors/no-such-list%20", "/_errors/no-such-list.",
			"http://elsewhere/_lock", "http://elsewhere/../_lock", "http://x/_refresh/notes/104", "*", "/;/_lock", "/_site;x", "/healthz/../_lock",
			"/readyz/", "/metrics", "/debug/pprof/", "/.followpress", "/.git/config",
		},
		400: {
			list + "..%2f..%2f..%2f_lock/details", list + "%2e%2e/details", list + "104%00/details", list + "104%2f/details", list + "0104/details",
			list + "+104/details", list + "%C2%B2/details", list + "١/details", list + strings.Repeat("9", 79) + "/details",
			// net/http's: these are no request targets.
			"/%", "/%zz", "_lock", `\_lock`, "/\x00_lock", "/_lock\x7f", "/%uff0e%uff0e/_lock", "http://[::1/_lock", "../_lock", "",
		},
	} {
		for _, target := range targets {
			replies := exchange(t, base, "GET "+target+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			if len(replies) != 1 {
				t.Errorf("%s: got %d answers, want 1", target, len(replies))
				continue
			}
			r := replies[0]
			if r.StatusCode != status {
				t.Errorf("%s: got %d, want %d: %.200s", target, r.StatusCode, status, r.body)
			}
			if bytes.Contains(r.body, []byte("secret")) {
				t.Errorf("%s: got private data, want none", target)
			}
			switch r.Header.Get("Content-Type") {
			case "text/plain; charset=utf-8": // net/http, which has not understood it
				if r.StatusCode != http.StatusBadRequest {
					t.Errorf("%s: got %d, want a problem of ours or 400: %s", target, r.StatusCode, r.body)
				}
			case "application/problem+json":
				checkProblem(t, target, r.Response, r.body)
			default:
				if !json.Valid(r.body) || r.StatusCode != http.StatusOK {
					t.Errorf("%s: got %d, want 200 and JSON: %s", target, r.StatusCode, r.body)
				}
			}
		}
	}
}
