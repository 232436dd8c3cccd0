package server_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

const batchPath = "/api/v1/lists/1/buttonStateBatch"

func smallEFP(t testing.TB) afero.Fs {
	t.Helper()
	return efpSite(t, afero.FromIOFS{FS: efpSnapshot(1, 30, 30)}, "")
}

// The order of checks is method, size, form, existence.
func TestBatches(t *testing.T) {
	handler := efpHandler(t, smallEFP(t))
	long := strings.Repeat(" ", site.MaxBatchBytes+1)
	fits := `["one.eth"]` + strings.Repeat(" ", site.MaxBatchBytes-len(`["one.eth"]`))
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", batchPath, long, 405}, {"PUT", "/api/v1/lists/x/buttonStateBatch", "", 405}, {"POST", "/api/v1/lists/1/records", long, 405},
		{"POST", batchPath, long, 413}, {"POST", "/api/v1/lists/01/buttonStateBatch", long, 413}, {"POST", "/api/v1/lists/9/buttonStateBatch", long, 413},
		{"POST", batchPath, fits, 200}, {"POST", batchPath, "[]", 400}, {"POST", "/api/v1/lists/01/buttonStateBatch", fits, 400},
		{"POST", "/api/v1/lists/9/buttonStateBatch", "[]", 400}, {"POST", "/api/v1/lists/9/buttonStateBatch", fits, 404},
		{"POST", batchPath, `["` + strings.Repeat(`x","`, 999) + `y"]`, 200}, {"POST", batchPath, `["` + strings.Repeat(`x","`, 1000) + `y"]`, 400},
	} {
		w := answerTo(handler, c.method, c.path, []byte(c.body))
		if w.Code != c.status || c.method == "POST" && w.Header().Get("Cache-Control") != "no-store" && c.status != 400 && c.status != 404 && c.status != 405 {
			t.Errorf("%s %s %.40s: got %d %v, want %d, not cached", c.method, c.path, c.body, w.Code, w.Header(), c.status)
		}
		if allow := w.Header().Get("Allow"); c.status == 405 && (allow == site.PostMethods) != strings.Contains(c.path, "Batch") {
			t.Errorf("%s %s: got Allow %q, want that of the route", c.method, c.path, allow)
		}
	}
	w := answerTo(handler, "OPTIONS", batchPath, nil)
	if got := w.Header().Get("Access-Control-Allow-Methods"); w.Code != 204 || !strings.Contains(got, "POST") {
		t.Errorf("preflight: got %d, %q, want POST allowed", w.Code, got)
	}
	request, err := http.NewRequestWithContext(t.Context(), "POST", batchPath, strings.NewReader(`["one.eth"]`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("If-None-Match", "*")
	if w := serveOne(handler, request); w.Code != 200 {
		t.Errorf("If-None-Match: got %d, want 200: nothing is cached", w.Code)
	}
}

// A body without a length is as limited as one with.
func TestBatchWithoutLength(t *testing.T) {
	s := startEFP(t, server.Options{})
	for size, status := range map[int]int{site.MaxBatchBytes: 200, site.MaxBatchBytes + 1: 413, 10 * site.MaxBatchBytes: 413} {
		body := io.MultiReader(strings.NewReader(`["one.eth"]`), strings.NewReader(strings.Repeat(" ", size-len(`["one.eth"]`)))) // hides the length
		response, err := http.Post(s+batchPath, "application/json", body)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != status {
			t.Errorf("%d bytes: got %d, want %d", size, response.StatusCode, status)
		}
	}
}

func startEFP(t *testing.T, o server.Options) (base string) {
	t.Helper()
	return listenWithin(t, newHandler(t, storage.NewFolder(smallEFP(t)), o), server.Limits{DrainTimeout: time.Millisecond})
}

// Clients that send a part of a body and wait hold only that part: other requests, including
// batches, are answered.
func TestSlowBatches(t *testing.T) {
	const timeout = time.Minute
	s := startEFP(t, server.Options{Timeout: timeout})
	for range 40 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "POST "+batchPath+" HTTP/1.1\r\nHost: x\r\nContent-Length: 131072\r\n\r\n["); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(100 * time.Millisecond)
	begun := time.Now()
	response, err := http.Get(s + "/api/v1/users/one.eth/followers?limit=20&sort=followers")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if took := time.Since(begun); response.StatusCode != 200 || took > timeout/2 {
		t.Errorf("a concurrent page: got %d after %v, want 200 at once", response.StatusCode, took)
	}
	begun = time.Now()
	if response, err = http.Post(s+batchPath, "application/json", strings.NewReader(`["one.eth"]`)); err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if took := time.Since(begun); response.StatusCode != 200 || took > timeout/2 {
		t.Errorf("a concurrent batch: got %d after %v, want 200 at once", response.StatusCode, took)
	}
}

// A connection goes on after a batch whose end is beyond doubt.
func TestConnectionsGoOnAfterABatch(t *testing.T) {
	base := listenWithin(t, efpHandler(t, smallEFP(t)), server.Limits{})
	const batch = `["0x0101010101010101010101010101010101010101"]`
	request := fmt.Sprintf("POST "+batchPath+" HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(batch), batch)
	replies := exchange(t, base, request+request+"GET /_site HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if got := statuses(replies); fmt.Sprint(got) != "[200 200 200]" {
		t.Errorf("two batches and a root on one connection: got %v, want three answers", got)
	}
	chunked := "POST " + batchPath + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" +
		fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(batch), batch)
	if got := statuses(exchange(t, base, chunked+request)); fmt.Sprint(got) != "[200]" {
		t.Errorf("after chunks: got %v, want the end of the connection", got)
	}
}
