package publish

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/followpress/followpress/internal/testenv/testkey"
)

// A key may come from a pipe, which is read once. A pipe without a writer is an error, and does not
// block.
func TestSignFromPipe(t *testing.T) {
	k, out, folder := testkey.New(t, "follow.example"), demoSite(t, "out"), t.TempDir()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if _, err := fmt.Fprintln(w, k.Private); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := runPublish("--site", out, "--dest", "file://"+folder, "--sign", fmt.Sprintf("/dev/fd/%d", r.Fd())); status != 0 {
		t.Fatalf("got status %d: %s", status, stderr)
	}
	signed, err := os.ReadFile(filepath.Join(folder, "_site.note"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := k.Keys.Open(signed, time.Now()); err != nil {
		t.Error(err)
	}

	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := runPublish("--site", out, "--dest", "file://"+folder, "--sign", fifo); status == 0 || !strings.Contains(stderr, "is empty") {
		t.Errorf("a pipe without a writer: got status %d: %s", status, stderr)
	}
}
