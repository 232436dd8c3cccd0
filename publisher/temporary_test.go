package publisher

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A run needs a temporary file for what does not fit into memory. The file has no name while the
// run lasts. Without a folder for the file, the run warns once and uses memory.
func TestTemporaryFileOfARun(t *testing.T) {
	for _, absent := range []bool{false, true} {
		tmp := t.TempDir()
		folder := t.TempDir()
		live, next := siteOf(t, objectsOf(60, "")), siteOf(t, objectsOf(40, " anew"))
		publish(t, live, openLocal(folder), Options{})
		if absent {
			tmp = filepath.Join(tmp, "absent")
		}
		t.Setenv("TMPDIR", tmp)
		writes := 0
		watched := &mortal{Bucket: openLocal(folder), left: -1, during: func() {
			writes++
			if left, _ := os.ReadDir(tmp); len(left) > 0 {
				t.Errorf("the file has a name: %s", left[0].Name())
			}
		}}
		var log strings.Builder
		publish(t, next, watched, Options{memory: 300, Log: slog.New(slog.NewTextHandler(&log, nil)), Concurrency: 1})
		equalSites(t, inBucket(t, folder), next)
		if warned := strings.Count(log.String(), "TMPDIR"); absent != (warned == 1) || writes == 0 {
			t.Errorf("no folder: %v: got %d warnings and looked %d times, want one if there is none\n%s", absent, warned, writes, &log)
		}
	}
}
