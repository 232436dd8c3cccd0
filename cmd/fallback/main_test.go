package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
)

// The fallback pages through a search of a site in a folder and ends when told to.
func TestServesAFolder(t *testing.T) {
	dir := t.TempDir() + "/site"
	ctx, stop := context.WithCancel(context.Background())
	if _, err := generator.ToPath(ctx, afero.FromIOFS{FS: fixtures.Demo()}, dir, generator.Options{}); err != nil {
		t.Fatal(err)
	}
	stdout, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- (&flags{Site: dir, Addr: "127.0.0.1:0"}).Run(ctx, out, io.Discard) }()
	base, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Get(strings.TrimSpace(base) + "/api/v1/lists/104/searchFollowing?offset=30")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || strings.Count(string(body), `"version":`) != 4 {
		t.Errorf("the last page of 34: %d %s %v", response.StatusCode, body, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
}
