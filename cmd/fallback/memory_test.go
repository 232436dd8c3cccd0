package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/cmd/internal/serve"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
)

// limitsOf runs the command over a site and returns the limits that the collector got until the
// condition holds.
func limitsOf(t *testing.T, until func(limits []int64) bool, arguments ...string) []int64 {
	t.Helper()
	var mu sync.Mutex
	var limits []int64
	f := serve.Command{LimitMemory: func(bytes int64) {
		mu.Lock()
		defer mu.Unlock()
		limits = append(limits, bytes)
	}}
	parser, err := kong.New(&f)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(append(arguments, "--addr=127.0.0.1:0", "--poll=10ms")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	stdout, out := io.Pipe()
	go func() {
		err := f.Run(ctx, out, io.Discard)
		_ = out.Close() // never fails
		ended <- err
	}()
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatalf("the command ended: %v", <-ended)
	}
	soFar := func() []int64 {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(limits)
	}
	for deadline := time.Now().Add(time.Minute); !until(soFar()) && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	cancel()
	http.DefaultClient.CloseIdleConnections()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return soFar()
}

// tarOf writes a site to a tar file in one step, and returns the size of its index in memory.
func tarOf(t *testing.T, snapshot afero.Fs, path string) int64 {
	t.Helper()
	report, err := generator.ToPath(t.Context(), snapshot, path, generator.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	return 8 * int64(report.Written.Added+report.Written.Altered+report.Written.Kept)
}

// The limit of the collector leaves room for the index of a tar file: also for that of the next site, and for both
// while one is made.
func TestLimitCountsTheIndex(t *testing.T) {
	const needed = 48 << 20
	path := filepath.Join(t.TempDir(), "site.tar")
	demo := tarOf(t, afero.FromIOFS{FS: fixtures.Demo()}, path)
	next := filepath.Join(t.TempDir(), "next.tar")
	cases := tarOf(t, afero.NewBasePathFs(afero.FromIOFS{FS: fixtures.Conformance()}, "snapshot"), next)
	replaced := false
	want := []int64{needed, needed + demo, needed + demo + cases, needed + cases}
	got := limitsOf(t, func(limits []int64) bool {
		if len(limits) >= 2 && !replaced {
			replaced = true
			if err := os.Rename(next, path); err != nil {
				t.Error(err)
			}
		}
		return len(limits) >= len(want)
	}, "--site="+path)
	if !slices.Equal(got, want) {
		t.Errorf("over a tar file of %d bytes of index, then %d: got the limits %d, want %d", demo, cases, got, want)
	}
}
