package server_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/storage"
)

// What net/http refuses before there is a request gets a problem too, in JSON and with the headers of every answer.
func TestRefusedRequestsGetProblems(t *testing.T) {
	base := serve(t, storage.NewFolder(demo(t)))
	const good = "GET /api/v1/leaderboard/followers HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, c := range map[string]struct {
		sent   string
		status int
		detail string
	}{
		"percent at the end":     {"GET /api/v1/users/100%/stats HTTP/1.1\r\nHost: x\r\n\r\n", 400, "malformed"},
		"percent and one digit":  {"GET /api/v1/users/%4/searchFollowing HTTP/1.1\r\nHost: x\r\n\r\n", 400, "malformed"},
		"percent and letters":    {"GET /%zz?limit=1 HTTP/1.1\r\nHost: x\r\n\r\n", 400, "malformed"},
		"HEAD":                   {"HEAD /api/v1/users/100%/stats HTTP/1.1\r\nHost: x\r\n\r\n", 400, "malformed"},
		"POST with a body":       {"POST /api/v1/lists/1%/buttonStateBatch HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n[]", 400, "malformed"},
		"no Host":                {"GET / HTTP/1.1\r\n\r\n", 400, "missing required Host header"},
		"bad Host":               {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400, "malformed Host header"},
		"header without a colon": {"GET / HTTP/1.1\r\nHost: x\r\nx\r\n\r\n", 400, "malformed"},
		"header value":           {"GET / HTTP/1.1\r\nHost: x\r\nX: \x01\r\n\r\n", 400, "malformed"},
		"no HTTP":                {"hello\r\n\r\n", 400, "malformed"},
		"two lengths":            {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", 400, "malformed"},
		"long headers":           {"GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 20<<10) + "\r\n\r\n", 431, "too long"},
		"long URL":               {"GET /" + strings.Repeat("x", 20<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n", 431, "too long"},
		"transfer encoding":      {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 501, "transfer encoding"},
		"version":                {"GET / HTTP/3.1\r\nHost: x\r\n\r\n", 505, "protocol version"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", base[len("http://"):])
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			// Two good requests before it, the second in one packet with it.
			answers := bufio.NewReader(conn)
			for _, sent := range []string{good, good + c.sent} {
				if _, err := io.WriteString(conn, sent); err != nil {
					t.Fatal(err)
				}
				response, body := nextAnswer(t, answers)
				if response.StatusCode != http.StatusOK || !json.Valid([]byte(body)) {
					t.Fatalf("before it: got %d %q, want the leaderboard", response.StatusCode, body)
				}
			}
			response, body := nextAnswer(t, answers)
			var problem struct {
				Type, Title, Detail, Response string
				Status                        int
			}
			err = json.Unmarshal([]byte(body), &problem)
			if err != nil || response.StatusCode != c.status || problem.Status != c.status || problem.Type != "about:blank" ||
				problem.Title != http.StatusText(c.status) || problem.Response != problem.Detail || !strings.Contains(problem.Detail, c.detail) {
				t.Errorf("got %d %q, %v, want a problem %d that says %q", response.StatusCode, body, err, c.status, c.detail)
			}
			for name, want := range map[string]string{
				"Content-Type": "application/problem+json", "Cache-Control": "no-store", "Access-Control-Allow-Origin": "*", "X-Content-Type-Options": "nosniff",
			} {
				if got := response.Header.Get(name); got != want {
					t.Errorf("%s: got %q, want %q", name, got, want)
				}
			}
			if rest, err := io.ReadAll(answers); !response.Close || len(rest) > 0 || err != nil && !strings.Contains(err.Error(), "reset") {
				t.Errorf("after it: got %q, %v, closing %t, want nothing and the end", rest, err, response.Close)
			}
		})
	}
}

func nextAnswer(t *testing.T, answers *bufio.Reader) (*http.Response, string) {
	t.Helper()
	response, err := http.ReadResponse(answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

// A handler's own text is left as it is, and so is a file that the kernel sends.
func TestHandlersTextsAreLeft(t *testing.T) {
	const text = "400 Bad Request"
	base := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		if r.URL.Path == "/file" {
			http.ServeFile(w, r, "refused_test.go")
			return
		}
		http.Error(w, text, http.StatusBadRequest)
	}))
	if response, body := request(t, http.MethodGet, base); response.StatusCode != 400 || body != text+"\n" {
		t.Errorf("got %d %q, want the handler's own", response.StatusCode, body)
	}
	if _, body := request(t, http.MethodGet, base+"/file"); !strings.HasSuffix(body, "}\n") {
		t.Errorf("got %.100q, want the file", body)
	}
}
