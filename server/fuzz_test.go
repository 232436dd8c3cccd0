package server_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	json "github.com/goccy/go-json"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// pipes is a listener without a network.
type pipes struct {
	connections chan net.Conn
	closed      chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.connections:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

// FuzzServe sends arbitrary bytes to the whole server: every answer is one of the
// documented ones, and never a failure of the server.
func FuzzServe(f *testing.F) { fuzzServe(f, site.Config{}) }

// FuzzServeEFP is FuzzServe for a site of the whole API.
func FuzzServeEFP(f *testing.F) {
	const user = "/api/v1/users/0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf/"
	for _, target := range []string{
		user + "account", user + "following?limit=3&sort=FOLLOWERS&tags=top8,x&include=ens", user + "allFollowers?offset=2&sort=earliest",
		user + "searchFollowers?term=%C3%89&limit=0", user + "commonFollowers?leader=nobody.eth", user + "commonFollowers", user + user[8:] + "followerState",
		user + "recommended/details?limit=1001", user + "ens", user + "badges?cache=fresh", "/api/v1/leaderboard/ranked?sort=top8&direction=ASC&offset=7",
		"/api/v1/leaderboard/search?term=et", "/api/v1/discover?offset=3", "/api/v1/exportState/104", "/api/v1/lists/104/x.eth/buttonState", "/api/v1/stats",
		"/api/v1/lists/104/tags", "/_unknown/account", "/_search/tokens/0", "/api/v1/users//account", "/api/v1/lists/104/latestFollowers?offset=999999999999999999",
	} {
		f.Add("GET", target, "", []byte(nil))
	}
	for _, body := range []string{`["0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf","x.eth",""]`, "[]", "[1]", "x", ""} {
		f.Add("POST", "/api/v1/lists/104/buttonStateBatch", fmt.Sprintf("Content-Length: %d\r\n", len(body)), []byte(body))
	}
	f.Add("POST", "/api/v1/lists/104/buttonStateBatch", "Content-Length: 131073\r\n", []byte("["))
	f.Add("POST", "/api/v1/lists/01/buttonStateBatch", "Transfer-Encoding: chunked\r\n", []byte("2\r\n[]\r\n0\r\n\r\n"))
	fuzzServe(f, site.Config{API: site.APIEFP})
}

func fuzzServe(f *testing.F, config site.Config) {
	files := generated(f, afero.FromIOFS{FS: fixtures.Demo()}, config)
	log := slog.New(slog.DiscardHandler)
	handler := newHandler(f, storage.NewFolder(files), server.Options{Log: log})
	listener := &pipes{make(chan net.Conn), make(chan struct{})}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener, handler.Probes(), log) }()
	f.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			f.Error(err)
		}
	})
	seedRequests(f)
	f.Fuzz(func(t *testing.T, method, target, headers string, body []byte) {
		sent := slices.Concat([]byte(method+" "+target+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+headers+"\r\n"), body)
		understood, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(sent)))
		if err != nil {
			return // what net/http does not understand does not come to us
		}
		client, conn := net.Pipe()
		defer client.Close()
		listener.connections <- conn
		go func() { _, _ = client.Write(sent) }() // the server need not read to the end
		answers := bufio.NewReader(client)
		response, err := http.ReadResponse(answers, understood)
		for err == nil && response.StatusCode == http.StatusContinue {
			response, err = http.ReadResponse(answers, understood)
		}
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		// Where a body may still come, the connection stays for it, and no longer.
		if understood.ContentLength == 0 && response.Header.Get("X-Request-Id") != "" {
			if rest, err := io.ReadAll(answers); err != nil || len(rest) > 0 {
				t.Errorf("after the answer: got %q, %v, want nothing", rest, err)
			}
		}
		checkAnswer(t, understood, response, answer)
	})
}

func seedRequests(f *testing.F) {
	for _, target := range []string{
		"/", "/_site", "/healthz", "/readyz", "/_errors/no-such-list", "/_errors/x", "/_manifest/00", "/_manifest/0",
		"/_variants/leaderboard/followers/limit=7", "/_variants/leaderboard/followers/limit=07", "/_variants/leaderboard/followers/limit=101",
		"/_search/lists/104/0", "/_search/lists/104/1", "/_search/lists/104/00", "/_search/users/0", "/_search/users/",
		"/_lock", "/_refresh/details/104", "/_publishing", "/_errors/..%2f_lock", "/%2e%2e/_site", "//", "/\\", "/%00", "/%c0%ae",
		"/api/v1/leaderboard/followers", "/api/v1/leaderboard/following?limit=100", "/api/v1/leaderboard/blocks",
		"/api/v1/leaderboard/followers?limit=0", "/api/v1/leaderboard/followers?limit=999999999999999999", "/api/v1/leaderboard/followers?limit=%31",
		"/api/v1/lists/104/records", "/api/v1/lists/104/records?includeTags=false", "/api/v1/lists/104/records?includeTags=maybe",
		"/api/v1/lists/104/details", "/api/v1/lists/104/details?cache=fresh", "/api/v1/lists/104/badges?cache=fresh", "/api/v1/lists/0/details",
		"/api/v1/lists/104/searchFollowing", "/api/v1/lists/104/searchFollowing?limit=3&offset=30", "/api/v1/lists/104/searchFollowing?term=a",
		"/api/v1/lists/104/searchFollowing?term=%F0%9F%8E%89&limit=1", "/api/v1/lists/104/searchFollowing?term=+%20%C3%89+&offset=1",
		"/api/v1/lists/104/searchFollowing?term=%ff&limit=x", "/api/v1/lists/104/searchFollowing?offset=999999999999999999&term=0x",
		"/api/v1/lists/104/searchFollowing?limit=1&limit=x&&=&%6cimit=2;offset=3", `/api/v1/lists/104/searchFollowing?term="}]&limit=5`,
		"/api/v1/lists/0104/details", "/api/v1/lists/%31%30%34/details", "/api/v1/lists/" + strings.Repeat("9", 78) + "/details", "/api/v1/lists/-1/records",
		"/api/v1/users/0x0000000000000000000000000000000000000000/searchFollowing", "/api/v1/users/NOBODY.eth/searchFollowing?term=x",
		"/api/v1/users/%F0%9F%8E%89.eth/searchFollowing?limit=2", "/api/v1/users/a%2fb/searchFollowing", "/api/v1/users/%2e%2e/searchFollowing?term=x",
		"http://elsewhere/_site", "*", "x:", "//x/_site",
	} {
		f.Add("GET", target, "", []byte(nil))
	}
	const details = "/api/v1/lists/104/details"
	for _, method := range []string{"HEAD", "OPTIONS", "POST", "CONNECT", "get", "PROPFIND"} {
		f.Add(method, details, "", []byte(nil))
		f.Add(method, "*", "", []byte(nil))
	}
	for _, headers := range []string{
		"If-None-Match: *\r\n", "If-None-Match: \"x\", W/\"y\",,\r\nIf-None-Match: nonsense\r\n", "Range: bytes=0-1\r\n", "X-Request-Id: a b\"\r\n",
		"X-Request-Id: 1-2\r\n", "Content-Length: 3\r\n", "Transfer-Encoding: chunked\r\n", "Expect: 100-continue\r\nContent-Length: 3\r\n",
		"Expect: wonders\r\n", "Upgrade: h2c\r\nConnection: upgrade\r\n", "Accept-Encoding: gzip\r\nAccept: text/html\r\n", "Origin: null\r\n",
	} {
		f.Add("GET", details, headers, []byte("1\r\nx\r\n0\r\n\r\n"))
		f.Add("HEAD", details, headers, []byte("x=y"))
	}
}

// Statuses that a server without faults and with its store at hand may give; those of
// the second line are net/http's own.
var known = []int{
	200, 204, 304, 400, 404, 405, 413,
	417, 431, 501, 505,
}

// checkAnswer checks the promises that hold for every answer.
func checkAnswer(t *testing.T, request *http.Request, response *http.Response, body []byte) {
	t.Helper()
	status, header := response.StatusCode, response.Header
	if !slices.Contains(known, status) {
		t.Fatalf("got status %d, want a known one: %s", status, body)
	}
	if bodiless := request.Method == http.MethodHead || status == http.StatusNoContent || status == http.StatusNotModified; bodiless && len(body) > 0 {
		t.Errorf("%s, %d: got a body of %d bytes, want none", request.Method, status, len(body))
	} else if length := header.Get("Content-Length"); !bodiless && length != "" && length != strconv.Itoa(len(body)) {
		t.Errorf("Content-Length: got a body of %d bytes, want %s", len(body), length)
	}
	if header.Get("X-Request-Id") == "" {
		// net/http's, a probe's, or the answer to OPTIONS *.
		if status == http.StatusOK && request.Method != http.MethodOptions && header.Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("an answer: got %v, want a request ID", header)
		}
		return
	}
	if header.Get("Cache-Control") == "" || header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("%d: got %v, want Cache-Control and CORS headers", status, header)
	}
	switch contentType := header.Get("Content-Type"); status {
	case http.StatusNoContent:
	case http.StatusNotModified:
		if header.Get("ETag") == "" {
			t.Error("304: got no ETag, want one")
		}
	case http.StatusOK:
		packed := contentType == "application/gzip" // the manifest
		if contentType != "application/json" && contentType != "application/problem+json" && !packed {
			t.Errorf("%d: got content type %q, want JSON, a problem or the manifest", status, contentType)
		}
		if len(body) > 0 && (!packed && !json.Valid(body) || header.Get("ETag") != `"`+site.Sum(body).String()+`"`) {
			t.Errorf("got ETag %s, want the MD5 of a JSON body: %s", header.Get("ETag"), body)
		}
	default:
		if len(body) > 0 {
			problem := *response
			checkProblem(t, request.RequestURI, &problem, body)
		}
		allow := header.Get("Allow")
		if header.Get("ETag") != "" || (status == http.StatusMethodNotAllowed) != (allow == site.MethodNotAllowed.Allow() || allow == site.PostOnly.Allow()) {
			t.Errorf("%d: got %v, want no ETag, and Allow with 405 only", status, header)
		}
	}
	if status == http.StatusOK && request.Method == http.MethodGet && len(body) == 0 {
		t.Error("GET: got an empty body, want an answer")
	}
}
