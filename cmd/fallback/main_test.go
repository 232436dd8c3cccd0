package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/cmd/internal/serve"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
)

// start runs the command as its flags say and gives its address. It ends with the
// test, or with stop.
func start(t *testing.T, stderr io.Writer, arguments ...string) (base string, stop func() error) {
	t.Helper()
	var f serve.Command
	parser, err := kong.New(&f)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(append(arguments, "--addr=127.0.0.1:0")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stdout, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := f.Run(ctx, out, stderr)
		_ = out.Close() // never fails
		ended <- err
	}()
	stopped := false
	stop = func() error {
		stopped = true
		cancel()
		http.DefaultClient.CloseIdleConnections()
		return <-ended
	}
	t.Cleanup(func() {
		if !stopped {
			if err := stop(); err != nil {
				t.Errorf("Run: %v", err)
			}
		}
	})
	base, err = bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the command ended: %v", stop())
	}
	return strings.TrimSpace(base), stop
}

// demoSite returns the demo site in a folder.
func demoSite(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "site")
	if _, err := generator.ToPath(t.Context(), afero.FromIOFS{FS: fixtures.Demo()}, dir, generator.Options{NoSync: true}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	response, err := http.Get(url)
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

// The fallback pages through a search, wherever the site is stored, and ends on request.
func TestServesAFolder(t *testing.T) {
	dir := demoSite(t)
	for _, location := range []string{dir, "file://" + dir} {
		base, stop := start(t, io.Discard, "--site="+location)
		response, body := get(t, base+"/api/v1/lists/104/searchFollowing?offset=30")
		if response.StatusCode != http.StatusOK || strings.Count(body, `"version":`) != 4 {
			t.Errorf("%s: the last page of 34: got %d %s, want 4 follows", location, response.StatusCode, body)
		}
		if err := stop(); err != nil {
			t.Errorf("%s: Run: %v", location, err)
		}
	}
}
