package server_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/naive"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/ranks"
	"github.com/followpress/followpress/storage"
)

// An answer from the cache by its path alone is the one that a request gets otherwise: the same
// status, headers and body, however odd the request.
func TestHotAnswersAreTheSame(t *testing.T) {
	t.Parallel()
	handler := newHandler(t, storage.NewFolder(generated(t, conformanceSnapshot(), site.Config{})), server.Options{})
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

// TestHeldRanksAreThoseOfTheTwin compares sites of successive snapshots with a naive computation.
// Each site keeps the ranks of an earlier one until new ranks are due.
func TestHeldRanksAreThoseOfTheTwin(t *testing.T) {
	t.Parallel()
	const every = 24 * time.Hour
	holding := 0
	for seed := uint64(servers.Rounds(3, 1)); seed <= uint64(servers.Rounds(3, 24)); seed++ { // in the third, several have many followers
		random := rand.New(rand.NewPCG(seed, 7))
		snapshot := naive.Random(seed)
		var last *naive.Graph
		var held *ranks.Held
		for round := range 5 {
			graph, err := naive.Load(snapshot, naive.Config{})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if last = graph.HoldRanks(last, every); last != graph {
				holding++
			}
			files, report, err := generator.ToMemory(t.Context(), afero.FromIOFS{FS: snapshot}, generator.Options{
				NoSync: true, Config: site.Config{API: site.APIEFP, RanksEvery: int64(every / time.Second)}, Ranks: held,
			})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if report.Ranks.Held != (last != graph) {
				t.Errorf("seed %d, round %d: got held=%t, want %t", seed, round, report.Ranks.Held, last != graph)
			}
			compareSpec(t, snapshot, files, held)
			handler := efpHandler(t, files)
			for _, r := range naive.Requests(rand.New(rand.NewPCG(seed, uint64(round))), graph, 600) {
				if strings.Contains(r.Path, "//") {
					continue
				}
				sameAsTwin(t, fmt.Sprintf("seed %d, round %d", seed, round), handler, graph, r)
			}
			handler.Close()
			body, err := afero.ReadFile(files, string(site.RanksKey))
			if err != nil {
				t.Fatal(err)
			}
			if held, err = ranks.Parse(body); err != nil {
				t.Fatal(err)
			}
			if snapshot, err = naive.Later(snapshot, random); err != nil {
				t.Fatal(err)
			}
		}
	}
	if holding == 0 {
		t.Error("got no round with held ranks, want some")
	}
}

// compareSpec compares the details and _ranks of the API spec with those of a site of the API efp.
func compareSpec(t *testing.T, snapshot fs.FS, efp afero.Fs, held *ranks.Held) {
	t.Helper()
	spec, _, err := generator.ToMemory(t.Context(), afero.FromIOFS{FS: snapshot}, generator.Options{
		NoSync: true, Config: site.Config{RanksEvery: 24 * 3600}, Ranks: held,
	})
	if err != nil {
		t.Fatal(err)
	}
	details, err := afero.Glob(spec, "/api/v1/lists/*/details")
	if err != nil || len(details) == 0 {
		t.Fatalf("got %d details, %v", len(details), err)
	}
	for _, name := range append(details, string(site.RanksKey)) {
		got, err := afero.ReadFile(spec, name)
		if err != nil {
			t.Fatal(err)
		}
		if want, err := afero.ReadFile(efp, name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: got %.500s, want %.500s (%v)", name, got, want, err)
		}
	}
}
