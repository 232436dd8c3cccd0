package tempdir_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/followpress/followpress/internal/testenv/tempdir"
)

// The folder of a killed process is removed, and the folder of this process is used.
func TestInMemory(t *testing.T) {
	const killed = "/dev/shm/followpress-tests-999999999" // a process ID beyond all others
	if os.MkdirAll(killed, 0o750) != nil {
		return // this system has no folder in memory
	}
	t.Setenv("TMPDIR", "")
	t.Setenv("TEST_SERVERS", "")
	tempdir.InMemory()
	used := os.TempDir()
	if !strings.HasPrefix(used, filepath.Dir(killed)) {
		_ = os.Remove(killed)
		return // it is too small
	}
	if _, err := os.Stat(killed); !os.IsNotExist(err) {
		t.Errorf("the folder of a process that was killed: got %v, want none", err)
	}
	if info, err := os.Stat(used); err != nil || !info.IsDir() || filepath.Base(used) == filepath.Base(killed) {
		t.Errorf("got %s (%v), want a folder of this process", used, err)
	}
	if tempdir.InMemory(); os.TempDir() != used {
		t.Errorf("again: got %s, want that %s stands", os.TempDir(), used)
	}
	if err := os.Remove(used); err != nil {
		t.Error(err)
	}
}
