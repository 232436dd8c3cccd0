package publish

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/site"
)

// withoutRecords empties the lists of the demo snapshot, as nodes do that have lost the logs.
func withoutRecords(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "records.ndjson"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Publish refuses a snapshot that lacks much of the live site, from every source and under either
// API, unless a flag allows it.
func TestMaxLoss(t *testing.T) {
	good, bad := demoSnapshot(t, asItIs), demoSnapshot(t, withoutRecords)
	const plain = "--explorer=false"
	t.Setenv("FOLLOWPRESS_HISTORY_WINDOW", "0")
	refused := func(t *testing.T, args ...string) {
		t.Helper()
		status, _, stderr := runPublish(args...)
		if status != command.Failed || !strings.Contains(lastLine(stderr), "0 follows instead of ") || !strings.Contains(lastLine(stderr), "--max-loss 100%") {
			t.Errorf("%q: got status %d: %s", args, status, stderr)
		}
	}
	for _, api := range []string{site.APISpec, site.APIEFP} {
		t.Run(api, func(t *testing.T) {
			other := map[string]string{site.APISpec: site.APIEFP, site.APIEFP: site.APISpec}[api]
			bucket := filepath.Join(t.TempDir(), "out")
			dest := "file://" + bucket
			publishedFrom(t, good, dest, "--api", api, plain, "--max-loss", "0%") // a first one
			want := generated(t, good, "site", site.Config{API: api})
			lesser := generated(t, bad, "bad.tar", site.Config{API: api})
			refused(t, "--snapshot", bad, "--api", api, plain, "--dest", dest)
			refused(t, "--snapshot", bad, "--api", other, plain, "--dest", dest)
			refused(t, "--snapshot", bad, "--api", api, plain, "--dest", dest, "--dry-run")
			refused(t, "--site", lesser, "--dest", dest)
			refused(t, "--site", lesser, "--dest", dest, "--dry-run")
			refused(t, "--site", lesser, "--dest", dest, "--no-lock", "--max-loss", "99.9999%")
			status, _, stderr := run("init", "--site", lesser, "--dest", dest)
			if status != command.Failed || !strings.Contains(stderr, "0 follows instead of ") {
				t.Errorf("init: got status %d: %s", status, stderr)
			}
			t.Setenv("FOLLOWPRESS_MAX_LOSS", "30%")
			refused(t, "--site", lesser, "--dest", dest)
			equalFolders(t, bucket, want)
			if status, _, stderr := runPublish("--snapshot", good, "--api", other, plain, "--dest", dest, "--max-loss", "0%"); status != command.Done {
				t.Errorf("the same snapshot under the other API: got status %d: %s", status, stderr)
			}
			t.Setenv("FOLLOWPRESS_MAX_LOSS", "100%")
			if status, _, stderr := runPublish("--site", lesser, "--dest", dest); status != command.Done {
				t.Errorf("got status %d: %s", status, stderr)
			}
		})
	}
}
